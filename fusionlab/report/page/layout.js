// A simple layered layout of nested boxes: within each unfolded group, boxes stand in layers so that flows go down;
// in a layer they are ordered by where their neighbours stand.

const GAP_X = 26;
const GAP_Y = 34;
const PAD = 18;
const HEAD = 30;
const MOST_IN_A_ROW = 9;

// The boxes of a program for the unfolded groups: a tree {id, kind, position, children, x, y, width, height}.
function layOut(program, open, flows) {
  const parentOf = new Map();
  const build = (group) => {
    const box = { id: boxId("group", group), kind: "group", position: group, children: null };
    if (!open.has(group)) return sized(program, box);
    box.children = [
      ...program.children[group].map(build),
      ...program.own[group].map((op) => sized(program, { id: boxId("op", op), kind: "op", position: op, children: null })),
    ];
    box.children.forEach((child) => parentOf.set(child.id, box));
    return box;
  };
  const root = build(0);
  const lifted = liftFlows(flows, parentOf);
  arrange(program, root, lifted);
  absolute(root, 0, 0);
  return root;
}

function sized(program, box) {
  if (box.kind === "op") {
    box.width = 150;
    box.height = 26;
  } else {
    const { label, kind } = program.groups[box.position];
    box.width = Math.max(150, 8 * label.length + (kind === "loop" ? 200 : 40));
    box.height = kind === "loop" ? 66 : 50;
  }
  return box;
}

// For every group, the flows between its children: a flow counts where the two ends part.
function liftFlows(flows, parentOf) {
  const chain = (id) => {
    const found = [id];
    for (let at = parentOf.get(id); at; at = parentOf.get(at.id)) found.push(at.id);
    return found;
  };
  const lifted = new Map();
  for (const flow of flows) {
    if (flow.kind === "carried") continue;
    const [up, down] = [chain(flow.from), chain(flow.to)];
    let [i, j] = [up.length - 1, down.length - 1];
    while (i > 0 && j > 0 && up[i - 1] === down[j - 1]) [i, j] = [i - 1, j - 1];
    if (i === 0 || j === 0) continue;
    if (!lifted.has(up[i])) lifted.set(up[i], []);
    lifted.get(up[i]).push({ from: up[i - 1], to: down[j - 1], bytes: flow.bytes });
  }
  return lifted;
}

function meanPlace(program, box) {
  if (box.kind === "op") return box.position;
  if (program.groups[box.position].mean === undefined) {
    const inside = (group) => [...program.own[group], ...program.children[group].flatMap(inside)];
    const all = inside(box.position);
    program.groups[box.position].mean = all.reduce((sum, op) => sum + op, 0) / (all.length || 1);
  }
  return program.groups[box.position].mean;
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
  let y = HEAD + PAD;
  const widths = rows.map((row) => row.reduce((sum, child) => sum + child.width + GAP_X, -GAP_X));
  const inner = Math.max(...widths, 120);
  rows.forEach((row, i) => {
    let x = PAD + (inner - widths[i]) / 2;
    for (const child of row) {
      [child.x, child.y] = [x, y];
      x += child.width + GAP_X;
    }
    y += Math.max(...row.map((child) => child.height)) + GAP_Y;
  });
  box.width = inner + 2 * PAD;
  box.height = y - GAP_Y + PAD;
}

// Stages side by side: a row per stage, forward passes in the left column, reverse passes in the right one, loops beside
// them, and what belongs to no stage below. Whether the box is laid out so: it must hold several stages.
function stageGrid(program, box) {
  const groupOf = (child) => (child.kind === "group" ? program.groups[child.position] : { kind: "op", stage: "", role: "" });
  const staged = box.children.filter((child) => groupOf(child).kind === "stage" && groupOf(child).stage);
  if (staged.length < 4) return false;
  const columnOf = (child) => (groupOf(child).kind === "loop" || groupOf(child).kind === "branch" ? 2 : groupOf(child).role.includes("cotangent") ? 1 : 0);
  const rowOf = (child) => (columnOf(child) === 2 ? "" : staged.includes(child) ? groupOf(child).stage : "~");
  const cells = new Map();
  for (const child of box.children) {
    const key = `${rowOf(child)}${columnOf(child)}`;
    if (!cells.has(key)) cells.set(key, []);
    cells.get(key).push(child);
  }
  const sizeOf = (children, across, along) => ({
    most: Math.max(0, ...children.map((child) => child[across])),
    sum: children.reduce((sum, child) => sum + child[along] + GAP_Y, 0),
  });
  const wide = [0, 1, 2].map((column) => Math.max(0, ...box.children.filter((child) => columnOf(child) === column).map((child) => child.width)));
  const left = [PAD, PAD + wide[0] + 3 * GAP_X, PAD + wide[0] + wide[1] + (wide[1] ? 6 : 3) * GAP_X];
  let y = HEAD + PAD;
  for (const row of [...new Set(box.children.map(rowOf))].filter(Boolean).sort()) {
    let tallest = 0;
    for (const column of [0, 1]) {
      const inside = cells.get(`${row}${column}`) || [];
      let at = y;
      for (const child of inside) {
        [child.x, child.y] = [left[column] + (wide[column] - child.width) / 2, at];
        at += child.height + GAP_Y;
      }
      tallest = Math.max(tallest, sizeOf(inside, "width", "height").sum);
    }
    y += tallest;
  }
  const stacked = (cells.get("2") || []).reduce((sum, child) => sum + child.height + GAP_Y, 0);
  let beside = HEAD + PAD + Math.max(0, (y - HEAD - PAD - stacked) / 2);
  for (const child of cells.get("2") || []) {
    [child.x, child.y] = [left[2], beside];
    beside += child.height + GAP_Y;
  }
  box.width = (wide[2] ? left[2] + wide[2] : wide[1] ? left[1] + wide[1] : left[0] + wide[0]) + PAD;
  box.height = Math.max(y, beside) - GAP_Y + PAD;
  return true;
}

function layersOf(order, edges) {
  const into = new Map();
  for (const edge of edges) {
    if (!into.has(edge.to)) into.set(edge.to, []);
    into.get(edge.to).push(edge.from);
  }
  const layer = new Map();
  for (const child of order) layer.set(child.id, Math.max(0, ...(into.get(child.id) || []).map((id) => layer.get(id) + 1)));
  const rows = [];
  for (const child of order) (rows[layer.get(child.id)] ||= []).push(child);
  return rows.flatMap((row) => {
    const parts = Math.ceil(row.length / MOST_IN_A_ROW);
    const size = Math.ceil(row.length / parts);
    return Array.from({ length: parts }, (_, i) => row.slice(i * size, (i + 1) * size));
  });
}

// Two sweeps: every row by the mean place of what flows into it, then of what flows out of it.
function orderRows(rows, edges) {
  const place = new Map();
  const note = (row) => row.forEach((child, i) => place.set(child.id, (i + 0.5) / row.length));
  rows.forEach(note);
  const sweep = (over, end, other) => {
    for (const row of over) {
      const wanted = new Map();
      for (const child of row) {
        const near = edges.filter((edge) => edge[end] === child.id).map((edge) => place.get(edge[other]));
        wanted.set(child.id, near.length ? near.reduce((sum, x) => sum + x, 0) / near.length : place.get(child.id));
      }
      row.sort((a, b) => wanted.get(a.id) - wanted.get(b.id));
      note(row);
    }
  };
  sweep(rows, "to", "from");
  sweep([...rows].reverse(), "from", "to");
}

function absolute(box, x, y) {
  box.left = x + (box.x || 0);
  box.top = y + (box.y || 0);
  (box.children || []).forEach((child) => absolute(child, box.left, box.top));
}

function everyBox(box, found = []) {
  found.push(box);
  (box.children || []).forEach((child) => everyBox(child, found));
  return found;
}
