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
  const ops = `${group.kind !== "repeat" ? "" : group.identical ? "identical, " : "alike, "}${plural(opsIn(graph.program, position), "op")}`;
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

// The program as nested boxes, or two side by side: unfold a group, press an op for its details, drag and zoom the canvas.

const EDGE_COLOURS = { data: "var(--edge)", residual: "var(--residual)", carried: "var(--carried)" };

// Where an arrow leaves and arrives, and which way it bends: down, up, or sideways between boxes of one height.
function ends(from, to) {
  const middle = (box) => box.left + box.width / 2;
  const bend = (distance) => Math.max(16, Math.abs(distance) / 2.5);
  if (to.top >= from.top + from.height) {
    const [y1, y2] = [from.top + from.height, to.top - 1];
    return [middle(from), y1, middle(to), y2, 0, bend(y2 - y1)];
  }
  if (to.top + to.height <= from.top) {
    const [y1, y2] = [from.top, to.top + to.height + 1];
    return [middle(from) + 14, y1, middle(to) + 14, y2, 0, -bend(y2 - y1)];
  }
  const height = (box) => box.top + Math.min(box.height / 2, 60);
  const [x1, x2, way] = middle(to) > middle(from) ? [from.left + from.width, to.left - 1, 1] : [from.left, to.left + to.width + 1, -1];
  return [x1, height(from), x2, height(to), way * bend(x2 - x1), 0];
}

class Graph {
  constructor(key) {
    this.key = key;
    this.program = programOf(key);
    this.open = firstUnfolded(this.program);
    this.view = { x: 0, y: 0, scale: 1 };
    this.canvas = svg("g");
    const words = graphWords[key];
    this.picture = svg("svg", { class: "graph", role: "group", "aria-label": `graph of the ${words} program`, tabindex: "-1" },
      svg("defs", {}, svg("marker", { id: `arrow-${key}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
        markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }))),
      this.canvas);
    this.said = el("p", { class: "hidden", "aria-live": "polite" });
    const press = (text, label, action) => button(text, action, { title: label, "aria-label": label });
    this.node = el("figure", { class: "pane", "data-program": key },
      el("figcaption", {}, el("strong", {}, words), (this.count = el("span")),
        el("span", { class: "tools" },
          press("+", "zoom in", () => this.zoom(1.25)), press("−", "zoom out", () => this.zoom(0.8)),
          press("fit", "fit to the window", () => this.fit()), press("fold all", "fold all groups", () => this.foldAll()))),
      this.picture, this.said);
    this.listen();
    this.draw();
    new ResizeObserver(() => !this.moved && this.fit()).observe(this.picture);
  }

  listen() {
    let from = null;
    this.picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, event);
    }, { passive: false });
    fill(this.picture, { on: {
      pointerdown: ({ clientX, clientY, pointerId }) =>
        (from = { x: clientX - this.view.x, y: clientY - this.view.y, id: pointerId, at: [clientX, clientY] }),
      pointermove: ({ clientX, clientY }) => {
        if (!from || Math.hypot(clientX - from.at[0], clientY - from.at[1]) < 4) return;
        this.picture.setPointerCapture(from.id);
        this.look(clientX - from.x, clientY - from.y, this.view.scale);
      },
      pointerup: () => (from = null), pointercancel: () => (from = null), keydown: (event) => this.pressed(event),
    } }, []);
  }

  pressed(event) {
    const [kind, position] = this.current.split(":");
    const actions = {
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(),
      i: () => (location.hash = link[kind](this.key, position)),
      ArrowLeft: () => this.step(-1, 0), ArrowRight: () => this.step(1, 0), ArrowUp: () => this.step(0, -1), ArrowDown: () => this.step(0, 1),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }

  // Focus the nearest box in a direction, and bring it into view; only up leads to the groups around the box.
  step(dx, dy) {
    const here = this.boxes.get(this.current);
    if (!here) return;
    const centre = (box) => [box.left + box.width / 2, box.top + (box.children ? 14 : box.height / 2)];
    const [x, y] = centre(here);
    const isAround = (box) => box.left <= here.left && box.top <= here.top && box.left + box.width >= here.left + here.width &&
      box.top + box.height >= here.top + here.height;
    let best = { cost: Infinity };
    for (const box of this.boxes.values()) {
      const [right, down] = [centre(box)[0] - x, centre(box)[1] - y];
      const [along, across] = dx ? [right * dx, Math.abs(down)] : [down * dy, Math.abs(right)];
      const cost = box !== here && along > 4 && (dy < 0 || !isAround(box)) ? along + 2 * across : Infinity;
      if (cost < best.cost) best = { id: box.id, cost };
    }
    this.focus(best.id);
  }

  focus(id) {
    const node = this.nodes.get(id);
    if (!node) return;
    this.nodes.get(this.current)?.setAttribute("tabindex", "-1");
    this.current = id;
    node.setAttribute("tabindex", "0");
    node.focus({ preventScroll: true });
    const size = this.picture.getBoundingClientRect();
    const { x, y, scale } = this.view;
    const [left, top] = [x + this.boxes.get(id).left * scale, y + this.boxes.get(id).top * scale];
    if (left < 0 || left > size.width - 40) this.view.x += size.width / 2 - left;
    if (top < 0 || top > size.height - 30) this.view.y += size.height / 2 - top;
    this.place();
  }

  toggle(group) {
    const id = boxId("group", group);
    if (!this.open.delete(group)) this.open.add(group);
    const before = this.boxes.get(id) || { left: 0, top: 0 };
    this.draw();
    const now = this.boxes.get(id);
    this.view.x += (before.left - now.left) * this.view.scale;
    this.view.y += (before.top - now.top) * this.view.scale;
    if (!this.moved) this.fit(0.6);
    this.focus(id);
    this.said.textContent = `${this.program.groups[group].label} ${this.open.has(group) ? "unfolded" : "folded"}`;
  }

  redraw() {
    this.draw();
    if (!this.moved) this.fit();
  }

  foldAll() {
    this.open = new Set([0]);
    this.draw();
    this.fit();
  }

  // Unfold everything around an op or group, mark it and bring it to the middle.
  reveal(kind, position) {
    if (kind === "op" && !isDrawn(this.program, position)) showAllOps(true);
    const path = pathOf(this.program, kind === "op" ? this.program.ops[position].group : this.program.groups[position].parent);
    path.forEach((group) => this.open.add(group));
    this.marked = boxId(kind, position);
    this.draw();
    const box = this.boxes.get(this.marked);
    const size = this.picture.getBoundingClientRect();
    this.look(size.width / 2 - (box.left + box.width / 2), Math.min(size.height / 2, 120) - box.top, 1);
    this.focus(this.marked);
  }

  draw() {
    const hidden = this.program.ops.length - opsIn(this.program, 0);
    this.count.textContent = plural(opsIn(this.program, 0), "op") + (hidden ? `; ${plural(hidden, "constant")} and broadcasts hidden` : "");
    const flows = visibleFlows(this.program, this.open);
    this.root = layOut(this.program, this.open, flows);
    const all = everyBox(this.root);
    this.boxes = new Map(all.map((box) => [box.id, box]));
    this.nodes = new Map();
    const most = Math.max(1, ...flows.map((flow) => flow.bytes));
    replace(this.canvas,
      all.filter((box) => box.children).map((box) => this.box(box)),
      flows.sort((a, b) => a.bytes - b.bytes).map((flow) => this.edge(flow, most)),
      all.filter((box) => !box.children).map((box) => this.box(box)));
    if (!this.boxes.has(this.current)) this.current = this.root.id;
    this.nodes.get(this.current).setAttribute("tabindex", "0");
    this.place();
  }

  edge(flow, most) {
    const [x1, y1, x2, y2, dx, dy] = ends(this.boxes.get(flow.from), this.boxes.get(flow.to));
    return svg("path", {
      d: `M${x1},${y1} C${x1 + dx},${y1 + dy} ${x2 - dx},${y2 - dy} ${x2},${y2}`,
      class: `edge ${flow.kind}`, "stroke-width": (0.8 + 7 * Math.sqrt(flow.bytes / most)).toFixed(2),
      "marker-end": `url(#arrow-${this.key})`, "data-from": flow.from, "data-to": flow.to, style: { stroke: EDGE_COLOURS[flow.kind] },
    }, svg("title", {}, `${plural(flow.values, "value")}, ${format(flow.bytes, "bytes")}, ${flow.kind}`));
  }

  box(box) {
    const node = fill(box.kind === "op" ? opBox(this, box) : groupBox(this, box), { tabindex: "-1", "data-id": box.id }, []);
    if (box.id === this.marked) node.classList.add("marked");
    this.nodes.set(box.id, node);
    return node;
  }

  place() {
    const { x, y, scale } = this.view;
    this.canvas.setAttribute("transform", `translate(${x.toFixed(1)},${y.toFixed(1)}) scale(${scale.toFixed(4)})`);
  }

  // Show the canvas so; the window no longer fits it by itself.
  look(x, y, scale) {
    this.view = { x, y, scale };
    this.moved = true;
    this.place();
  }

  zoom(factor, at) {
    const size = this.picture.getBoundingClientRect();
    const [x, y] = at ? [at.clientX - size.left, at.clientY - size.top] : [size.width / 2, size.height / 2];
    const scale = Math.min(4, Math.max(0.02, this.view.scale * factor));
    const ratio = scale / this.view.scale;
    this.look(x - (x - this.view.x) * ratio, y - (y - this.view.y) * ratio, scale);
  }

  // The whole in the window; with ``least`` no smaller than that, and what is below is out of sight.
  fit(least = 0) {
    const size = this.picture.getBoundingClientRect();
    if (!size.width) return;
    const scale = Math.max(least, Math.min(1.2, (size.width - 20) / this.root.width, (size.height - 20) / this.root.height));
    this.look((size.width - this.root.width * scale) / 2, 10, scale);
    this.moved = false;
  }
}

// The section: which programs there are, and what their colours mean.
const graphOf = once((key) => new Graph(key));
const graphWords = {};
for (const [target, side] of study.targets.flatMap((one) => [[one, "before"], [one, "after"]])) {
  const key = keyOf(target, side);
  graphWords[key] ||= side === "before" || key === target.original ? "original" : `rewritten for ${target.name}`;
}
const graphPanes = el("div", { class: "panes" });
let graphChoice = null;
const allOps = el("input", { type: "checkbox", on: { change: () => showAllOps(allOps.checked) } });

function showAllOps(all) {
  allOps.checked = graphOptions.all = all;
  Object.keys(graphWords).forEach((key) => graphOf(key).redraw());
}

function graphSection() {
  const [first, ...others] = Object.keys(graphWords);
  const both = others.map((key) => [`${first}+${key}`, `${graphWords[first]} and ${graphWords[key]}, side by side`]);
  graphChoice = choose("Show", [...Object.entries(graphWords), ...both], first, (value) => showPanes(value.split("+")));
  showPanes([first]);
  const families = distinct(Object.keys(graphWords).flatMap((key) => Object.keys(study.programs[key].groups[0].families)));
  const staged = isStaged(study.targets[0]);
  const sample = (kind, words) => el("span", { class: `sample ${kind}` }, words);
  return [
    el("div", { class: "controls" }, graphChoice, el("label", {}, allOps, " constants and broadcasts")),
    el("ul", { class: "legend", "aria-label": "Families of ops" }, families.map((family) => el("li", {}, familyTag(family)))),
    el("p", { class: "note" }, `Boxes are loops, ${staged ? "stages with the derivative's role, scopes" : "transformations, scopes, source lines, runs of neighbouring ops"} and ops; ` +
      "the bar in a box is its bytes by family. " +
      "Bytes are counted as if nothing were fused; numbers in place of operands are no ops here. " +
      "Arrows are the values that pass, as wide as their bytes: ",
      sample("data", "made and read"), ", ", sample("residual", "made outside of a loop and read in every trip"), ", ",
      sample("carried", "carried from trip to trip"),
      ". A thick frame is a loop. Press a group to unfold it, an op for its details. Drag to move, wheel or + and − to zoom; " +
      "with the keyboard: arrows, Enter, i for details, 0 to fit."),
    stageLegend(...study.targets),
    graphPanes,
  ];
}

function showPanes(keys) {
  replace(graphPanes, keys.map((key) => graphOf(key).node));
  graphPanes.classList.toggle("two", keys.length > 1);
  keys.forEach((key) => requestAnimationFrame(() => !graphOf(key).moved && graphOf(key).fit()));
}

function showInGraph(key, kind, position) {
  unfold("graph");
  const list = graphChoice.querySelector("select");
  if (!list.value.split("+").includes(key)) {
    list.value = key;
    showPanes([key]);
  }
  graphOf(key).node.scrollIntoView();
  graphOf(key).reveal(kind, Number(position));
}
