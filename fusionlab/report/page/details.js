// The panel beside the page: one op, launch, group, scope or source line, with everything that is joined to it.

const facts = (rows) =>
  el("dl", {}, rows.filter(Boolean).map(([label, value]) => [el("dt", {}, label), el("dd", {}, value)]));

const heading = (kind, name) => el("h2", { id: "details-title", tabindex: "-1" }, el("small", {}, kind), " ", name);

function targetsOf(key) {
  return study.targets.flatMap((target) =>
    sideNames(target).filter((side) => keyOf(target, side) === key).map((side) => [target, side]),
  );
}

function opDetails(key, position) {
  const program = programOf(key);
  const op = program.ops[Number(position)];
  if (!op) return null;
  const inLaunches = targetsOf(key).map(([target, side]) => {
    const found = launchesOfOp(target, side, op.position);
    return found.length ? launchTable(`Launches of the same name stack on ${target.name}, ${side}: ${format(found.length, "count")}`, target, side, found) : null;
  });
  const flows = (end, other) =>
    program.flows
      .filter((flow) => flow[end] === op.position)
      .slice(0, 30)
      .map((flow) =>
        el("li", {}, flow[other] < 0 ? "an argument" : opLink(key, flow[other]), " ", number(flow[2], "bytes"),
          ` ${program.kinds[flow[3]]}`),
      );
  return [
    heading("op", op.name),
    el("pre", { class: "code" }, op.text),
    el("p", {}, el("button", { type: "button", on: { click: () => showInGraph(key, "op", op.position) } }, "show in the graph")),
    facts([
      ["family", familyTag(op.family)],
      ["from", [op.phase, op.stage && `stage ${op.stage}`, op.role].filter(Boolean).join(", ") || UNKNOWN],
      ["scope", scopeLink(op.scope, 400)],
      ["source", sourceLink(op.source)],
      ["runs", number(op.runs, "count")],
      ["bytes, all runs (model, unfused)", number(op.bytes, "bytes")],
      ["FLOPs, all runs (model)", op.unmodelled ? "unmodelled" : number(op.flops, "flops")],
    ]),
    flowList("Reads", flows(1, 0)),
    flowList("Read by", flows(0, 1)),
    inLaunches,
  ];
}

const flowList = (title, items) =>
  el("div", {}, el("h3", {}, title), items.length ? el("ul", { class: "flows" }, items) : el("p", {}, "no op"));

function opLink(key, position) {
  const op = programOf(key).ops[position];
  return el("a", { href: link.op(key, position), class: "code" }, `${op.name} ${op.text.split(" = ").pop().split(" ")[0]}`);
}

function opTable(caption, key, ops) {
  const to = (op) => link.op(key, op.position);
  return table(
    caption,
    [
      text("op", (op) => op.text, (op) => el("a", { href: to(op), class: "code", title: op.text }, short(op.text, 46))),
      figure("bytes", "bytes", (op) => op.bytes, to),
      figure("runs", "count", (op) => op.runs, to),
      figure("FLOPs", "flops", (op) => (op.unmodelled ? null : op.flops), to),
      text("family", (op) => op.family, (op) => familyTag(op.family)),
      text("source", (op) => op.source, (op) => sourceLink(op.source)),
    ],
    ops,
    { by: 1 },
  );
}

function launchDetails(targetName, side, name) {
  const target = targetOf(targetName);
  const launches = launchesOf(target, side).filter((row) => row.name === name);
  if (!launches.length) return null;
  const key = keyOf(target, side);
  const ops = [...new Set(launches.flatMap((row) => row.ops))].map((position) => programOf(key).ops[position]);
  const refused = target[side].refusals ? target[side].refusals.found : [];
  return [
    heading("launch", name),
    el("p", {}, `on ${target.name}, ${side}`),
    launches.map((row) =>
      facts([
        ["family", familyTag(row.family)],
        ["from", [row.phase, row.stage && `stage ${row.stage}`, row.role].filter(Boolean).join(", ") || UNKNOWN],
        ["said by", row.attributed_by ? `${row.attributed_by} (${format(row.stage_share, "share")} agree)` : UNKNOWN],
        ["scope", scopeLink(row.op_name, 400)],
        ["source", sourceLink(row.source)],
        ["loop", row.loop || "outside of loops"],
        ["runs", number(row.dynamic_launches, "count")],
        ["bytes, all runs (model)", number(row.bytes, "bytes")],
        ["FLOPs, all runs (model)", number(row.flops, "flops")],
        ["without a FLOP rule", row.unmodelled.join(", ") || "nothing"],
        ["time, all runs (model)", [number(row.model_us, "us"), row.model_source && ` by ${row.model_source}`]],
      ]),
    ),
    refusalTable("Its result is read from memory because", target, side, refused.filter((one) => one.kernel === name)),
    refusalTable("What it reads is not fused into it because", target, side,
      refused.filter((one) => one.consumers.includes(name))),
    opTable(`StableHLO ops of the same name stack: ${format(ops.length, "count")}`, key, ops),
  ];
}

function groupDetails(key, position) {
  const program = programOf(key);
  const group = program.groups[Number(position)];
  if (!group) return null;
  const at = Number(position);
  const inside = program.ops.filter((op) => pathOf(program, op.group).includes(at) || at === 0);
  return [
    heading(group.kind, group.label),
    el("p", {}, el("button", { type: "button", on: { click: () => showInGraph(key, "group", at) } }, "show in the graph")),
    facts([
      group.kind === "loop" && ["trips", known(group.trips) ? number(group.trips, "count") : "unknown, counted once"],
      group.kind === "repeat" && ["repeats", `${group.repeats}, ${group.identical ? "identical" : "not all identical"}`],
      ["ops", number(group.ops, "count")],
      ["bytes, all runs (model, unfused)", number(group.bytes, "bytes")],
      ["FLOPs, all runs (model)", number(group.flops, "flops", null, group.unmodelled > 0)],
      group.unmodelled > 0 && ["ops without a FLOP rule", number(group.unmodelled, "count")],
    ]),
    group.line !== undefined && el("pre", { class: "code" }, line(group.line).text),
    opTable("Its ops", key, inside),
  ];
}

// Everything in all programs that has a scope or a source line.
function joined(kind, name, field) {
  const parts = [];
  for (const key of Object.keys(study.programs)) {
    const ops = programOf(key).ops.filter((op) => op[field] === name);
    if (ops.length) parts.push(opTable(`Ops of the ${key} program`, key, ops));
  }
  const launchField = field === "scope" ? "op_name" : "source";
  for (const target of study.targets) {
    for (const side of sideNames(target)) {
      const found = launchesOf(target, side).filter((row) => row[launchField] === name);
      if (found.length) parts.push(launchTable(`Launches on ${target.name}, ${side}`, target, side, found));
    }
  }
  return [heading(kind, name), (study.source_lines || {})[name] && el("pre", { class: "code" }, study.source_lines[name]), parts];
}

function launchesDetails(targetName, side, ...by) {
  const target = targetOf(targetName);
  const wanted = [];
  for (let i = 0; i + 1 < by.length; i += 2) wanted.push([by[i], by[i + 1]]);
  const matches = (row) => wanted.every(([column, value]) => (row[column] || "unattributed") === value);
  const found = launchesOf(target, side).filter(matches);
  const words = wanted.map(([column, value]) => `${column} ${value}`).join(", ");
  return [heading("launches", `${target.name}, ${side}${words && `: ${words}`}`),
    launchTable(plural(found.length, "launch site"), target, side, found, { shown: 50 })];
}

function clusterDetails(targetName, side, position) {
  const target = targetOf(targetName);
  const found = target[side].clusters[Number(position)];
  if (!found) return null;
  const rows = launchesOf(target, side).filter((row) => found.units.includes(row.name));
  return [heading("cluster", `${target.name}, ${side}, ${Number(position) + 1}`), launchTable(plural(rows.length, "launch"), target, side, rows)];
}

function opClusterDetails(key, position) {
  const found = programOf(key).clusters[Number(position)];
  if (!found) return null;
  return [heading("cluster of ops", `${key}, ${Number(position) + 1}`),
    opTable(plural(found.ops.length, "op"), key, found.ops.map((op) => programOf(key).ops[op]))];
}

const DETAILS = {
  cluster: clusterDetails,
  "op-cluster": opClusterDetails,
  op: opDetails,
  launch: launchDetails,
  group: groupDetails,
  "launches-of": launchesDetails,
  scope: (name) => joined("scope", name, "scope"),
  source: (name) => joined("source", name, "source"),
};

let openedFrom = null;

// Null for an address that names nothing: a program, a side or an encoding that there is not.
function builtOf(build, parts) {
  try {
    return build(...parts.map(decodeURIComponent));
  } catch {
    return null;
  }
}

function showDetails(hash) {
  const [kind, ...parts] = hash.slice(1).split("/");
  const panel = document.getElementById("details");
  const made = Object.hasOwn(DETAILS, kind) && builtOf(DETAILS[kind], parts);
  if (!made) return false;
  if (panel.hidden) openedFrom = document.activeElement;
  replace(panel, el("button", { type: "button", class: "close", "aria-label": "close details", on: { click: closeDetails } }, "×"),
    made);
  panel.hidden = false;
  document.body.classList.add("with-details");
  panel.scrollTop = 0;
  document.getElementById("details-title").focus({ preventScroll: true });
  return true;
}

function closeDetails() {
  history.replaceState(null, "", location.pathname + location.search);
  hideDetails();
}

// The focus goes back to what opened the panel, or to the search box where that is gone or hidden.
function hideDetails() {
  document.getElementById("details").hidden = true;
  document.body.classList.remove("with-details");
  if (!openedFrom || openedFrom === document.body) return;
  openedFrom.focus();
  if (document.activeElement !== openedFrom) document.getElementById("search").focus();
}
