// What the program is, what became of it, the totals before and after, and the verdicts of the equivalence check.

const TOTALS = [
  ["kernel launches, dynamic", "dynamic_launches", "count", "launches"],
  ["kernel launches, static", "static_launches", "count", "launches"],
  ["copies and memsets, dynamic", "dynamic_copies", "count"],
  ["temp memory", "temp_bytes", "bytes"],
  ["argument memory", "argument_bytes", "bytes"],
  ["FLOPs of the StableHLO program (model)", "flops", "flops", "ops"],
  ["bytes accessed (model)", "bytes_accessed", "bytes", "launches"],
  ["time, sum over the launches (model)", "model_us", "us", "launches"],
  ["StableHLO ops", "stablehlo_ops", "count", "ops"],
  ["XLA's compile", "compile_s", "seconds"],
];

function totalsTable(target) {
  const of = (name, field) => target[name] && (field === "model_us" ? target[name].totals : target[name].footprint)[field];
  const column = (name, label = name) => ({ label, kind: "figure", cell: ([, field, kind, summed]) => {
    const to = { launches: () => link.launches(target, name, {}), ops: () => link.group(keyOf(target, name), 0) }[summed];
    const unfinished = field === "model_us" && target[name] && target[name].totals.unmodelled_us_launches > 0;
    return number(of(name, field), kind, to && target[name] && to(), unfinished);
  } });
  const ratio = ([, field]) => number(known(of("after", field)) && of("before", field) ? of("after", field) / of("before", field) : null, "ratio");
  const change = target.after ? [column("after"), { label: "after / before", kind: "figure", cell: ratio }] : [];
  return table(`${study.study.name} on ${target.name}`, [
    { label: "", kind: "text", cell: ([label]) => label }, target.after ? column("before") : column("before", "original"), ...change,
  ], TOTALS, { class: "totals" });
}

function whatItIs() {
  const found = study.study.workload;
  const key = study.targets[0].original;
  const program = study.programs[key];
  const types = (all) => el("details", {}, el("summary", {}, plural(all.length, "tensor")), el("p", { class: "code" }, all.join(", ")));
  return facts([
    ...(found ? [
      ["model", found.model], ["molecule", `${found.molecule}, ${plural(found.electrons, "electron")}`], ["program", found.program],
      ["Laplacian", found.laplacian], ["walkers", format(found.walkers, "count")], ["dtype", found.dtype],
    ] : [["file", study.study.name]]),
    ["StableHLO", [el("a", { href: link.group(key, 0), class: "num" }, format(program.stablehlo_ops, "count")),
      ` ops, lowered for ${program.platform}`]],
    ["arguments", types(program.inputs)], ["results", types(program.outputs)],
  ]);
}

const eventItem = (event) => el("li", { class: event.applied ? "applied" : "declined" },
  el("strong", {}, event.applied ? "applied " : `declined (${event.kind}) `), el("code", {}, event.pass), ": ",
  event.applied || event.reason, " at ", scopeLink(event.location, 80),
  event.cause && event.cause !== "gain" && el("div", { class: "why" }, `cause: ${event.cause}`, event.op && `, ${event.op}`,
    event.instead && `; instead: ${event.instead}`));

const VERDICTS = {
  equal: "equal, bit for bit", "within-bound": "equal within the rounding that the original itself has",
  different: "DIFFERENT: the rewritten program was not measured", "not-checked": "not checked",
};

function exactWords(exact) {
  if (exact.result !== "identical") return `${exact.result}: ${exact.reason}` +
    (exact.first_difference ? `; the first value that differs: ${exact.first_difference}` : "");
  return `identical in ${plural(exact.draws, "draw")} over ${plural(exact.primes, "prime")}` +
    (exact.walkers ? ` of ${plural(exact.walkers, "walker")}` : "") + ` (chance of error below ${exact.error_probability.toExponential(0)})`;
}

function exactLine(found) {
  const byFloat = found.exact && found.exact.result !== "identical" && ["equal", "within-bound"].includes(found.verdict);
  return found.exact && el("p", { class: "exact" }, el("strong", {}, "Exact: "),
    byFloat && "accepted by the float verdict only: ", exactWords(found.exact));
}

const verdictLine = (found, ...more) => el("p", { class: `verdict ${found.verdict}` }, el("strong", {}, "Equivalence: "),
  VERDICTS[found.verdict] || found.verdict, found.walkers ? ` (${plural(found.walkers, "walker")})` : "",
  found.reason && `: ${found.reason}`, more);

// Before and after by stage and family: of each quantity two bars a stage, as long as the stage's part of the larger total.
const OVERVIEW = ["dynamic_launches", "bytes", "model_us"];

function overview(target) {
  const names = sideNames(target);
  const { field, view } = viewOf(target);
  const groups = names.flatMap((side) => groupsOf(target, side).map((group) => ({ side, ...group })));
  const of = (metric, side, stage) => groups.filter((group) => group.side === side && (stage === null || group[field] === stage) && group[metric] > 0);
  const weigh = (stage) => sum(groups.filter((group) => group[field] === stage).map((group) => group.model_us || 0));
  const stages = distinct(groups.map((group) => group[field])).sort((a, b) => weigh(b) - weigh(a));
  const weight = (family) => sum(groups.filter((group) => group.family === family).map((group) => group.model_us || 0));
  const families = distinct(groups.map((group) => group.family)).sort((a, b) => weight(b) - weight(a));
  const value = (metric, side) => target[side].totals[metric];
  const bars = (metric, stage) => {
    const most = Math.max(...stages.flatMap((one) => names.map((side) => total(of(metric, side, one), metric) || 0))) || 1;
    return names.map((side) => {
      const found = of(metric, side, stage);
      const parts = families.map((family) => total(found.filter((group) => group.family === family), metric));
      return el("div", { class: "side" },
        el("span", { class: "stack", "aria-hidden": "true" }, families.map((family, i) => parts[i] &&
          el("span", { title: `${family}, ${side}: ${format(parts[i], METRICS[metric][1])}`, style: { width: `${(100 * parts[i]) / most}%`, background: familyColour(family) } }))),
        number(total(found, metric) ?? 0, METRICS[metric][1], found.length ? link.launches(target, side, { [field]: stage }) : null));
    });
  };
  const change = (metric) => {
    const [kind, before, after] = [METRICS[metric][1], value(metric, "before"), target.after && value(metric, "after")];
    return [METRICS[metric][0], " ", el("strong", {}, [format(before, kind), target.after && ` → ${format(after, kind)}`].filter(Boolean).join(""))];
  };
  return el("div", {}, table(`${study.study.name} on ${target.name}, by ${view} and family: ${target.after ? "above before, below after" : unchangedWords(target)}`, [
    { label: view, kind: "text", cell: placeWords },
    ...OVERVIEW.map((metric) => ({ label: change(metric), kind: "text", cell: (stage) => bars(metric, stage) })),
  ], stages, { class: "overview" }),
  el("ul", { class: "legend" }, families.map((family) => el("li", {}, familyTag(family)))), stageLegend(target));
}

// Where the directions of a forward Laplacian become dense, by op and source line.
const sparsityOf = (target) => target.events.map((event) => event.sparsity).filter(Boolean).map((found) => [
  el("p", { class: "sparsity" }, el("strong", {}, "Sparsity: "), found.line),
  found.lost.length > 0 && table("Where directions become dense: what the rows beyond those before cost, at the op and behind it (by rows; this model has no tested error)", [
    { label: "op", kind: "text", cell: (one) => [el("code", {}, one.op), ` ${one.does}`] },
    { label: "line", kind: "text", cell: (one) => (one.source ? el("code", {}, one.source) : scopeLink(one.scope, 60)) },
    { label: "directions", kind: "text", cell: (one) => `${one.directions_before} → ${one.directions_after}` },
    { label: "share", kind: "figure", value: (one) => one.share, cell: (one) => number(one.share, "share") },
    { label: "FLOPs", kind: "figure", value: (one) => one.flops, cell: (one) => number(one.flops, "flops") },
    { label: "bytes", kind: "figure", value: (one) => one.bytes, cell: (one) => number(one.bytes, "bytes") },
    { label: "time", kind: "figure", value: (one) => one.model_us, cell: (one) => number(one.model_us, "us") },
    { label: "instead", kind: "text", cell: (one) => one.instead },
  ], found.lost, { class: "lost" }),
]);

const fallbacks = (target) => distinct(target.events.map((event) => event.fallback).filter(Boolean));

const summarySection = () => [
  study.targets.map((target) => [
    study.targets.length > 1 && el("h3", {}, target.name),
    fallbacks(target).map((reason) => el("p", { class: "verdict" }, el("strong", {}, "Fallback: "), `instead of a ${reason}`)),
    verdictLine(target.equivalence, " ", el("a", { href: "#equivalence" }, "more")),
    exactLine(target.equivalence),
    overview(target),
  ]),
  study.targets.map((target) => [
    el("p", {}, "pipeline: ", el("code", {}, target.pipeline), ` (${format(target.pass_s, "seconds")} without XLA's compiles)`),
    el("ul", { class: "events" }, target.events.map(eventItem)),
    sparsityOf(target),
    totalsTable(target),
  ]),
  whatItIs(),
  el("p", { class: "note" }, `Launches are those of XLA's own list (${study.targets[0].before.footprint.launch_source}), loops multiplied by ` +
    "their trips; memory is XLA's buffer assignment; FLOPs, bytes and time are models. A time that a pass says it chose by is the " +
    "roofline of the whole program's totals, not the sum over its launches. A program for a GPU that is absent is compiled " +
    "without autotuning: compare its figures with each other only. A dash is unknown."),
];

// How far the rewritten program is from the original, as bars.
const ulpWords = (bin, bins) => (bin === bins - 1 ? "not finite" : bin < 2 ? String(bin) : bin < 20 ? `${format(2 ** (bin - 1), "count")}+` : `2^${bin - 1}+`);

function histogram(title, bins) {
  if (!bins.length) return null;
  const most = Math.max(...bins.map(([, count]) => count));
  const bar = (count) => el("span", { class: "bar", "aria-hidden": "true", style: { width: `${(100 * count) / most}%` } });
  return el("table", { class: "histogram" }, el("caption", {}, title),
    el("thead", {}, el("tr", {}, ["distance", "elements"].map((label) => el("th", { scope: "col" }, label)))),
    el("tbody", {}, bins.map(([label, count]) =>
      el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, number(count, "count"), bar(count))))));
}

function checkOf(target) {
  const found = target.equivalence;
  const key = keyOf(target, "after");
  const to = (output) => {
    const position = study.programs[key].returns[found.outputs.indexOf(output)];
    return position >= 0 ? link.op(key, position) : null;
  };
  const ulps = (output) => output.ulp_histogram.map((count, bin) => [ulpWords(bin, output.ulp_histogram.length), count]).filter(([, count]) => count);
  const oracle = (one) => (one.agrees === null ? `not asked: ${one.reason}` : one.agrees ? "agrees" : "does not agree");
  return [
    el("h3", {}, target.name),
    exactLine(found),
    verdictLine(found),
    found.worst && el("p", {}, `worst: ${found.worst}`),
    found.outputs.length > 0 && table(`Rewritten against original on ${target.name}`, columns([
      ["output", "text", "name"],
      ["off truth, float32", "small", "max_abs_error"], ["the original is off", "small", "original_abs_error"], ["tolerance", "small"],
      ["off truth, float64", "small", "max_abs_error_float64"], ["tolerance", "small", "tolerance_float64"],
      ["most ULP", "count", "max_ulp"], ["shift of the mean", "small", "mean_shift"], ["its Monte-Carlo error", "small", "standard_error"],
    ], to), found.outputs),
    el("div", { class: "histograms" }, found.outputs.map((output) => [
      histogram(`${output.name}: elements by units in the last place from the original`, ulps(output)),
      histogram(`${output.name}: elements by absolute difference of at least`, output.abs_histogram.map(([decade, count]) => [`1e${decade}`, count])),
    ])),
    found.oracles.map((one) => el("p", {}, `oracle ${one.name}: ${oracle(one)}`)),
  ];
}

const checksSection = () => [
  el("p", { class: "note" }, "Truth is the original computed in float64. The tolerance in float32 follows from what the original itself loses there; the same " +
    "comparison in float64 leaves a wrong rewrite no rounding to hide in."),
  study.targets.map(checkOf),
];
