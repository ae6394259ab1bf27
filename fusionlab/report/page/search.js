// One box finds ops, launches, groups, scopes and source lines by any part of their text.

const MOST_FOUND = 12;

function findAll(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  const hit = (...texts) => {
    const all = texts.join(" ").toLowerCase();
    return wanted.every((word) => all.includes(word));
  };
  const found = [];
  const add = (kind, all) => found.push({ kind, total: all.length, shown: all.slice(0, MOST_FOUND) });
  add("source lines", study.lines.sources.filter((source) => source && hit(source)).map((source) => [source, link.source(source)]));
  for (const key of Object.keys(study.programs)) {
    const program = programOf(key);
    add(`groups, ${key}`, program.groups.flatMap((group, i) => (i && hit(group.label) ? [[`${group.label} (${plural(group.ops, "op")})`, link.group(key, i)]] : [])));
    add(`ops, ${key}`, program.ops.filter((op) => hit(op.name, op.text, op.scope, op.source))
      .map((op) => [op.text, link.op(key, op.position), op.scope]));
  }
  for (const target of study.targets) {
    for (const side of sideNames(target)) {
      add(`launches on ${target.name}, ${side}`, launchesOf(target, side).filter((row) => hit(row.name, row.op_name, row.source, row.family))
        .map((row) => [row.name, link.launch(target, side, row.name), row.op_name]));
    }
  }
  add("scopes", study.lines.scopes.filter((scope) => scope && hit(scope)).map((scope) => [scope, link.scope(scope)]));
  return found.filter((part) => part.total);
}

// Arrows, Home and End walk from the box through the links and back; Enter in the box follows the first. Whether they did.
function steps(event, box, results) {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "Enter" && at < 0) links[0].click();
  else if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)].focus();
  else if (event.key === "ArrowUp" && at >= 0) (links[at - 1] || box).focus();
  else if (event.key === "Home" && at >= 0) links[0].focus();
  else if (event.key === "End" && at >= 0) links.at(-1).focus();
  else return false;
  return true;
}

function setUpSearch() {
  const box = document.getElementById("search");
  const results = document.getElementById("results");
  const said = document.getElementById("found");
  const hide = () => (results.hidden = true);
  let timer = 0;
  const show = () => {
    const parts = findAll(box.value);
    const total = parts.reduce((sum, part) => sum + part.total, 0);
    said.textContent = box.value.trim() ? `${format(total, "count")} found` : "";
    replace(results, parts.map((part) => [
      el("h2", {}, `${part.kind}: ${format(part.total, "count")}`),
      el("ul", { "aria-label": part.kind }, part.shown.map(([words, href, more]) => el("li", {},
        el("a", { href, class: "code", title: more || words, on: { click: hide } }, scopeTail(words.length > 110 && more ? short(words, 110) : words, 110)),
        more && el("span", { class: "note code" }, " ", scopeTail(more, 60))))),
    ]));
    results.scrollTop = 0;
    results.hidden = !parts.length;
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, 120);
  });
  box.addEventListener("focus", () => box.value && results.hidden && show());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "/" && !typing) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape") {
      if (!results.hidden) {
        box.focus();
        hide();
      } else if (!document.getElementById("details").hidden) closeDetails();
    } else if (event.target.closest(".search") && !results.hidden && steps(event, box, results)) event.preventDefault();
  });
  addEventListener("hashchange", hide);
  document.addEventListener("pointerdown", (event) => {
    if (!event.target.closest(".search")) hide();
  });
}
