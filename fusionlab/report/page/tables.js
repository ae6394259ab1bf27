// Tables that sort by a press on a heading and show the first rows until all are asked for.

const SHOWN = 25;

// The end of a name stack says more than its beginning.
const scopeTail = (scope, most) => (scope.length <= most ? scope : `…${scope.slice(scope.length - most + 1)}`);
const code = (href, words, more) => el("a", { href, class: "code", ...more }, words);
const launchLink = (target, side, name) => code(link.launch(target, side, name), name);
const sourceLink = (source) => (source ? code(link.source(source), source) : UNKNOWN);
const scopeLink = (scope, most = 60) => (scope ? code(link.scope(scope), scopeTail(scope, most), { title: scope }) : UNKNOWN);

const CELLS = { text: (value) => value, family: familyTag, source: sourceLink, scope: (scope) => scopeLink(scope, 40) };

// Columns from [label, kind, field, cell]: a kind of CELLS, or a format of numbers, which lead where `to` says. The field is
// a name (that of the label, if left out) or a function of the row; null is no value to sort by.
function columns(specs, to) {
  return specs.filter(Boolean).map(([label, kind, field = label, cell]) => {
    const value = typeof field === "string" ? (row) => row[field] : field;
    const made = CELLS[kind] ? (row) => CELLS[kind](value(row)) : (row) => number(value(row), kind, to && to(row));
    return { label, value, kind: CELLS[kind] ? "text" : "figure", cell: cell || made };
  });
}

// options: by (the column to sort by), shown, class, foot (cells of a last row)
function table(caption, all, rows, options = {}) {
  const most = options.shown || SHOWN;
  const state = { by: options.by ?? -1, down: true, all: rows.length <= most };
  const head = el("tr");
  const body = el("tbody");
  const more = button(`show all ${format(rows.length, "count")}`, () => {
    state.all = true;
    draw();
  }, { class: "more" });

  function sorted() {
    if (state.by < 0) return rows;
    return [...rows].sort((a, b) => {
      const [x, y] = [a, b].map(all[state.by].value);
      if (!known(x) || !known(y)) return known(x) ? -1 : known(y) ? 1 : 0;
      return (state.down ? -1 : 1) * ([x, y].some((one) => typeof one === "string") ? String(x).localeCompare(String(y)) : x - y);
    });
  }

  function heading(column, i) {
    if (!column.value) return el("th", { scope: "col", class: column.kind }, column.label);
    const press = () => {
      state.down = state.by === i ? !state.down : column.kind !== "text";
      state.by = i;
      draw();
      head.children[i].querySelector("button").focus(); // the one that was pressed is replaced
    };
    const [order, mark] = state.by !== i ? ["none", ""] : state.down ? ["descending", " ▾"] : ["ascending", " ▴"];
    return el("th", { scope: "col", class: column.kind, "aria-sort": order },
      button([column.label, el("span", { "aria-hidden": "true" }, mark)], press));
  }

  function draw() {
    replace(head, all.map(heading));
    replace(body, sorted().slice(0, state.all ? undefined : most).map((row) => rowOf(all, all.map((column) => column.cell(row)))));
    more.hidden = state.all;
  }
  draw();
  const foot = options.foot && el("tfoot", {}, rowOf(all, options.foot, "sum"));
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption },
    el("table", { class: options.class || "" }, el("caption", {}, caption), el("thead", {}, head), body, foot), more);
}

const rowOf = (all, cells, kind) => el("tr", { class: kind }, cells.map((cell, i) =>
  el(i === 0 ? "th" : "td", { class: all[i].kind, scope: i === 0 ? "row" : null }, cell)));

const stageLegend = (...targets) => targets.some(isStaged) && el("p", { class: "note" }, STAGE_LEGEND);

// LAUNCH_COLUMNS are those of page/__init__.py.
function launchTable(caption, target, side, rows, options = {}) {
  const left = isStaged(target) ? ["op", "transform"] : ["stage", "role"];
  const specs = LAUNCH_COLUMNS.filter(([, field]) => !left.includes(field)).map(([label, field, kind]) =>
    kind === "launch" ? [label, "text", field, (row) => launchLink(target, side, row.name)] : [label, kind, field]);
  return table(caption, columns(specs, (row) => link.launch(target, side, row.name)), rows, { by: 1, ...options });
}

function opTable(caption, key, ops) {
  const to = (op) => link.op(key, op.position);
  return table(caption, columns([
    ["op", "text", "text", (op) => code(to(op), short(op.text, 46), { title: op.text })],
    ["bytes", "bytes"], ["runs", "count"], ["FLOPs", "flops", (op) => (op.unmodelled ? null : op.flops)],
    ["family", "family"], ["source", "source"],
  ], to), ops, { by: 1 });
}

const facts = (rows) => el("dl", {}, rows.filter(Boolean).map(([label, value]) => [el("dt", {}, label), el("dd", {}, value)]));
