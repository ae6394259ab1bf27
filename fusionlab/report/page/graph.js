// The program as nested boxes: unfold a group, press an op for its details, drag and zoom the canvas.

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
  const right = middle(to) > middle(from);
  const [x1, x2] = right ? [from.left + from.width, to.left - 1] : [from.left, to.left + to.width + 1];
  const height = (box) => box.top + Math.min(box.height / 2, 60);
  return [x1, height(from), x2, height(to), right ? bend(x2 - x1) : -bend(x2 - x1), 0];
}

class Graph {
  constructor(key, words) {
    this.key = key;
    this.program = programOf(key);
    this.open = new Set([0]);
    this.marked = null;
    this.view = { x: 0, y: 0, scale: 1 };
    this.canvas = svg("g");
    this.picture = svg("svg", { class: "graph", role: "group", "aria-label": `graph of the ${words} program`, tabindex: "-1" },
      svg("defs", {}, svg("marker", { id: `arrow-${key}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
        markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0,0 L8,4 L0,8 z", class: "arrow" }))),
      this.canvas);
    this.said = el("p", { class: "hidden", "aria-live": "polite" });
    const press = (words, label, action) => el("button", { type: "button", title: label, "aria-label": label, on: { click: action } }, words);
    this.node = el("figure", { class: "pane", "data-program": key },
      el("figcaption", {}, el("strong", {}, words), plural(this.program.ops.length, "op"),
        el("span", { class: "tools" },
          press("+", "zoom in", () => this.zoom(1.25)), press("−", "zoom out", () => this.zoom(0.8)),
          press("fit", "fit to the window", () => this.fit()), press("fold all", "fold all groups", () => this.foldAll()))),
      this.picture, this.said);
    this.listen();
    if (this.program.children[0].length === 1) this.open.add(this.program.children[0][0]);
    this.draw();
    new ResizeObserver(() => !this.moved && this.fit()).observe(this.picture);
  }

  listen() {
    this.picture.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, event);
    }, { passive: false });
    let from = null;
    this.picture.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX - this.view.x, y: event.clientY - this.view.y, id: event.pointerId, at: [event.clientX, event.clientY] };
    });
    this.picture.addEventListener("pointermove", (event) => {
      if (!from || Math.hypot(event.clientX - from.at[0], event.clientY - from.at[1]) < 4) return;
      this.picture.setPointerCapture(from.id);
      this.moved = true;
      Object.assign(this.view, { x: event.clientX - from.x, y: event.clientY - from.y });
      this.place();
    });
    for (const end of ["pointerup", "pointercancel"]) this.picture.addEventListener(end, () => (from = null));
    this.picture.addEventListener("keydown", (event) => this.pressed(event));
  }

  pressed(event) {
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (event.key === "i") location.hash = link[this.current.split(":")[0]](this.key, this.current.split(":")[1]);
    else if (steps[event.key]) this.step(...steps[event.key]);
    else return;
    event.preventDefault();
  }

  // Focus the nearest box in a direction; only up leads to the groups around the box.
  step(dx, dy) {
    const here = this.boxes.get(this.current);
    if (!here) return;
    const centre = (box) => [box.left + box.width / 2, box.top + (box.children ? 14 : box.height / 2)];
    const [x, y] = centre(here);
    const isAround = (box) => box.left <= here.left && box.top <= here.top && box.left + box.width >= here.left + here.width &&
      box.top + box.height >= here.top + here.height;
    let best = null;
    for (const box of this.boxes.values()) {
      const [along, across] = ((p) => (dx ? [(p[0] - x) * dx, Math.abs(p[1] - y)] : [(p[1] - y) * dy, Math.abs(p[0] - x)]))(centre(box));
      if (box !== here && along > 4 && (dy < 0 || !isAround(box)) && (!best || along + 2 * across < best.cost)) best = { box, cost: along + 2 * across };
    }
    if (best) this.focus(best.box.id);
  }

  focus(id) {
    const node = this.nodes.get(id);
    if (!node) return;
    const last = this.nodes.get(this.current);
    if (last) last.setAttribute("tabindex", "-1");
    this.current = id;
    node.setAttribute("tabindex", "0");
    node.focus({ preventScroll: true });
    this.bringIn(this.boxes.get(id));
  }

  toggle(group) {
    if (this.open.has(group)) this.open.delete(group);
    else this.open.add(group);
    const before = this.boxes.get(boxId("group", group));
    const [x, y] = before ? [before.left, before.top] : [0, 0];
    this.draw();
    const now = this.boxes.get(boxId("group", group));
    this.view.x += (x - now.left) * this.view.scale;
    this.view.y += (y - now.top) * this.view.scale;
    if (!this.moved) this.fit();
    else this.place();
    this.focus(boxId("group", group));
    this.said.textContent = `${this.program.groups[group].label} ${this.open.has(group) ? "unfolded" : "folded"}`;
  }

  foldAll() {
    this.open = new Set([0]);
    this.moved = false;
    this.draw();
    this.fit();
  }

  // Unfold everything around an op or group, mark it and bring it to the middle.
  reveal(kind, position) {
    const path = pathOf(this.program, kind === "op" ? this.program.ops[position].group : this.program.groups[position].parent);
    path.forEach((group) => this.open.add(group));
    this.marked = boxId(kind, position);
    this.moved = true;
    this.draw();
    const box = this.boxes.get(this.marked);
    if (!box) return;
    const size = this.picture.getBoundingClientRect();
    this.view.scale = 1;
    this.view.x = size.width / 2 - (box.left + box.width / 2);
    this.view.y = Math.min(size.height / 2, 120) - box.top;
    this.place();
    this.focus(this.marked);
  }

  draw() {
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
    const [from, to] = [this.boxes.get(flow.from), this.boxes.get(flow.to)];
    const [x1, y1, x2, y2, dx, dy] = ends(from, to);
    const path = svg("path", {
      d: `M${x1},${y1} C${x1 + dx},${y1 + dy} ${x2 - dx},${y2 - dy} ${x2},${y2}`,
      class: `edge ${flow.kind}`, "stroke-width": (0.8 + 7 * Math.sqrt(flow.bytes / most)).toFixed(2),
      "marker-end": `url(#arrow-${this.key})`, "data-from": flow.from, "data-to": flow.to,
    }, svg("title", {}, `${plural(flow.values, "value")}, ${format(flow.bytes, "bytes")}, ${flow.kind}`));
    path.style.stroke = EDGE_COLOURS[flow.kind];
    return path;
  }

  box(box) {
    const node = box.kind === "op" ? opBox(this, box) : groupBox(this, box);
    if (box.id === this.marked) node.classList.add("marked");
    node.setAttribute("tabindex", "-1");
    node.setAttribute("data-id", box.id);
    this.nodes.set(box.id, node);
    return node;
  }

  place() {
    const { x, y, scale } = this.view;
    this.canvas.setAttribute("transform", `translate(${x.toFixed(1)},${y.toFixed(1)}) scale(${scale.toFixed(4)})`);
  }

  zoom(factor, at) {
    const size = this.picture.getBoundingClientRect();
    const [x, y] = at ? [at.clientX - size.left, at.clientY - size.top] : [size.width / 2, size.height / 2];
    const scale = Math.min(4, Math.max(0.02, this.view.scale * factor));
    const ratio = scale / this.view.scale;
    this.view = { x: x - (x - this.view.x) * ratio, y: y - (y - this.view.y) * ratio, scale };
    this.moved = true;
    this.place();
  }

  fit() {
    const size = this.picture.getBoundingClientRect();
    if (!size.width) return;
    const scale = Math.min(1.2, (size.width - 20) / this.root.width, (size.height - 20) / this.root.height);
    this.view = { x: (size.width - this.root.width * scale) / 2, y: 10, scale };
    this.moved = false;
    this.place();
  }

  bringIn(box) {
    const size = this.picture.getBoundingClientRect();
    const { x, y, scale } = this.view;
    const [left, top] = [x + box.left * scale, y + box.top * scale];
    if (left < 0 || left > size.width - 40) this.view.x += size.width / 2 - left;
    if (top < 0 || top > size.height - 30) this.view.y += size.height / 2 - top;
    this.place();
  }
}
