// Clusters that could be one kernel, and the fusions that XLA refused, by cause.

function clusterTable(target, side) {
  const inside = (one) => el("details", {}, el("summary", {}, plural(one.units.length, "launch"), ": ", short(one.units[0], 34), one.units.length > 1 && ", …"),
    el("ul", {}, one.units.map((name) => el("li", {}, launchLink(target, side, name)))));
  const to = (one) => link.cluster(target, side, target[side].clusters.indexOf(one));
  return table(`Clusters of launches on ${target.name}, ${side}, those that can give back most time first`, [
    text("launches", (one) => one.units.length, inside),
    text("stages", (one) => Object.keys(one.stages).join(" + ")),
    figure("runs", "count", (one) => one.runs, to),
    figure("FLOP/byte", "intensity", (one) => one.intensity_flop_per_byte, to),
    figure("each", "us", (one) => one.us_per_invocation, to),
    figure("conversions", "count", (one) => one.boundary_conversions, to),
    figure("bytes", "bytes", (one) => one.bytes, to),
    figure("as one kernel", "bytes", (one) => one.least_bytes, to),
    figure("can give back", "us", (one) => one.gain_us, to),
  ], target[side].clusters, { shown: 12 });
}

function opClusterTable(key) {
  const inside = (one) => el("details", {}, el("summary", {}, plural(one.units, "op")),
    el("ul", {}, one.ops.slice(0, 200).map((op) => el("li", {}, opLink(key, op)))));
  const to = (one) => link.ops(key, programOf(key).clusters.indexOf(one));
  return table(`Clusters of StableHLO ops of the ${key} program (nothing fused), those that could save most bytes first`, [
    text("ops", (one) => one.units, inside),
    text("stages", (one) => Object.keys(one.stages).join(" + ")),
    figure("runs", "count", (one) => one.runs, to),
    figure("FLOP/byte", "intensity", (one) => one.intensity_flop_per_byte, to),
    figure("conversions", "count", (one) => one.boundary_conversions, to),
    figure("bytes", "bytes", (one) => one.bytes, to),
    figure("as one kernel", "bytes", (one) => one.least_bytes, to),
    figure("saved", "bytes", (one) => one.saved_bytes, to),
  ], programOf(key).clusters, { shown: 8 });
}

function clustersSection() {
  return [
    el("p", { class: "note" }, "Groups of elementwise and layout work with nothing else on any path between them, ranked by the criteria of the " +
      "workload characterisation: low intensity, short and often run, layout conversions at stage boundaries. What they can give back is a bound: " +
      "one launch and the roofline of the bytes that cross the boundary."),
    study.targets.flatMap((target) => sideNames(target).map((side) => clusterTable(target, side))),
    Object.keys(study.programs).map(opClusterTable),
  ];
}

function refusalTable(caption, target, side, found, ofOneCause) {
  if (!found.length) return null;
  const to = (one) => link.launch(target, side, one.kernel);
  return table(caption, [
    text("kernel", (one) => one.kernel, (one) => launchLink(target, side, one.kernel)),
    figure("boundary", "us", (one) => one.boundary_us, to),
    ...(ofOneCause ? [] : [text("cause", (one) => one.cause)]),
    figure("runs", "count", (one) => one.dynamic_launches, to),
    figure("result", "bytes", (one) => one.result_bytes, to),
    text("read by", (one) => one.consumers.join(", "), (one) => one.consumers.slice(0, 3).map((name, i) => [i ? ", " : "", consumer(target, side, name)])),
    text("stage", (one) => `${one.stage} ${one.role}`),
    text("source", (one) => one.source, (one) => sourceLink(one.source)),
    text("scope", (one) => one.op_name, (one) => scopeLink(one.op_name, 36)),
  ], found, { by: 1 });
}

const consumer = (target, side, name) =>
  launchesOf(target, side).some((row) => row.name === name) ? launchLink(target, side, name) : el("code", {}, name);

function causes(target, side) {
  const found = target[side].refusals;
  if (!found) return el("p", {}, `${target.name}, ${side}: XLA keeps no record of its fusion decisions here.`);
  const coverage = found.coverage;
  return [
    el("h3", {}, `${target.name}, ${side}`),
    found.causes.map((cause) => {
      const xla = cause.xla.us_lost;
      const body = el("div");
      const part = el("details", { on: { toggle: () => part.open && !body.childNodes.length &&
        replace(body, refusalTable(cause.cause, target, side, found.found.filter((one) => one.cause === cause.cause), true)) } },
        el("summary", {}, number(cause.boundary_us, "us"), " at ", number(cause.refusals, "count"),
          cause.refusals === 1 ? " boundary of " : " boundaries of ", number(cause.dynamic_launches, "count"),
          cause.dynamic_launches === 1 ? " launch: " : " launches: ", el("strong", {}, cause.cause),
          known(xla) && ` (XLA's own estimate: ${format(Math.abs(xla), "us")} ${xla > 0 ? "lost" : "saved"} by refusing)`), body);
      return part;
    }),
    el("p", { class: "note" }, `${coverage.joined} of ${coverage.producers} refused producers are joined to a launch ` +
      `(${coverage.merged} were merged with all their readers later, ${coverage.idle} never run, ${coverage.not_joined} are not found again); ` +
      `${coverage.launches_refused} of ${coverage.launches} launch sites have a refusal on record. A boundary costs one launch and its result ` +
      "written and read once (model)."),
  ];
}

const refusalsSection = () => study.targets.flatMap((target) => sideNames(target).map((side) => causes(target, side)));
