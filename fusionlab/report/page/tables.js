// Tables that sort by a press on a heading and show the first rows until all are asked for.

const SHOWN = 25;

// columns: {label, value(row), cell(row), kind}; kind "text" is left-aligned.
function table(caption, columns, rows, options = {}) {
  const state = { by: options.by ?? -1, down: true, all: rows.length <= (options.shown || SHOWN) };
  const head = el("tr");
  const body = el("tbody");
  const more = el("button", { type: "button", class: "more" });
  const made = el(
    "table",
    { class: options.class || "" },
    el("caption", {}, caption),
    el("thead", {}, head),
    body,
    options.foot && el("tfoot", {}, rowOf(columns, options.foot, true)),
  );

  function sorted() {
    if (state.by < 0) return rows;
    const value = columns[state.by].value;
    const sign = state.down ? -1 : 1;
    return [...rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (!known(x) || !known(y)) return known(x) ? -1 : known(y) ? 1 : 0;
      return sign * (typeof x === "string" || typeof y === "string" ? String(x).localeCompare(String(y)) : x - y);
    });
  }

  function draw() {
    replace(
      head,
      columns.map((column, i) => {
        const mark = state.by === i ? (state.down ? "descending" : "ascending") : "none";
        const press = () => {
          state.down = state.by === i ? !state.down : column.kind !== "text";
          state.by = i;
          draw();
          head.children[i].querySelector("button").focus(); // the one that was pressed is replaced
        };
        const label = column.value
          ? el("button", { type: "button", on: { click: press } }, column.label, el("span", { "aria-hidden": "true" },
              state.by === i ? (state.down ? " ▾" : " ▴") : ""))
          : column.label;
        return el("th", { scope: "col", class: column.kind, "aria-sort": column.value ? mark : null }, label);
      }),
    );
    const order = sorted();
    replace(body, (state.all ? order : order.slice(0, options.shown || SHOWN)).map((row) => rowOf(columns, row)));
    more.textContent = `show all ${format(rows.length, "count")}`;
    more.hidden = state.all;
  }
  more.addEventListener("click", () => {
    state.all = true;
    draw();
  });
  draw();
  return el("div", { class: "table", tabindex: "0", role: "region", "aria-label": caption }, made, more);
}

function rowOf(columns, row, isFoot) {
  return el(
    "tr",
    { class: isFoot ? "sum" : null },
    columns.map((column, i) =>
      el(i === 0 ? "th" : "td", { class: column.kind, scope: i === 0 ? "row" : null }, column.cell(row)),
    ),
  );
}

const text = (label, value, cell) => ({ label, kind: "text", value, cell: cell || value });
const figure = (label, kind, value, href) => ({
  label,
  kind: "figure",
  value,
  cell: (row) => number(value(row), kind, href && href(row)),
});

// Names of launches, scopes and lines as links.
const launchLink = (target, side, name) => el("a", { href: link.launch(target, side, name), class: "code" }, name);
const sourceLink = (source) => (source ? el("a", { href: link.source(source), class: "code" }, source) : UNKNOWN);
const scopeLink = (scope, most = 60) =>
  scope ? el("a", { href: link.scope(scope), class: "code", title: scope }, scopeTail(scope, most)) : UNKNOWN;

// The end of a name stack says more than its beginning.
const scopeTail = (scope, most) => (scope.length <= most ? scope : `…${scope.slice(scope.length - most + 1)}`);

function launchTable(caption, target, side, rows, options = {}) {
  return table(
    caption,
    [
      text("launch", (row) => row.name, (row) => launchLink(target, side, row.name)),
      figure("model time", "us", (row) => row.model_us, (row) => link.launch(target, side, row.name)),
      figure("runs", "count", (row) => row.dynamic_launches, (row) => link.launch(target, side, row.name)),
      figure("bytes", "bytes", (row) => row.bytes, (row) => link.launch(target, side, row.name)),
      figure("FLOPs", "flops", (row) => row.flops, (row) => link.launch(target, side, row.name)),
      text("family", (row) => row.family, (row) => familyTag(row.family)),
      text("stage", (row) => row.stage),
      text("role", (row) => row.role),
      text("source", (row) => row.source, (row) => sourceLink(row.source)),
      text("scope", (row) => row.op_name, (row) => scopeLink(row.op_name, 40)),
    ],
    rows,
    { by: 1, ...options },
  );
}
