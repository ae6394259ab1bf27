// The page: its sections in order, and where links lead.

const SECTIONS = [
  ["summary", summarySection],
  ["launches", launchesSection],
  ["graph", graphSection],
  ["replay", replaySection],
  ["clusters", clustersSection],
  ["refusals", refusalsSection],
  ["changes", changesSection],
  ["equivalence", checksSection],
  ["roofline", rooflineSection],
  ["measured", measuredSection],
  ["reproduce", reproduceSection],
];

function route() {
  const hash = location.hash;
  if (!hash && !document.getElementById("details").hidden) hideDetails(); // back to where the page was opened
  if (!hash || showDetails(hash)) return;
  const section = document.getElementById(hash.slice(1));
  if (section) buildNow(section.id);
}

// Of each target: launches differ from one to the next.
function outcomeWords(target, position) {
  const before = `${target.name}: ${format(target.before.footprint.dynamic_launches, "count")}${position ? "" : " kernel launches"}`;
  return target.after ? `${before} become ${format(target.after.footprint.dynamic_launches, "count")}` : `${before}; no rewritten program was measured`;
}

function start() {
  document.title = `${study.study.name}: fusionlab study`;
  document.getElementById("title").textContent = study.study.name;
  const pipelines = [...new Set(study.targets.map((target) => target.pipeline))];
  document.getElementById("subtitle").textContent = `${pipelines.join(" or ")} on ${study.targets.map(outcomeWords).join("; ")}`;
  for (const [id, build] of SECTIONS) later(id, build);
  buildNow("summary");
  addEventListener("beforeprint", () => SECTIONS.forEach(([id]) => buildNow(id)));
  addEventListener("hashchange", route);
  setUpSearch();
  buildRest();
}

// One section after the other, so that the page can be used meanwhile; then to where the address points.
function buildRest() {
  const next = SECTIONS.find(([id]) => waiting.has(id));
  if (next) {
    buildNow(next[0]);
    setTimeout(buildRest);
    return;
  }
  const section = document.getElementById(location.hash.slice(1));
  if (section) section.scrollIntoView();
  route();
  document.documentElement.dataset.ready = "yes";
}

start();
