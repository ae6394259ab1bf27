// Colour and mark of op families: FAMILIES is family_looks.py's table, which the page puts before this script.

const familyColour = (family) => (FAMILIES[family] || FAMILIES.other)[0];
const familyMark = (family) => (FAMILIES[family] || FAMILIES.other)[1];

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
