// One box finds ops, launches, groups, scopes and source lines by any part of their text.

const MOST_FOUND = 12;

function findAll(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (!wanted.length) return [];
  const hit = (texts) => wanted.every((word) => texts.includes(word));
  const found = [];
  // One kind: what of `all` has the words in its texts, and the link of each as [words, address, more].
  const add = (kind, all, texts, linked) => {
    const hits = all.filter((one) => hit(texts(one).join(" ").toLowerCase()));
    if (hits.length) found.push({ kind, total: hits.length, shown: hits.slice(0, MOST_FOUND).map(linked) });
  };
  add("source lines", study.lines.sources.filter(Boolean), (source) => [source], (source) => [source, link.source(source)]);
  for (const key of programKeys()) {
    const { ops, groups } = programOf(key);
    add(`groups, ${key}`, groups.slice(1), (group) => [group.label],
      (group) => [`${group.label} (${plural(group.ops, "op")})`, link.group(key, groups.indexOf(group))]);
    add(`ops, ${key}`, ops, (op) => [op.name, op.text, op.scope, op.source], (op) => [op.text, link.op(key, op.position), op.scope]);
  }
  for (const [target, side] of sides) {
    add(`launches on ${target.name}${sideWords(target, side)}`, launchesOf(target, side), (row) => [row.name, row.op_name, row.source, row.family],
      (row) => [row.name, link.launch(target, side, row.name), row.op_name]);
  }
  add("scopes", study.lines.scopes.filter(Boolean), (scope) => [scope], (scope) => [scope, link.scope(scope)]);
  return found;
}

// Arrows, Home and End walk from the box through the links and back; Enter in the box follows the first. Whether they did.
function steps(event, box, results) {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  const inside = { ArrowUp: links[at - 1] || box, Home: links[0], End: links.at(-1) };
  const next = event.key === "ArrowDown" ? links[Math.min(at + 1, links.length - 1)] : at >= 0 && inside[event.key];
  if (next) next.focus();
  else if (event.key === "Enter" && at < 0) links[0].click();
  else return false;
  return true;
}

function setUpSearch() {
  const [box, results, said] = ["search", "results", "found"].map((id) => document.getElementById(id));
  const hide = () => (results.hidden = true);
  const item = ([words, href, more]) => el("li", {},
    el("a", { href, class: "code", title: more || words, on: { click: hide } }, scopeTail(more ? short(words, 110) : words, 110)),
    more && el("span", { class: "note code" }, " ", scopeTail(more, 60)));
  const show = () => {
    const parts = findAll(box.value);
    said.textContent = box.value.trim() ? `${format(sum(parts.map((part) => part.total)), "count")} found` : "";
    replace(results, parts.map(({ kind, total, shown }) =>
      [el("h2", {}, `${kind}: ${format(total, "count")}`), el("ul", { "aria-label": kind }, shown.map(item))]));
    results.scrollTop = 0;
    results.hidden = !parts.length;
  };
  let timer = 0;
  fill(box, { on: {
    input: () => {
      clearTimeout(timer);
      timer = setTimeout(show, 120);
    },
    focus: () => box.value && results.hidden && show(),
  } }, []);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      event.preventDefault();
      box.focus();
    } else if (event.key === "Escape") {
      if (!results.hidden) {
        box.focus();
        hide();
      } else if (!panel.hidden) closeDetails();
    } else if (event.target.closest(".search") && !results.hidden && steps(event, box, results)) event.preventDefault();
  });
  addEventListener("hashchange", hide);
  document.addEventListener("pointerdown", (event) => event.target.closest(".search") || hide());
}
