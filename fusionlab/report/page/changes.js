// What each pass changed, side by side: what was removed on the left, what was added on the right. Folded until asked for.

const HUNK_LINES = 60;

function lineItem(position, mark, words) {
  const found = line(position);
  return el("li", {}, el("span", { class: "mark", "aria-hidden": "true" }, mark), " ", el("code", { title: found.scope }, words || found.text), " ",
    sourceLink(found.source) === UNKNOWN ? null : sourceLink(found.source), found.scope && [" ", scopeLink(found.scope, 34)]);
}

function column(title, positions, mark, cls) {
  const list = el("ol", { class: `lines ${cls}` });
  const fillTo = (count) => replace(list, positions.slice(0, count).map((position) => lineItem(position, mark)));
  fillTo(HUNK_LINES);
  const more = positions.length > HUNK_LINES && el("button", { type: "button", class: "more", on: { click: () => {
    fillTo(positions.length);
    more.remove();
  } } }, `show all ${format(positions.length, "count")}`);
  return el("div", {}, el("h4", {}, `${title}: ${plural(positions.length, "op")}`), list, more);
}

function hunkBody(hunk) {
  return [
    hunk.reads.length > 0 && el("details", {}, el("summary", {}, `reads ${plural(hunk.reads.length, "op")} that ${hunk.reads.length === 1 ? "is" : "are"} unchanged`),
      el("ol", { class: "lines" }, hunk.reads.slice(0, 200).map((position) => lineItem(position, " ")))),
    el("div", { class: "sides" }, column("removed", hunk.removed, "−", "removed"), column("added", hunk.added, "+", "added")),
    hunk.moved.length > 0 && [el("h4", {}, `moved: ${plural(hunk.moved.length, "op")}`), el("ol", { class: "lines" },
      hunk.moved.slice(0, 200).map((one) => lineItem(one.line, ">", `${line(one.line).text}  to ${one.to || "outside of the loop"}`)))],
    hunk.rewired.length > 0 && [el("h4", {}, `reads another value: ${plural(hunk.rewired.length, "op")}`), el("ol", { class: "lines" },
      hunk.rewired.slice(0, 200).map((one) => lineItem(one.line, "~", one.text)))],
  ];
}

function hunkPart(hunk) {
  const counts = ["removed", "added", "moved", "rewired"].filter((what) => hunk[what].length)
    .map((what) => `${format(hunk[what].length, "count")} ${what === "rewired" ? "reading another value" : what}`);
  const body = el("div");
  const part = el("details", { class: "hunk", on: { toggle: () => part.open && !body.childNodes.length && fill(body, {}, hunkBody(hunk)) } },
    el("summary", {}, counts.join(", "), hunk.loop && ` in ${hunk.loop}`, hunk.scope && [" at ", el("code", {}, scopeTail(hunk.scope, 80))]), body);
  return part;
}

function changesOf(target) {
  if (!target.diffs.length) return el("p", {}, `${target.name}: no pass changed the program.`);
  return target.diffs.map((diff) => el("div", {},
    el("h3", {}, study.targets.length > 1 && `${target.name}: `, el("code", {}, diff.pass)),
    el("p", {}, number(diff.removed, "count"), " ops removed, ", number(diff.added, "count"), " added, ", number(diff.moved, "count"), " moved, ",
      number(diff.rewired, "count"), " read another value, ", number(diff.unchanged, "count"), " unchanged"),
    diff.hunks.map(hunkPart)));
}

const changesSection = () => [
  el("p", { class: "note" }, "A value has one name through all programs; a change is put together with what hangs together. Numbers that stand in place of operands are no ops."),
  study.targets.map(changesOf),
];
