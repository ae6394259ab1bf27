// The Laplacian's replay: what the loop is, what it reads and repeats, and what each rewrite says of it.

// The group of the original program that a loop of the inventory is; its numbers lead there.
function loopLink(one) {
  const key = study.targets[0].original;
  const position = study.programs[key].groups.findIndex((group) => group.kind === "loop" && line(group.line).scope === one.location);
  return position < 0 ? null : link.group(key, position);
}

function replayFacts(one) {
  const to = loopLink(one);
  const families = (of) => Object.entries(of).map(([name, count]) => `${format(count, "count")} ${name}`).join(", ");
  return facts([
    ["trips", number(one.trip_count, "count", to)],
    ["direction", one.seed],
    ["adds up", plural(one.accumulated_terms, "term") + " per trip"],
    ["body", [number(one.body_ops, "count", to), " ops, ", number(one.flops_per_trip, "flops", to), " per trip (model)"]],
    ["ops that see the direction", [number(one.direction_ops, "count", to), ` (${families(one.direction_families)})`]],
    ["repeated in every trip though invariant", [number(one.recomputed_ops, "count", to), " ops, ", number(one.recomputed_flops_per_trip, "flops", to), " per trip"]],
    ["residuals of the walkers, read in every trip", [number(one.residuals, "count", to), " values, ", number(one.residual_bytes, "bytes", to)]],
    ["weights, constants, tables", [number(one.shared_values, "count", to), " values, ", number(one.shared_bytes, "bytes", to)]],
  ]);
}

function loopButton(key) {
  const program = programOf(key);
  const loops = program.groups.map((group, i) => [group, i]).filter(([group]) => group.kind === "loop");
  if (!loops.length) return null;
  const [, position] = loops.reduce((best, one) => (one[0].bytes > best[0].bytes ? one : best));
  return el("button", { type: "button", on: { click: () => {
    showInGraph(key, "group", position);
    const graph = graphs.get(key);
    if (!graph.open.has(position)) graph.toggle(position);
  } } }, "open the loop in the graph");
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
    rest.length > 0 && table("Loops that are no replays", [
      text("loop", (one) => one.location, (one) => scopeLink(one.location, 70)),
      figure("trips", "count", (one) => one.trip_count, loopLink),
      figure("ops", "count", (one) => one.body_ops, loopLink),
      text("why not", (one) => one.blockers.join("; ")),
    ], rest),
  ];
}
