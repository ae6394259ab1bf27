// Launches, bytes and time by stage and family, before and after, and the launches themselves.

const METRICS = {
  dynamic_launches: ["launches", "count"],
  bytes: ["bytes (model)", "bytes"],
  flops: ["FLOPs of the launches (model)", "flops"],
  model_us: ["time (model)", "us"],
};

function matrix(target, side, metric, most) {
  const [words, kind] = METRICS[metric];
  const groups = target[side].by_stage_family;
  const families = [...new Set(groups.map((group) => group.family))];
  const total = (of) => of.reduce((sum, group) => (known(group[metric]) ? (sum ?? 0) + group[metric] : sum), null);
  const both = sideNames(target).flatMap((one) => target[one].by_stage_family); // one order before and after
  const weight = (family) => total(both.filter((group) => group.family === family)) || 0;
  families.sort((a, b) => weight(b) - weight(a));
  const stages = [...new Set(groups.map((group) => group.stage))].sort();
  const unfinished = (of) => metric === "model_us" && of.some((group) => group.unmodelled_us_launches > 0);
  const sumCell = (of, href) => number(total(of), kind, of.length ? href : null, unfinished(of));
  const cell = (stage, family) => {
    const found = groups.filter((group) => group.stage === stage && group.family === family);
    if (!found.length) return el("span", { class: "nothing", "aria-label": "none" }, "·");
    const made = sumCell(found, link.launches(target, side, { stage, family }));
    const bar = el("span", { class: "bar", "aria-hidden": "true" });
    bar.style.width = `${Math.max(1, (100 * (total(found) || 0)) / (most || 1))}%`;
    bar.style.background = familyColour(family);
    return [made, bar];
  };
  const columns = [
    text("stage", null, (stage) => (stage === "-" ? "no stage" : stage)),
    ...families.map((family) => ({ label: familyTag(family), kind: "figure", cell: (stage) => cell(stage, family) })),
    { label: "all", kind: "figure", cell: (stage) => sumCell(groups.filter((group) => group.stage === stage),
      link.launches(target, side, { stage })) },
  ];
  const foot = columns.map((column, i) => ({ ...column, cell: () => i === 0 ? "all" : i === columns.length - 1
    ? sumCell(groups, link.launches(target, side, {}))
    : sumCell(groups.filter((group) => group.family === families[i - 1]), link.launches(target, side, { family: families[i - 1] })) }));
  const made = table(`${words} on ${target.name}, ${side}, by stage and family`, columns, stages, { class: "matrix" });
  made.querySelector("table").append(el("tfoot", {}, rowOf(foot, null, true)));
  return made;
}

function launchesSection() {
  const shown = el("div");
  const choice = { metric: "model_us", target: study.targets[0] };
  const draw = () => {
    const sides = sideNames(choice.target);
    const most = Math.max(...sides.flatMap((side) => choice.target[side].by_stage_family.map((group) => group[choice.metric] || 0)));
    replace(shown,
      sides.map((side) => matrix(choice.target, side, choice.metric, most)),
      sides.map((side) => {
        const rows = launchesOf(choice.target, side).filter((row) => row.dynamic_launches);
        return el("details", {}, el("summary", {}, `all ${format(rows.length, "count")} launch sites, ${side}`),
          launchTable(`Launch sites on ${choice.target.name}, ${side}`, choice.target, side, rows));
      }));
  };
  draw();
  return [
    controls(
      choose("Show", Object.entries(METRICS).map(([key, [words]]) => [key, words]), choice.metric, (metric) => {
        choice.metric = metric;
        draw();
      }),
      chooseTarget(choice, draw),
    ),
    shown,
  ];
}

// Drop-down lists, shared by the sections.
const controls = (...made) => el("div", { class: "controls" }, made);

function choose(label, options, selected, changed) {
  const list = el("select", { on: { change: () => changed(list.value) } },
    options.map(([value, words]) => el("option", { value, selected: value === selected }, words)));
  return el("label", {}, `${label} `, list);
}

function chooseTarget(choice, draw) {
  if (study.targets.length < 2) return null;
  return choose("Target", study.targets.map((target) => [target.name, target.name]), choice.target.name, (name) => {
    choice.target = targetOf(name);
    draw();
  });
}
