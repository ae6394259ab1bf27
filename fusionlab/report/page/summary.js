// What the program is, what became of it, and the totals before and after.

const ROWS = [
  ["kernel launches, dynamic", "dynamic_launches", "count", true],
  ["kernel launches, static", "static_launches", "count", true],
  ["copies and memsets, dynamic", "dynamic_copies", "count"],
  ["temp memory", "temp_bytes", "bytes"],
  ["argument memory", "argument_bytes", "bytes"],
  ["FLOPs of the StableHLO program (model)", "flops", "flops"],
  ["bytes accessed (model)", "bytes_accessed", "bytes", true],
  ["time, sum over the launches (model)", "model_us", "us", true],
  ["StableHLO ops", "stablehlo_ops", "count"],
  ["XLA's compile", "compile_s", "seconds"],
];

const OF_OPS = ["stablehlo_ops", "flops"]; // sums over the ops of the program, not over launches

const valueOf = (side, field) => (side === null ? null : field === "model_us" ? side.totals.model_us : side.footprint[field]);

function totalsTable(target) {
  const unfinished = (side) => side !== null && side.totals.unmodelled_us_launches > 0;
  const cell = (side, name) => (row) =>
    number(valueOf(side, row[1]), row[2], row[3] && side ? link.launches(target, name, {}) : OF_OPS.includes(row[1]) && side
      ? link.group(keyOf(target, name), 0) : null, row[1] === "model_us" && unfinished(side));
  return table(
    `${study.study.name} on ${target.name}`,
    [
      text("", null, (row) => row[0]),
      { label: "before", kind: "figure", cell: cell(target.before, "before") },
      { label: "after", kind: "figure", cell: cell(target.after, "after") },
      { label: "after / before", kind: "figure", cell: (row) => {
        const [old, now] = [valueOf(target.before, row[1]), valueOf(target.after, row[1])];
        return number(old && known(now) ? now / old : null, "ratio");
      } },
    ],
    ROWS,
    { class: "totals" },
  );
}

function whatItIs() {
  const found = study.study.workload;
  const program = study.programs[study.targets[0].original];
  const rows = found
    ? [
        ["model", found.model], ["molecule", `${found.molecule}, ${plural(found.electrons, "electron")}`],
        ["program", found.program], ["Laplacian", found.laplacian], ["walkers", format(found.walkers, "count")],
        ["dtype", found.dtype],
      ]
    : [["file", study.study.name]];
  const types = (all) => el("details", {}, el("summary", {}, plural(all.length, "tensor")), el("p", { class: "code" }, all.join(", ")));
  return facts([
    ...rows,
    ["StableHLO", [el("a", { href: link.group(study.targets[0].original, 0), class: "num" },
      format(program.stablehlo_ops, "count")), ` ops, lowered for ${program.platform}`]],
    ["arguments", types(program.inputs)],
    ["results", types(program.outputs)],
  ]);
}

function eventList(target) {
  return el("ul", { class: "events" }, target.events.map((event) =>
    el("li", { class: event.applied ? "applied" : "declined" },
      el("strong", {}, event.applied ? "applied " : `declined (${event.kind}) `), el("code", {}, event.pass), ": ",
      event.applied || event.reason, " at ", scopeLink(event.location, 80)),
  ));
}

const WORDS = {
  equal: "equal, bit for bit",
  "within-bound": "equal within the rounding that the original itself has",
  different: "DIFFERENT: the rewritten program was not measured",
  "not-checked": "not checked",
};

function exactWords(exact) {
  if (exact.result !== "identical") return `${exact.result}: ${exact.reason}` +
    (exact.first_difference ? `; the first value that differs: ${exact.first_difference}` : "");
  return `identical in ${plural(exact.draws, "draw")} over ${plural(exact.primes, "prime")}` +
    (exact.walkers ? ` of ${plural(exact.walkers, "walker")}` : "") + ` (chance of error below ${exact.error_probability.toExponential(0)})`;
}

function exactLine(found) {
  const passed = ["equal", "within-bound"].includes(found.verdict);
  return found.exact && el("p", { class: "exact" }, el("strong", {}, "Exact: "),
    found.exact.result !== "identical" && passed && "accepted by the float verdict only: ", exactWords(found.exact));
}

function verdictLine(target, linked = true) {
  const found = target.equivalence;
  return el("p", { class: `verdict ${found.verdict}` }, el("strong", {}, "Equivalence: "),
    WORDS[found.verdict] || found.verdict, found.walkers ? ` (${plural(found.walkers, "walker")})` : "",
    found.reason && `: ${found.reason}`,
    linked && [" ", el("a", { href: "#equivalence" }, "more")]);
}

function summarySection() {
  return [
    whatItIs(),
    study.targets.map((target) => [
      totalsTable(target),
      el("p", {}, "pipeline: ", el("code", {}, target.pipeline), ` (${format(target.pass_s, "seconds")} without XLA's compiles)`),
      eventList(target),
      exactLine(target.equivalence),
      verdictLine(target),
    ]),
    el("p", { class: "note" }, noteOf(study.targets[0])),
  ];
}

const noteOf = (target) =>
  `Launches are those of XLA's own list (${target.before.footprint.launch_source}), loops multiplied by their trips; ` +
  "memory is XLA's buffer assignment; FLOPs, bytes and time are models. A time that a pass " +
  "says it chose by is the roofline of the whole program's totals, not the sum over its launches. A program for a GPU that is absent is compiled " +
  "without autotuning: compare its figures with each other only. A dash is unknown.";
