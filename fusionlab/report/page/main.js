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

function start() {
  document.title = `${study.study.name}: fusionlab study`;
  document.getElementById("title").textContent = study.study.name;
  const first = study.targets[0];
  const before = first.before.footprint.dynamic_launches;
  document.getElementById("subtitle").textContent = first.after
    ? `${first.pipeline} on ${study.targets.map((target) => target.name).join(", ")}: ${format(before, "count")} kernel launches become ` +
      `${format(first.after.footprint.dynamic_launches, "count")}`
    : `${first.name}: ${format(before, "count")} kernel launches; no rewritten program was measured`;
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
