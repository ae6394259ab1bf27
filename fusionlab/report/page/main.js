// The page: its sections in order, and where links lead.

const SECTIONS = {
  summary: summarySection, launches: launchesSection, graph: graphSection, replay: replaySection, clusters: clustersSection,
  refusals: refusalsSection, kernels: kernelsSection, memory: memorySection, changes: changesSection, equivalence: checksSection, roofline: rooflineSection,
  measured: measuredSection, reproduce: reproduceSection,
};

function route() {
  const hash = location.hash;
  if (!hash && !panel.hidden) hideDetails(); // back to where the page was opened
  if (hash && !showDetails(hash)) unfold(hash.slice(1));
}

// Of each target: launches differ from one to the next.
function outcomeWords(target, position) {
  const before = `${target.name}: ${format(target.before.footprint.dynamic_launches, "count")}${position ? "" : " kernel launches"}`;
  return target.after ? `${before} become ${format(target.after.footprint.dynamic_launches, "count")}` : `${before}; ${unchangedWords(target)}`;
}

document.title = `${study.study.name}: fusionlab study`;
document.getElementById("title").textContent = study.study.name;
document.getElementById("subtitle").textContent =
  `${distinct(study.targets.map((target) => target.pipeline)).join(" or ")} on ${study.targets.map(outcomeWords).join("; ")}`;
Object.entries(SECTIONS).forEach(([id, build]) => waiting.set(id, build));
unfold("summary");
for (const part of document.querySelectorAll("main > section > details")) {
  part.addEventListener("toggle", () => part.open && unfold(part.parentNode.id));
}
document.querySelector("nav").addEventListener("click", (event) => event.target.hash && unfold(event.target.hash.slice(1)));
addEventListener("beforeprint", () => Object.keys(SECTIONS).forEach(unfold));
addEventListener("hashchange", route);
setUpSearch();
route();
document.getElementById(location.hash.slice(1))?.scrollIntoView();
document.documentElement.dataset.ready = "yes";
