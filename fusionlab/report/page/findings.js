// What was found in the program: its replay, clusters that could be one kernel, refused fusions, what each pass changed.

// The group of the original program that a loop of the inventory is; its numbers lead there.
function loopLink(one) {
  const key = study.targets[0].original;
  const position = study.programs[key].groups.findIndex((group) => group.kind === "loop" && line(group.line).scope === one.location);
  return position < 0 ? null : link.group(key, position);
}

function replayFacts(one) {
  const to = loopLink(one);
  const figure = (field, kind = "count") => number(one[field], kind, to);
  const families = Object.entries(one.direction_families).map(([name, count]) => `${format(count, "count")} ${name}`).join(", ");
  return facts([
    ["trips", figure("trip_count")], ["direction", one.seed], ["adds up", plural(one.accumulated_terms, "term") + " per trip"],
    ["body", [figure("body_ops"), " ops, ", figure("flops_per_trip", "flops"), " per trip (model)"]],
    ["ops that see the direction", [figure("direction_ops"), ` (${families})`]],
    ["repeated in every trip though invariant", [figure("recomputed_ops"), " ops, ", figure("recomputed_flops_per_trip", "flops"), " per trip"]],
    ["residuals of the walkers, read in every trip", [figure("residuals"), " values, ", figure("residual_bytes", "bytes")]],
    ["weights, constants, tables", [figure("shared_values"), " values, ", figure("shared_bytes", "bytes")]],
  ]);
}

function loopButton(key) {
  const { groups } = programOf(key);
  const loops = groups.flatMap((group, i) => (group.kind === "loop" ? [i] : []));
  if (!loops.length) return null;
  const position = loops.reduce((best, i) => (groups[i].bytes > groups[best].bytes ? i : best));
  return button("open the loop in the graph", () => {
    showInGraph(key, "group", position);
    if (!graphOf(key).open.has(position)) graphOf(key).toggle(position);
  });
}

function replaySection() {
  const found = study.replays.loops;
  const replays = found.filter((one) => one.is_replay);
  const rest = found.filter((one) => !one.is_replay);
  return [
    replays.length ? replays.map((one) => [el("h3", {}, "Replay at ", el("code", {}, one.location)), replayFacts(one)])
      : el("p", {}, found.length ? "No loop of the program is a replay." : "The program has no loop, so no replay."),
    loopButton(study.targets[0].original),
    study.pictures.map((picture) => el("figure", { class: "picture" }, el("figcaption", {}, picture.caption),
      el("img", { src: `data:image/svg+xml;base64,${picture.svg_base64}`, alt: `the replay drawn by Graphviz, ${picture.caption}: a panel per stage and role; its figures are those of the graph above` }))),
    rest.length > 0 && table("Loops that are no replays", columns([
      ["loop", "scope", "location", (one) => scopeLink(one.location, 70)],
      ["trips", "count", "trip_count"], ["ops", "count", "body_ops"],
      ["why not", "text", (one) => one.blockers.join("; ")],
    ], loopLink), rest),
  ];
}

// A table of clusters, of launches or of ops; `units` counts what is in one, `list` shows it.
function clusterTable(caption, what, staged, found, units, list, to, [before, after], shown) {
  return table(caption, columns([
    [what, "text", units, (one) => el("details", {}, el("summary", {}, list(one)[0]), el("ul", {}, list(one)[1].map((item) => el("li", {}, item))))],
    staged ? ["stages", "text", (one) => Object.keys(one.stages).join(" + ")]
      : ["scopes", "text", (one) => Object.keys(one.scopes).slice(0, 3).join(", ")],
    ["runs", "count"], ["FLOP/byte", "ratio", "intensity_flop_per_byte"], before,
    ["conversions", "count", "boundary_conversions"], ["bytes", "bytes"], ["as one kernel", "bytes", "least_bytes"], after,
  ], (one) => to(found.indexOf(one))), found, { shown });
}

const launchClusters = ([target, side]) => clusterTable(
  `Clusters of launches on ${target.name}${sideWords(target, side)}, those that can give back most time first`, "launches", isStaged(target), target[side].clusters,
  (one) => one.units.length,
  ({ units }) => [[plural(units.length, "launch"), ": ", short(units[0], 34), units.length > 1 && ", …"], units.map((name) => launchLink(target, side, name))],
  (position) => link.cluster(target, side, position), [["each", "us", "us_per_invocation"], ["can give back", "us", "gain_us"]], 12);

const opClusters = (key) => clusterTable(
  `Clusters of StableHLO ops of the ${key} program (nothing fused), those that could save most bytes first`, "ops", study.targets.some(isStaged), programOf(key).clusters,
  "units", (one) => [plural(one.units, "op"), one.ops.slice(0, 200).map((op) => opLink(key, op))],
  (position) => link.ops(key, position), [null, ["saved", "bytes", "saved_bytes"]], 8);

const clustersSection = () => [
  el("p", { class: "note" }, "Groups of elementwise and layout work with nothing else on any path between them, ranked by the criteria of the " +
    "workload characterisation: low intensity, short and often run, layout conversions at boundaries of " + (study.targets.some(isStaged) ? "stages" : "scopes") + ". What they can give back is a bound: " +
    "one launch and the roofline of the bytes that cross the boundary."),
  sides.map(launchClusters),
  programKeys().map(opClusters),
  stageLegend(...study.targets),
];

function refusalTable(caption, target, side, found, ofOneCause) {
  const consumer = (name) => (launchesOf(target, side).some((row) => row.name === name) ? launchLink(target, side, name) : el("code", {}, name));
  return found.length > 0 && table(caption, columns([
    ["kernel", "text", "kernel", (one) => launchLink(target, side, one.kernel)], ["boundary", "us", "boundary_us"],
    !ofOneCause && ["cause", "text"],
    ["runs", "count", "dynamic_launches"], ["result", "bytes", "result_bytes"],
    ["read by", "text", (one) => one.consumers.join(", "), (one) => one.consumers.slice(0, 3).map((name, i) => [i ? ", " : "", consumer(name)])],
    isStaged(target) ? ["stage", "text", (one) => `${one.stage} ${one.role}`] : ["transform", "text"], ["source", "source"],
    ["scope", "scope", "op_name", (one) => scopeLink(one.op_name, 36)],
  ], (one) => link.launch(target, side, one.kernel)), found, { by: 1 });
}

function causes([target, side]) {
  const found = target[side].refusals;
  if (!found) return el("p", {}, `${target.name}${sideWords(target, side)}: XLA keeps no record of its fusion decisions here.`);
  const { coverage } = found;
  const cause = (one) => {
    const { us_lost: lost } = one.xla;
    return folded({}, [number(one.boundary_us, "us"), " at ", number(one.refusals, "count"),
      one.refusals === 1 ? " boundary of " : " boundaries of ", number(one.dynamic_launches, "count"),
      one.dynamic_launches === 1 ? " launch: " : " launches: ", el("strong", {}, one.cause),
      known(lost) && ` (XLA's own estimate: ${format(Math.abs(lost), "us")} ${lost > 0 ? "lost" : "saved"} by refusing)`],
    () => refusalTable(one.cause, target, side, found.found.filter((refused) => refused.cause === one.cause), true));
  };
  return [
    el("h3", {}, `${target.name}${sideWords(target, side)}`),
    found.causes.map(cause),
    el("p", { class: "note" }, `${coverage.joined} of ${coverage.producers} refused producers are joined to a launch ` +
      `(${coverage.merged} were merged with all their readers later, ${coverage.results} are results of the program or a loop, ${coverage.idle} never run, ${coverage.not_joined} are not found again); ` +
      `${coverage.launches_refused} of ${coverage.launches} launch sites have a refusal on record. A boundary costs one launch and its result ` +
      "written and read once (model)."),
  ];
}

const refusalsSection = () => [sides.map(causes), stageLegend(...study.targets)];

// What each pass changed, side by side: what was removed on the left, what was added on the right. Folded until asked for.
const HUNK_LINES = 60;

function lineItem(position, mark, words) {
  const found = line(position);
  return el("li", {}, el("span", { class: "mark", "aria-hidden": "true" }, mark), " ", el("code", { title: found.scope }, words || found.text), " ",
    found.source && sourceLink(found.source), found.scope && [" ", scopeLink(found.scope, 34)]);
}

function changedLines(what, positions, mark) {
  const list = el("ol", { class: `lines ${what}` });
  const more = button(`show all ${format(positions.length, "count")}`, () => fillTo(positions.length), { class: "more" });
  const fillTo = (count) => {
    replace(list, positions.slice(0, count).map((position) => lineItem(position, mark)));
    more.hidden = positions.length <= count;
  };
  fillTo(HUNK_LINES);
  return el("div", {}, el("h4", {}, `${what}: ${plural(positions.length, "op")}`), list, more);
}

function hunkBody(hunk) {
  const some = (all, item) => el("ol", { class: "lines" }, all.slice(0, 200).map(item));
  const listed = (title, all, item) => all.length > 0 && [el("h4", {}, `${title}: ${plural(all.length, "op")}`), some(all, item)];
  return [
    hunk.reads.length > 0 && el("details", {}, el("summary", {}, `reads ${plural(hunk.reads.length, "op")} that ${hunk.reads.length === 1 ? "is" : "are"} unchanged`),
      some(hunk.reads, (position) => lineItem(position, " "))),
    el("div", { class: "sides" }, changedLines("removed", hunk.removed, "−"), changedLines("added", hunk.added, "+")),
    listed("moved", hunk.moved, (one) => lineItem(one.line, ">", `${line(one.line).text}  to ${one.to || "outside of the loop"}`)),
    listed("reads another value", hunk.rewired, (one) => lineItem(one.line, "~", one.text)),
  ];
}

function hunkPart(hunk) {
  const counts = ["removed", "added", "moved", "rewired"].filter((what) => hunk[what].length)
    .map((what) => `${format(hunk[what].length, "count")} ${what === "rewired" ? "reading another value" : what}`);
  const place = [hunk.loop && ` in ${hunk.loop}`, hunk.scope && [" at ", el("code", {}, scopeTail(hunk.scope, 80))]];
  return folded({ class: "hunk" }, [counts.join(", "), place], () => hunkBody(hunk));
}

function changesOf(target) {
  if (!target.diffs.length) return el("p", {}, `${target.name}: no pass changed the program.`);
  return target.diffs.map((diff) => el("div", {},
    el("h3", {}, study.targets.length > 1 && `${target.name}: `, el("code", {}, diff.pass)),
    el("p", {}, number(diff.removed, "count"), " ops removed, ", number(diff.added, "count"), " added, ", number(diff.moved, "count"), " moved, ",
      number(diff.rewired, "count"), " read another value, ", number(diff.unchanged, "count"), " unchanged"),
    diff.hunks.map(hunkPart)));
}

const changesSection = () => [
  el("p", { class: "note" }, "A value has one name through all programs; a change is put together with what hangs together. Numbers that stand in place of operands are no ops."),
  study.targets.map(changesOf),
];
