// Colour and mark of op families: the palette of Okabe and Ito (2008), which colour-blind readers can tell apart, and a
// mark each, so that nothing is said by colour alone.

const FAMILIES = {
  elementwise: ["#009E73", "●"],
  gemm: ["#D55E00", "◆"],
  reduction: ["#0072B2", "▼"],
  layout: ["#E69F00", "□"],
  "gather-scatter": ["#56B4E9", "⋈"],
  "triangular-solve": ["#CC79A7", "◣"],
  factorisation: ["#8C6BB1", "◩"],
  attention: ["#F0E442", "✱"],
  sort: ["#999999", "↕"],
  control: ["#999999", "↻"],
};
const OTHER = ["#999999", "?"];

const familyColour = (family) => (FAMILIES[family] || OTHER)[0];
const familyMark = (family) => (FAMILIES[family] || OTHER)[1];

function familyTag(family) {
  const mark = el("span", { class: "mark", "aria-hidden": "true" }, familyMark(family));
  mark.style.color = familyColour(family);
  return el("span", { class: "family" }, mark, " ", family);
}

function familyLegend(families) {
  return el(
    "ul",
    { class: "legend", "aria-label": "Families of ops" },
    families.map((family) => el("li", {}, familyTag(family))),
  );
}
