// The study document, with its tables turned into records and the joins that links need.

const study = JSON.parse(document.getElementById("study").textContent);

const records = (table) =>
  table.rows.map((row, position) => Object.fromEntries([["position", position], ...table.columns.map((column, i) => [column, row[i]])]));

function line(position) {
  const [name, text, scope, source] = study.lines.rows[position];
  return { name, text, scope: study.lines.scopes[scope], source: study.lines.sources[source] };
}

function prepare(program) {
  const ops = records(program.ops);
  ops.forEach((op) => Object.assign(op, line(op.line)));
  const [children, own] = [program.groups.map(() => []), program.groups.map(() => [])];
  program.groups.forEach((group, i) => group.parent >= 0 && children[group.parent].push(i));
  ops.forEach((op) => own[op.group].push(op.position));
  const visible = (group) => sum(own[group].map((op) => !ops[op].hidden)) + sum(children[group].map(visibleOf));
  const visibleOf = (group) => (program.groups[group].visible ??= visible(group));
  visibleOf(0);
  return { ...program, ops, children, own, kinds: program.flow_kinds, direct: directFlows(program, ops) };
}

// The flows without hidden ops: who reads a broadcast reads what it is made of; constants are made of nothing.
function directFlows(program, ops) {
  const into = new Map();
  for (const flow of program.flows) if (ops[flow[1]].hidden) into.set(flow[1], [...(into.get(flow[1]) || []), flow]);
  const made = new Map();
  const makers = (op) => {
    if (!made.has(op)) {
      made.set(op, []); // a hidden op that a loop carries to itself is made of nothing more
      made.set(op, (into.get(op) || []).flatMap((flow) => (flow[0] >= 0 && ops[flow[0]].hidden ? makers(flow[0]) : [flow])));
    }
    return made.get(op);
  };
  return program.flows.filter((flow) => !ops[flow[1]].hidden).flatMap((flow) => {
    if (flow[0] < 0 || !ops[flow[0]].hidden) return [flow];
    return makers(flow[0]).map(([source, , bytes]) => [source, flow[1], bytes, flow[3]]);
  });
}

// A function that makes each of its results once.
function once(make) {
  const made = new Map();
  return (...parts) => {
    const key = parts.join("/");
    if (!made.has(key)) made.set(key, make(...parts));
    return made.get(key);
  };
}

const programOf = once((key) => prepare(study.programs[key]));
const programKeys = () => Object.keys(study.programs);
const targetOf = (name) => study.targets.find((target) => target.name === name) || study.targets[0];
const sideNames = (target) => (target.after ? ["before", "after"] : ["before"]);
// Why there is one side alone.
const unchangedWords = (target) => (target.rewritten === target.original ? "nothing was applied" : "no rewritten program was measured");
// The side in a caption: nothing where there is one alone.
const sideWords = (target, side) => (target.after ? `, ${side}` : "");
const sides = study.targets.flatMap((target) => sideNames(target).map((side) => [target, side]));
const keyOf = (target, side) => (side === "after" ? target.rewritten : target.original);

// What the launches of a target are grouped by: stages where there are stages, else scopes, source lines or ops.
const viewOf = (target) => target.before.by_view_family;
const groupsOf = (target, side) => target[side].by_view_family.rows;
const isStaged = (target) => viewOf(target).field === "stage";
const placeWords = (place) => (place === "-" ? "no stage" : place);

const launchRecords = once((name, side) => records(targetOf(name)[side].launches));
const launchesOf = (target, side) => launchRecords(target.name, side);

function pathOf(program, group) {
  const path = [];
  for (let at = group; at > 0; at = program.groups[at].parent) path.unshift(at);
  return path;
}

// Links. What they show is built by details.js.
const address = (kind, ...parts) => `#${kind}/${parts.map(encodeURIComponent).join("/")}`;
const link = {
  launch: (target, side, name) => address("launch", target.name, side, name),
  launches: (target, side, by) => address("launches-of", target.name, side, ...Object.entries(by).flat()),
  cluster: (target, side, position) => address("cluster", target.name, side, position),
  ops: (key, position) => address("op-cluster", key, position),
  ...Object.fromEntries(["op", "group", "scope", "source"].map((kind) => [kind, (...parts) => address(kind, ...parts)])),
};
