// The boxes of the graph: groups that unfold, and ops.

function pressable(node, action) {
  const act = (event) => {
    if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
    if (event.type === "keydown") event.preventDefault();
    event.stopPropagation();
    action(event);
  };
  return fill(node, { on: { click: act, keydown: act } }, []);
}

const rect = (x, y, width, height, more) => svg("rect", { x, y, width, height, ...more });

function groupBox(graph, box) {
  const { position, left, top, width, height } = box;
  const group = graph.program.groups[position];
  const isOpen = Boolean(box.children);
  const words = groupWords(graph, group, position);
  const said = (x, y, text, more) => svg("text", { x, y, class: "words", ...more }, text);
  const trips = group.kind !== "loop" ? "" : known(group.trips) ? ` · ${group.trips} trips` : " · unknown trips";
  const node = svg("g", {
    class: `box group ${group.kind} ${isOpen ? "open" : "folded"}`, role: "button", "aria-expanded": String(isOpen),
    "aria-label": `${group.label}, ${group.kind}, ${words.join(", ")}`,
  },
    group.repeats > 1 && !isOpen && [8, 4].map((by) => rect(left + by, top + by, width, height, { rx: 4, class: "behind" })),
    rect(left, top, width, height, { rx: group.kind === "loop" ? 10 : 4 }),
    said(left + 12, top + 19, `${isOpen ? "▾" : "▸"} ${group.label}${trips}`, { class: "label" }),
    pressable(svg("g", { class: "info", role: "button", "aria-label": "details" },
      svg("circle", { cx: left + width - 14, cy: top + 14, r: 8 }),
      svg("text", { x: left + width - 14, y: top + 18, "text-anchor": "middle" }, "i"),
      svg("title", {}, "details (key: i)")), () => (location.hash = link.group(graph.key, position))),
    isOpen ? said(left + width - 30, top + 19, width < 420 ? "" : words.join(" · "), { "text-anchor": "end" })
      : [words.slice(0, 2).join(" · "), words[2]].map((text, i) => text && said(left + 12, top + 35 + 15 * i, text)),
    !isOpen && familyBar(group, box),
    svg("title", {}, `${group.label}: ${words.join(", ")}\npress to ${isOpen ? "fold" : "unfold"}`));
  if (position === 0) return node;
  return pressable(node, (event) => event.detail !== 2 && graph.toggle(position)); // 2: the second press of a double click
}

function groupWords(graph, group, position) {
  const ops = `${group.kind !== "repeat" ? "" : group.identical ? "identical, " : "alike, "}${plural(group.ops, "op")}`;
  if (group.kind !== "loop") return [ops, format(group.bytes, "bytes")];
  group.residuals ??= residualBytes(graph.program, position);
  return [ops, format(group.bytes, "bytes"), `every trip reads ${format(group.residuals, "bytes")} from outside`];
}

// The bytes of a group by family, as a bar along its lower edge.
function familyBar(group, box) {
  const all = sum(Object.values(group.families));
  let next = box.left + 12;
  return all > 0 && Object.entries(group.families).map(([family, bytes]) => {
    const [x, width] = [next, ((box.width - 24) * bytes) / all];
    next += width;
    return rect(x, box.top + box.height - 9, width, 5, { class: "part", style: { fill: familyColour(family) } });
  });
}

function opBox(graph, box) {
  const { left, top, width, height } = box;
  const op = graph.program.ops[box.position];
  const name = op.text.split(" = ").pop().split(/[ [{]/)[0];
  return pressable(svg("g", { class: "box op", role: "button", "aria-label": `op ${op.name} ${op.text}` },
    rect(left, top, width, height, { rx: 3 }),
    rect(left, top, 5, height, { style: { fill: familyColour(op.family) } }),
    svg("text", { x: left + 12, y: top + 17, class: "label" }, `${familyMark(op.family)} ${short(name, 13)}`),
    svg("text", { x: left + width - 6, y: top + 17, class: "words", "text-anchor": "end" }, short(op.name, 7)),
    svg("title", {}, `${op.text}\n${op.scope}\n${op.source}`)), () => {
    graph.focus(box.id);
    location.hash = link.op(graph.key, box.position);
  });
}
