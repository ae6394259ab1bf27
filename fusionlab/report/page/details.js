// The panel beside the page: one op, launch, group, scope or source line, with everything that is joined to it.

const heading = (kind, name) => el("h2", { id: "details-title", tabindex: "-1" }, el("small", {}, kind), " ", name);
const origin = (one, scope, ...more) => [
  ["family", familyTag(one.family)],
  ["from", [one.phase, /^[A-E]$/.test(one.stage) && `stage ${one.stage}`, one.role].filter(Boolean).join(", ") || one.transform || UNKNOWN],
  ...more, ["scope", scopeLink(scope, 400)], ["source", sourceLink(one.source)],
];
const graphButton = (key, kind, position) =>
  el("p", {}, button("show in the graph", () => showInGraph(key, kind, position)));

function opLink(key, position) {
  const op = programOf(key).ops[position];
  return code(link.op(key, position), `${op.name} ${op.text.split(" = ").pop().split(" ")[0]}`);
}

function opDetails(key, position) {
  const program = programOf(key);
  const op = program.ops[Number(position)];
  if (!op) return null;
  const launched = sides.filter(([target, side]) => keyOf(target, side) === key).map(([target, side]) => {
    const found = launchesOf(target, side).filter((launch) => launch.ops.includes(op.position));
    const caption = `Launches of the same name stack on ${target.name}${sideWords(target, side)}: ${format(found.length, "count")}`;
    return found.length > 0 && launchTable(caption, target, side, found);
  });
  const flows = (title, end, other) => {
    const items = program.flows.filter((flow) => flow[end] === op.position).slice(0, 30).map((flow) =>
      el("li", {}, flow[other] < 0 ? "an argument" : opLink(key, flow[other]), " ", number(flow[2], "bytes"), ` ${program.kinds[flow[3]]}`));
    return el("div", {}, el("h3", {}, title), items.length ? el("ul", { class: "flows" }, items) : el("p", {}, "no op"));
  };
  return [
    heading("op", op.name),
    el("pre", { class: "code" }, op.text),
    graphButton(key, "op", op.position),
    facts([
      ...origin(op, op.scope),
      ["runs", number(op.runs, "count")], ["bytes, all runs (model, unfused)", number(op.bytes, "bytes")],
      ["FLOPs, all runs (model)", op.unmodelled ? "unmodelled" : number(op.flops, "flops")],
    ]),
    flows("Reads", 1, 0),
    flows("Read by", 0, 1),
    launched,
  ];
}

function launchDetails(targetName, side, name) {
  const target = targetOf(targetName);
  const launches = launchesOf(target, side).filter((row) => row.name === name);
  if (!launches.length) return null;
  const key = keyOf(target, side);
  const ops = distinct(launches.flatMap((row) => row.ops)).map((position) => programOf(key).ops[position]);
  const refused = target[side].refusals ? target[side].refusals.found : [];
  const refusals = (caption, wanted) => refusalTable(caption, target, side, refused.filter(wanted));
  return [
    heading("launch", name),
    el("p", {}, `on ${target.name}${sideWords(target, side)}`),
    launches.map((row) => facts([
      ...origin(row, row.op_name, ["said by", row.attributed_by ? `${row.attributed_by} (${format(row.stage_share, "share")} agree)` : UNKNOWN]),
      ["loop", row.loop || "outside of loops"], ["runs", number(row.dynamic_launches, "count")],
      ["bytes, all runs (model)", number(row.bytes, "bytes")], ["FLOPs, all runs (model)", number(row.flops, "flops")],
      ["without a FLOP rule", row.unmodelled.join(", ") || "nothing"],
      ["time, all runs (model)", [number(row.model_us, "us"), row.model_source && ` by ${row.model_source}`]],
    ])),
    refusals("Its result is read from memory because", (one) => one.kernel === name),
    refusals("What it reads is not fused into it because", (one) => one.consumers.includes(name)),
    opTable(`StableHLO ops of the same name stack: ${format(ops.length, "count")}`, key, ops),
  ];
}

function groupDetails(key, position) {
  const program = programOf(key);
  const at = Number(position);
  const group = program.groups[at];
  if (!group) return null;
  return [
    heading(group.kind, group.label),
    graphButton(key, "group", at),
    facts([
      group.kind === "loop" && ["trips", known(group.trips) ? number(group.trips, "count") : "unknown, counted once"],
      group.kind === "repeat" && ["repeats", `${group.repeats}, ${group.identical ? "identical" : "not all identical"}`],
      ["ops", number(group.ops, "count")], ["bytes, all runs (model, unfused)", number(group.bytes, "bytes")],
      ["FLOPs, all runs (model)", number(group.flops, "flops", null, group.unmodelled > 0)],
      group.unmodelled > 0 && ["ops without a FLOP rule", number(group.unmodelled, "count")],
    ]),
    group.line !== undefined && el("pre", { class: "code" }, line(group.line).text),
    opTable("Its ops", key, program.ops.filter((op) => at === 0 || pathOf(program, op.group).includes(at))),
  ];
}

// Everything in all programs that has a scope or a source line.
function joined(kind, name, launchField) {
  const ops = programKeys().map((key) => [key, programOf(key).ops.filter((op) => op[kind] === name)]);
  const launches = sides.map(([target, side]) => [target, side, launchesOf(target, side).filter((row) => row[launchField] === name)]);
  const source = (study.source_lines || {})[name];
  return [
    heading(kind, name),
    source && el("pre", { class: "code" }, source),
    ops.map(([key, found]) => found.length > 0 && opTable(`Ops of the ${key} program`, key, found)),
    launches.map(([target, side, found]) => found.length > 0 && launchTable(`Launches on ${target.name}${sideWords(target, side)}`, target, side, found)),
  ];
}

function launchesDetails(targetName, side, ...by) {
  const target = targetOf(targetName);
  const wanted = by.flatMap((column, i) => (i % 2 || i + 1 === by.length ? [] : [[column, by[i + 1]]]));
  const found = launchesOf(target, side).filter((row) => wanted.every(([column, value]) => (row[column] || "unattributed") === value));
  const words = wanted.map(([column, value]) => `${column} ${value}`).join(", ");
  return [heading("launches", `${target.name}${sideWords(target, side)}${words && `: ${words}`}`),
    launchTable(plural(found.length, "launch site"), target, side, found, { shown: 50 })];
}

function clusterDetails(targetName, side, position) {
  const target = targetOf(targetName);
  const rows = launchesOf(target, side).filter((row) => target[side].clusters[position].units.includes(row.name));
  return [heading("cluster", `${target.name}${sideWords(target, side)}, ${Number(position) + 1}`), launchTable(plural(rows.length, "launch"), target, side, rows)];
}

function opClusterDetails(key, position) {
  const ops = programOf(key).clusters[position].ops.map((op) => programOf(key).ops[op]);
  return [heading("cluster of ops", `${key}, ${Number(position) + 1}`), opTable(plural(ops.length, "op"), key, ops)];
}

const DETAILS = {
  cluster: clusterDetails, "op-cluster": opClusterDetails, op: opDetails, launch: launchDetails, group: groupDetails,
  "launches-of": launchesDetails, scope: (name) => joined("scope", name, "op_name"), source: (name) => joined("source", name, "source"),
};

// Null for an address that names nothing: a program, a side, a cluster or an encoding that there is not.
function builtOf(build, parts) {
  try {
    return build(...parts.map(decodeURIComponent));
  } catch {
    return null;
  }
}

const panel = document.getElementById("details");
let openedFrom = null;

function showDetails(hash) {
  const [kind, ...parts] = hash.slice(1).split("/");
  const made = Object.hasOwn(DETAILS, kind) && builtOf(DETAILS[kind], parts);
  if (!made) return false;
  if (panel.hidden) openedFrom = document.activeElement;
  replace(panel, button("×", closeDetails, { class: "close", "aria-label": "close details" }), made);
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
  panel.hidden = true;
  document.body.classList.remove("with-details");
  if (!openedFrom || openedFrom === document.body) return;
  openedFrom.focus();
  if (document.activeElement !== openedFrom) document.getElementById("search").focus();
}
