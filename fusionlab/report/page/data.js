// The study document, with its tables turned into records and the joins that links need.

const study = JSON.parse(document.getElementById("study").textContent);

function records(table) {
  return table.rows.map((row, position) => {
    const record = { position };
    table.columns.forEach((column, i) => (record[column] = row[i]));
    return record;
  });
}

const lineRows = study.lines.rows;

function line(position) {
  const [name, text, scope, source] = lineRows[position];
  return { name, text, scope: study.lines.scopes[scope], source: study.lines.sources[source] };
}

function prepare(program) {
  const ops = records(program.ops);
  ops.forEach((op) => Object.assign(op, line(op.line)));
  const children = program.groups.map(() => []);
  program.groups.forEach((group, i) => group.parent >= 0 && children[group.parent].push(i));
  const own = program.groups.map(() => []);
  ops.forEach((op) => own[op.group].push(op.position));
  return { ...program, ops, children, own, kinds: program.flow_kinds };
}

const programs = new Map();

function programOf(key) {
  if (!programs.has(key)) programs.set(key, prepare(study.programs[key]));
  return programs.get(key);
}

const targetOf = (name) => study.targets.find((target) => target.name === name) || study.targets[0];
const sideNames = (target) => (target.after ? ["before", "after"] : ["before"]);
const keyOf = (target, side) => (side === "after" ? target.rewritten : target.original);

const launchTables = new Map();

function launchesOf(target, side) {
  const key = `${target.name}/${side}`;
  if (!launchTables.has(key)) launchTables.set(key, records(target[side].launches));
  return launchTables.get(key);
}

// Which launches run an op: the other way round of a launch's list of ops.
const launchIndex = new Map();

function launchesOfOp(target, side, position) {
  const key = `${target.name}/${side}`;
  if (!launchIndex.has(key)) {
    const index = new Map();
    for (const launch of launchesOf(target, side)) {
      for (const op of launch.ops) {
        if (!index.has(op)) index.set(op, []);
        index.get(op).push(launch);
      }
    }
    launchIndex.set(key, index);
  }
  return launchIndex.get(key).get(position) || [];
}

function pathOf(program, group) {
  const path = [];
  for (let at = group; at > 0; at = program.groups[at].parent) path.unshift(at);
  return path;
}

// Links. What they show is built by details.js.
const link = {
  launch: (target, side, name) => `#launch/${[target.name, side, name].map(encodeURIComponent).join("/")}`,
  launches: (target, side, by) =>
    `#launches-of/${[target.name, side, ...Object.entries(by).flat()].map(encodeURIComponent).join("/")}`,
  cluster: (target, side, position) => `#cluster/${[target.name, side, position].map(encodeURIComponent).join("/")}`,
  ops: (key, position) => `#op-cluster/${encodeURIComponent(key)}/${position}`,
  op: (key, position) => `#op/${encodeURIComponent(key)}/${position}`,
  group: (key, position) => `#group/${encodeURIComponent(key)}/${position}`,
  scope: (scope) => `#scope/${encodeURIComponent(scope)}`,
  source: (source) => `#source/${encodeURIComponent(source)}`,
};
