// The section of the graph: one program or two side by side, and what its colours mean.

const graphs = new Map();
const graphPanes = el("div", { class: "panes" });
let graphChoice = null;

function graphSection() {
  const words = {};
  for (const target of study.targets) {
    for (const side of ["before", "after"]) {
      const key = keyOf(target, side);
      words[key] ||= side === "before" || key === target.original ? "original" : `rewritten for ${target.name}`;
    }
  }
  const keys = Object.keys(words);
  const options = keys.map((key) => [key, words[key]]);
  for (const key of keys.slice(1)) options.push([`${keys[0]}+${key}`, `${words[keys[0]]} and ${words[key]}, side by side`]);
  graphChoice = choose("Show", options, keys[0], (value) => showPanes(value.split("+"), words));
  showPanes([keys[0]], words);
  graphChoice.words = words;
  const families = [...new Set(keys.flatMap((key) => Object.keys(study.programs[key].groups[0].families)))];
  return [
    controls(graphChoice),
    familyLegend(families),
    el("p", { class: "note" }, "Boxes are loops, stages with the derivative's role, scopes and ops; the bar in a box is its bytes by family. " +
      "Bytes are counted as if nothing were fused; numbers in place of operands are no ops here. " +
      "Arrows are the values that pass, as wide as their bytes: ",
      el("span", { class: "sample data" }, "made and read"), ", ",
      el("span", { class: "sample residual" }, "made outside of a loop and read in every trip"), ", ",
      el("span", { class: "sample carried" }, "carried from trip to trip"),
      ". A thick frame is a loop. Press a group to unfold it, an op for its details. Drag to move, wheel or + and − to zoom; " +
      "with the keyboard: arrows, Enter, i for details, 0 to fit."),
    graphPanes,
  ];
}

function showPanes(keys, words) {
  replace(graphPanes, keys.map((key) => {
    if (!graphs.has(key)) graphs.set(key, new Graph(key, words[key]));
    return graphs.get(key).node;
  }));
  graphPanes.classList.toggle("two", keys.length > 1);
  keys.forEach((key) => requestAnimationFrame(() => !graphs.get(key).moved && graphs.get(key).fit()));
}

function showInGraph(key, kind, position) {
  buildNow("graph");
  const list = graphChoice.querySelector("select");
  if (!list.value.split("+").includes(key)) {
    list.value = key;
    showPanes([key], graphChoice.words);
  }
  graphs.get(key).node.scrollIntoView();
  graphs.get(key).reveal(kind, Number(position));
}
