// The boxes of the graph: groups that unfold, and ops.

function pressable(node, action) {
  node.addEventListener("click", (event) => {
    event.stopPropagation();
    action(event);
  });
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    action(event);
  });
  return node;
}

function groupBox(graph, box) {
  const group = graph.program.groups[box.position];
  const isOpen = Boolean(box.children);
  const words = groupWords(graph, group, box.position);
  const node = svg("g", {
    class: `box group ${group.kind} ${isOpen ? "open" : "folded"}`, role: "button", "aria-expanded": String(isOpen),
    "aria-label": `${group.label}, ${group.kind}, ${words.join(", ")}`,
  },
    svg("rect", { x: box.left, y: box.top, width: box.width, height: box.height, rx: group.kind === "loop" ? 10 : 4 }),
    svg("text", { x: box.left + 12, y: box.top + 19, class: "label" }, `${isOpen ? "▾" : "▸"} ${group.label}${loopWords(group)}`),
    infoMark(graph, box),
    isOpen
      ? svg("text", { x: box.left + box.width - 30, y: box.top + 19, class: "words", "text-anchor": "end" }, box.width < 420 ? "" : words.join(" · "))
      : [words.slice(0, 2).join(" · "), words[2]].map((said, i) => said && svg("text", { x: box.left + 12, y: box.top + 35 + 15 * i, class: "words" }, said)),
    isOpen ? null : familyBar(group, box),
    svg("title", {}, `${group.label}: ${words.join(", ")}\npress to ${isOpen ? "fold" : "unfold"}`),
  );
  if (group.repeats > 1 && !isOpen) {
    node.prepend(...[8, 4].map((by) =>
      svg("rect", { x: box.left + by, y: box.top + by, width: box.width, height: box.height, rx: 4, class: "behind" })));
  }
  if (box.position === 0) return node;
  return pressable(node, (event) => {
    if (event.detail !== 2) graph.toggle(box.position); // the second press of a double click
  });
}

function infoMark(graph, box) {
  return pressable(
    svg("g", { class: "info", role: "button", "aria-label": "details" },
      svg("circle", { cx: box.left + box.width - 14, cy: box.top + 14, r: 8 }),
      svg("text", { x: box.left + box.width - 14, y: box.top + 18, "text-anchor": "middle" }, "i"),
      svg("title", {}, "details (key: i)")),
    () => (location.hash = link.group(graph.key, box.position)),
  );
}

const loopWords = (group) => (group.kind !== "loop" ? "" : known(group.trips) ? ` · ${group.trips} trips` : " · unknown trips");

function groupWords(graph, group, position) {
  const words = [plural(group.ops, "op"), format(group.bytes, "bytes")];
  if (group.kind === "loop") {
    group.residuals ||= residualsOf(graph.program, position);
    words.push(`every trip reads ${format(group.residuals.bytes, "bytes")} from outside`);
  }
  if (group.kind === "repeat") words[0] = `${group.identical ? "identical" : "alike"}, ${words[0]}`;
  return words;
}

// The bytes of a group by family, as a bar along its lower edge.
function familyBar(group, box) {
  const total = Object.values(group.families).reduce((sum, bytes) => sum + bytes, 0);
  if (!total) return null;
  let x = box.left + 12;
  const width = box.width - 24;
  return Object.entries(group.families).map(([family, bytes]) => {
    const part = svg("rect", { x, y: box.top + box.height - 9, width: (width * bytes) / total, height: 5, class: "part" });
    part.style.fill = familyColour(family);
    x += (width * bytes) / total;
    return part;
  });
}

function opBox(graph, box) {
  const op = graph.program.ops[box.position];
  const name = op.text.split(" = ").pop().split(/[ [{]/)[0];
  const strip = svg("rect", { x: box.left, y: box.top, width: 5, height: box.height });
  strip.style.fill = familyColour(op.family);
  const node = svg("g", { class: "box op", role: "button", "aria-label": `op ${op.name} ${op.text}` },
    svg("rect", { x: box.left, y: box.top, width: box.width, height: box.height, rx: 3 }),
    strip,
    svg("text", { x: box.left + 12, y: box.top + 17, class: "label" }, `${familyMark(op.family)} ${short(name, 13)}`),
    svg("text", { x: box.left + box.width - 6, y: box.top + 17, class: "words", "text-anchor": "end" }, short(op.name, 7)),
    svg("title", {}, `${op.text}\n${op.scope}\n${op.source}`),
  );
  return pressable(node, () => {
    graph.focus(box.id);
    location.hash = link.op(graph.key, box.position);
  });
}
