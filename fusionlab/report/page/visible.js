// Which boxes of a program are on the canvas for a set of unfolded groups, and what flows between them.

const boxId = (kind, position) => `${kind}:${position}`;

// The lowest box that is drawn for an op: the op itself, or the outermost folded group around it.
function boxOfOp(program, open, position) {
  for (const group of pathOf(program, program.ops[position].group)) {
    if (!open.has(group)) return boxId("group", group);
  }
  return boxId("op", position);
}

// Flows between the boxes that are drawn: bytes of distinct values, with how many of them a loop reads in every trip.
function visibleFlows(program, open) {
  const boxOf = program.ops.map((op) => boxOfOp(program, open, op.position));
  const found = new Map();
  const counted = new Set();
  for (const [source, target, bytes, kind] of program.flows) {
    if (source < 0) continue;
    const [from, to] = [boxOf[source], boxOf[target]];
    if (from === to) continue;
    const key = `${from}>${to}>${kind}`;
    if (!found.has(key)) found.set(key, { from, to, kind: program.kinds[kind], bytes: 0, values: 0 });
    if (counted.has(`${key}>${source}`)) continue;
    counted.add(`${key}>${source}`);
    const flow = found.get(key);
    flow.bytes += bytes;
    flow.values += 1;
  }
  return [...found.values()];
}

// What a loop reads in every trip from outside of it: its residuals.
function residualsOf(program, loop) {
  const inside = (op) => pathOf(program, program.ops[op].group).includes(loop);
  const values = new Map();
  for (const [source, target, bytes, kind] of program.flows) {
    if (program.kinds[kind] === "residual" && source >= 0 && inside(target) && !inside(source)) values.set(source, bytes);
  }
  return { values: values.size, bytes: [...values.values()].reduce((sum, bytes) => sum + bytes, 0) };
}
