// Colour and mark of op families: the page puts family_looks.py's colours into its style and the marks, FAMILIES, before this script.

const knownFamily = (family) => (Object.hasOwn(FAMILIES, family) ? family : "other");
const familyColour = (family) => `var(--family-${knownFamily(family)})`; // that of the paper, light or dark
const familyMark = (family) => FAMILIES[knownFamily(family)];

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
