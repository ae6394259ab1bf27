// Which boxes of a program are on the canvas for a set of unfolded groups, what flows between them, and where they stand:
// within each unfolded group in layers, so that flows go down; in a layer they are ordered by where their neighbours stand.

const [GAP_X, GAP_Y, PAD, HEAD, MOST_IN_A_ROW, MOST_AT_FIRST] = [26, 34, 18, 30, 9, 12];

const boxId = (kind, position) => `${kind}:${position}`;

// Whether constants and broadcasts are drawn.
const graphOptions = { all: false };
const isDrawn = (program, op) => graphOptions.all || !program.ops[op].hidden;
const opsIn = (program, group) => (graphOptions.all ? program.groups[group].ops : program.groups[group].visible);
const groupsIn = (program, group) => program.children[group].filter((one) => opsIn(program, one));
const membersOf = (program, group) => groupsIn(program, group).length + program.own[group].filter((op) => isDrawn(program, op)).length;

// The groups that are unfolded at first: those with a single member, and where there are no stages the largest ones for as
// long as there are few boxes.
function firstUnfolded(program) {
  const open = new Set([0]);
  for (let at = 0; groupsIn(program, at).length === 1 && membersOf(program, at) === 1;) open.add((at = groupsIn(program, at)[0]));
  if (program.groups.some((group) => group.kind === "stage")) return open;
  const boxes = () => sum([...open].map((group) => membersOf(program, group)));
  const folded = () => [...open].flatMap((group) => groupsIn(program, group)).filter((group) => !open.has(group));
  for (;;) {
    const fitting = folded().filter((group) => program.groups[group].kind !== "repeat" && boxes() + membersOf(program, group) <= MOST_AT_FIRST);
    if (!fitting.length) return open;
    open.add(fitting.sort((a, b) => opsIn(program, b) - opsIn(program, a))[0]);
  }
}

// The lowest box that is drawn for an op: the op itself, or the outermost folded group around it.
function boxOfOp(program, open, position) {
  const group = pathOf(program, program.ops[position].group).find((one) => !open.has(one));
  return group === undefined ? boxId("op", position) : boxId("group", group);
}

// Flows between the boxes that are drawn: bytes of distinct values, with how many of them a loop reads in every trip.
function visibleFlows(program, open) {
  const boxOf = program.ops.map((op) => boxOfOp(program, open, op.position));
  const found = new Map();
  for (const [source, target, bytes, kind] of graphOptions.all ? program.flows : program.direct) {
    const [from, to] = [boxOf[source], boxOf[target]];
    if (source < 0 || from === to) continue;
    const key = `${from}>${to}>${kind}`;
    if (!found.has(key)) found.set(key, { from, to, kind: program.kinds[kind], bytes: 0, values: new Set() });
    const flow = found.get(key);
    if (!flow.values.has(source)) flow.bytes += bytes;
    flow.values.add(source);
  }
  return [...found.values()].map((flow) => ({ ...flow, values: flow.values.size }));
}

// Bytes that a loop reads in every trip from outside of it: its residuals.
function residualBytes(program, loop) {
  const inside = (op) => pathOf(program, program.ops[op].group).includes(loop);
  const values = program.flows.filter(([source, target, , kind]) =>
    program.kinds[kind] === "residual" && source >= 0 && inside(target) && !inside(source));
  return sum([...new Map(values.map(([source, , bytes]) => [source, bytes])).values()]);
}

// The boxes of a program for the unfolded groups: a tree {id, kind, position, parent, children, left, top, width, height}.
function layOut(program, open, flows) {
  const made = new Map();
  const build = (kind, position, parent) => {
    const box = { id: boxId(kind, position), kind, position, parent, children: null };
    made.set(box.id, box);
    if (kind === "group" && open.has(position)) {
      box.children = [...groupsIn(program, position).map((one) => build("group", one, box)),
        ...program.own[position].filter((op) => isDrawn(program, op)).map((op) => build("op", op, box))];
    } else {
      const { label, kind: shape } = kind === "op" ? {} : program.groups[position];
      box.width = kind === "op" ? 150 : Math.max(shape === "repeat" ? 200 : 150, 8 * label.length + (shape === "loop" ? 200 : 40));
      box.height = kind === "op" ? 26 : shape === "loop" ? 66 : 50;
    }
    return box;
  };
  const root = build("group", 0, null);
  arrange(program, root, liftFlows(flows, made));
  const absolute = (box, x, y) => {
    [box.left, box.top] = [x + (box.x || 0), y + (box.y || 0)];
    (box.children || []).forEach((child) => absolute(child, box.left, box.top));
  };
  absolute(root, 0, 0);
  return root;
}

const everyBox = (box) => [box, ...(box.children || []).flatMap(everyBox)];

// For every group, the flows between its children: a flow counts where the two ends part.
function liftFlows(flows, boxes) {
  const chain = (box) => (box ? [...chain(box.parent), box] : []);
  const lifted = new Map();
  for (const flow of flows) {
    if (flow.kind === "carried") continue;
    const [up, down] = [chain(boxes.get(flow.from)), chain(boxes.get(flow.to))];
    const parted = up.findIndex((box, i) => box !== down[i]);
    if (parted < 1 || !down[parted]) continue;
    const around = up[parted - 1].id;
    if (!lifted.has(around)) lifted.set(around, []);
    lifted.get(around).push({ from: up[parted].id, to: down[parted].id });
  }
  return lifted;
}

// Where a box stands in the program: the mean position of its ops.
function meanPlace(program, { kind, position }) {
  if (kind === "op") return position;
  const inside = (group) => [...program.own[group], ...program.children[group].flatMap(inside)];
  const group = program.groups[position];
  if (group.mean === undefined) group.mean = sum(inside(position)) / (group.ops || 1);
  return group.mean;
}

function arrange(program, box, lifted) {
  if (!box.children) return;
  box.children.forEach((child) => arrange(program, child, lifted));
  if (stageGrid(program, box)) return;
  const order = [...box.children].sort((a, b) => meanPlace(program, a) - meanPlace(program, b));
  const rank = new Map(order.map((child, i) => [child.id, i]));
  const edges = (lifted.get(box.id) || []).filter((flow) => rank.get(flow.from) < rank.get(flow.to));
  const rows = layersOf(order, edges);
  orderRows(rows, edges);
  const widthOf = (row) => sum(row.map((child) => child.width + GAP_X)) - GAP_X;
  const inner = Math.max(...rows.map(widthOf), 120);
  let y = HEAD + PAD;
  for (const row of rows) {
    let x = PAD + (inner - widthOf(row)) / 2;
    for (const child of row) {
      [child.x, child.y] = [x, y];
      x += child.width + GAP_X;
    }
    y += Math.max(...row.map((child) => child.height)) + GAP_Y;
  }
  box.width = inner + 2 * PAD;
  box.height = y - GAP_Y + PAD;
}

// Stages side by side: a row per stage, forward passes in the left column, reverse passes in the right one, loops beside
// them, and what belongs to no stage below. Whether the box is laid out so: it must hold several stages.
function stageGrid(program, box) {
  const places = new Map(box.children.map((child) => {
    const { kind, stage, role } = child.kind === "group" ? program.groups[child.position] : { kind: "op", stage: "", role: "" };
    const column = kind === "loop" || kind === "branch" ? 2 : role.includes("cotangent") ? 1 : 0;
    return [child, { column, row: column === 2 ? "" : (kind === "stage" && stage) || "~", staged: kind === "stage" && stage }];
  }));
  if ([...places.values()].filter((place) => place.staged).length < 4) return false;
  const cell = (wanted, row) => box.children.filter((child) => places.get(child).column === wanted && (row === undefined || places.get(child).row === row));
  const wide = [0, 1, 2].map((column) => Math.max(0, ...cell(column).map((child) => child.width)));
  const left = [PAD, PAD + wide[0] + 3 * GAP_X, PAD + wide[0] + wide[1] + (wide[1] ? 6 : 3) * GAP_X];
  const stack = (children, x, top) => {
    let y = top;
    for (const child of children) {
      [child.x, child.y] = [x(child), y];
      y += child.height + GAP_Y;
    }
    return y;
  };
  let y = HEAD + PAD;
  for (const row of distinct([...places.values()].map((place) => place.row)).filter(Boolean).sort()) {
    y = Math.max(...[0, 1].map((column) => stack(cell(column, row), (child) => left[column] + (wide[column] - child.width) / 2, y)));
  }
  const beside = sum(cell(2).map((child) => child.height + GAP_Y));
  const end = stack(cell(2), () => left[2], HEAD + PAD + Math.max(0, (y - HEAD - PAD - beside) / 2));
  const last = wide[2] ? 2 : wide[1] ? 1 : 0;
  box.width = left[last] + wide[last] + PAD;
  box.height = Math.max(y, end) - GAP_Y + PAD;
  return true;
}

function layersOf(order, edges) {
  const layer = new Map();
  const above = (child) => edges.filter((edge) => edge.to === child.id).map((edge) => layer.get(edge.from) + 1);
  const rows = [];
  for (const child of order) {
    layer.set(child.id, Math.max(0, ...above(child)));
    (rows[layer.get(child.id)] ||= []).push(child);
  }
  return rows.flatMap((row) => {
    const size = Math.ceil(row.length / Math.ceil(row.length / MOST_IN_A_ROW));
    return Array.from({ length: Math.ceil(row.length / size) }, (_, i) => row.slice(i * size, (i + 1) * size));
  });
}

// Two sweeps: every row by the mean place of what flows into it, then of what flows out of it.
function orderRows(rows, edges) {
  const place = new Map();
  const note = (row) => row.forEach((child, i) => place.set(child.id, (i + 0.5) / row.length));
  rows.forEach(note);
  const sweep = (over, end, other) => {
    for (const row of over) {
      const wanted = new Map(row.map((child) => {
        const near = edges.filter((edge) => edge[end] === child.id).map((edge) => place.get(edge[other]));
        return [child.id, near.length ? sum(near) / near.length : place.get(child.id)];
      }));
      row.sort((a, b) => wanted.get(a.id) - wanted.get(b.id));
      note(row);
    }
  };
  sweep(rows, "to", "from");
  sweep([...rows].reverse(), "from", "to");
}
