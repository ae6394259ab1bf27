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
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) buildNow(entry.target.id);
  }, { rootMargin: "600px" });
  for (const [id] of SECTIONS) seen.observe(document.getElementById(id));
  addEventListener("beforeprint", () => SECTIONS.forEach(([id]) => buildNow(id)));
  addEventListener("hashchange", route);
  setUpSearch();
  route();
  document.documentElement.dataset.ready = "yes";
}

start();
