// Launches, bytes and time by view (stage, scope, source line or op) and family, before and after, and the launches themselves.

const METRICS = {
  dynamic_launches: ["launches", "count"], bytes: ["bytes (model)", "bytes"],
  flops: ["FLOPs of the launches (model)", "flops"], model_us: ["time (model)", "us"],
};

// The sum of what is known; null where nothing is.
const total = (groups, metric) => groups.map((group) => group[metric]).filter(known).reduce((all, one) => (all ?? 0) + one, null);

function matrix(target, side, metric, most) {
  const [words, kind] = METRICS[metric];
  const groups = groupsOf(target, side);
  const both = sideNames(target).flatMap((one) => groupsOf(target, one)); // one order before and after
  const { field, view } = viewOf(target);
  const weight = (family) => total(both.filter((group) => group.family === family), metric) || 0;
  const families = distinct(groups.map((group) => group.family)).sort((a, b) => weight(b) - weight(a));
  const of = (by) => groups.filter((group) => Object.entries(by).every(([name, value]) => group[name] === value));
  const summed = (by) => {
    const unfinished = metric === "model_us" && of(by).some((group) => group.unmodelled_us_launches > 0);
    return number(total(of(by), metric), kind, of(by).length ? link.launches(target, side, by) : null, unfinished);
  };
  const cell = (place, family) => {
    const found = of({ [field]: place, family });
    if (!found.length) return el("span", { class: "nothing", "aria-label": "none" }, "·");
    const width = `${Math.max(1, (100 * (total(found, metric) || 0)) / (most || 1))}%`;
    return [summed({ [field]: place, family }), el("span", { class: "bar", "aria-hidden": "true", style: { width, background: familyColour(family) } })];
  };
  return table(`${words} on ${target.name}${sideWords(target, side)}, by ${view} and family`, [
    { label: view, kind: "text", cell: placeWords },
    ...families.map((family) => ({ label: familyTag(family), kind: "figure", cell: (place) => cell(place, family) })),
    { label: "all", kind: "figure", cell: (place) => summed({ [field]: place }) },
  ], distinct(groups.map((group) => group[field])).sort(),
  { class: "matrix", foot: ["all", ...families.map((family) => summed({ family })), summed({})] });
}

function launchesSection() {
  const shown = el("div");
  const choice = { metric: "model_us", target: study.targets[0] };
  const sites = (target, side) => {
    const rows = launchesOf(target, side).filter((row) => row.dynamic_launches);
    return el("details", {}, el("summary", {}, `all ${format(rows.length, "count")} launch sites${sideWords(target, side)}`),
      launchTable(`Launch sites on ${target.name}${sideWords(target, side)}`, target, side, rows));
  };
  const draw = (changed) => {
    const { metric, target } = Object.assign(choice, changed);
    const names = sideNames(target);
    const most = Math.max(...names.flatMap((side) => groupsOf(target, side).map((group) => group[metric] || 0)));
    replace(shown, names.map((side) => matrix(target, side, metric, most)), names.map((side) => sites(target, side)), stageLegend(target));
  };
  draw();
  const metrics = Object.entries(METRICS).map(([key, [words]]) => [key, words]);
  const targets = study.targets.map((target) => [target.name, target.name]);
  return [el("div", { class: "controls" }, choose("Show", metrics, choice.metric, (metric) => draw({ metric })),
    targets.length > 1 && choose("Target", targets, choice.target.name, (name) => draw({ target: targetOf(name) }))), shown];
}

// A drop-down list.
function choose(label, options, selected, changed) {
  const list = el("select", { on: { change: () => changed(list.value) } },
    options.map(([value, words]) => el("option", { value, selected: value === selected }, words)));
  return el("label", {}, `${label} `, list);
}
