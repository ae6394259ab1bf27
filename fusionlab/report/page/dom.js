// Elements from data. Everything that comes from a program (names, op text, scopes) goes in as text, never as markup.

const present = (one) => one !== null && one !== undefined && one !== false;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (!present(value)) continue;
    if (name === "on") Object.entries(value).forEach(([event, listener]) => node.addEventListener(event, listener));
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter(present).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function replace(node, ...children) {
  node.replaceChildren();
  return fill(node, {}, children);
}

const button = (words, press, attributes) => el("button", { type: "button", ...attributes, on: { click: press } }, words);

// A folded part whose inside is made when it is first opened.
function folded(attributes, summary, inside) {
  const body = el("div");
  const open = () => part.open && !body.childNodes.length && fill(body, {}, [inside()]);
  const part = el("details", { ...attributes, on: { toggle: open } }, el("summary", {}, summary), body);
  return part;
}

// A section is filled when it is first unfolded: by its heading, by what leads into it, or to be printed.
const waiting = new Map();

function unfold(id) {
  const build = waiting.get(id);
  if (waiting.delete(id)) replace(document.querySelector(`#${id} .body`), build());
  const part = document.getElementById(id)?.querySelector(":scope > details");
  if (part) part.open = true;
}

// Numbers for people, and the looks of op families. Every number keeps its exact value in data-value; what is unknown is
// a dash, never 0.

const UNKNOWN = "–";
const grouped = (value, digits) =>
  value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });

function scaled(value, step, units) {
  let index = 0;
  let size = value;
  while (Math.abs(size) >= 999.5 && index < units.length - 1) {
    size /= step;
    index += 1;
  }
  const digits = index === 0 || Math.abs(size) >= 99.5 ? 0 : Math.abs(size) >= 9.95 ? 1 : 2;
  return `${grouped(size, digits)} ${units[index]}`;
}

const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

const FORMATS = {
  count: (value) => grouped(value, 0),
  bytes: (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]),
  flops: (value) => scaled(value, 1000, ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"]),
  us: (value) => (Math.abs(value) >= 1000 ? `${grouped(value / 1e3, 2)} ms` : `${grouped(value, 1)} µs`),
  seconds: (value) => `${grouped(value, 1)} s`,
  ratio: (value) => grouped(value, 3),
  share: (value) => `${grouped(100 * value, 1)} %`,
  small: (value) => (value === 0 ? "0" : Number(value).toPrecision(2)),
};

function format(value, kind) {
  if (!known(value)) return UNKNOWN;
  return typeof value === "number" ? FORMATS[kind](value) : String(value); // "inf" and "nan" are strings in the document
}

// A number as an element: a link where href says what it is made of.
function number(value, kind, href, unfinished) {
  if (!known(value)) return el("span", { class: "num", title: "not known" }, UNKNOWN);
  const exact = { "data-value": value, title: value };
  return el(href ? "a" : "span", { class: "num", href, ...exact }, `${unfinished ? "≥ " : ""}${format(value, kind)}`);
}

const short = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);
const plural = (count, word) => `${format(count, "count")} ${word}${count === 1 ? "" : /(ch|s)$/.test(word) ? "es" : "s"}`;
const sum = (numbers) => numbers.reduce((all, one) => all + one, 0);
const distinct = (values) => [...new Set(values)];

// The page puts the colours of pictures/looks.py into its style and the marks, FAMILIES, before this script.
const knownFamily = (family) => (Object.hasOwn(FAMILIES, family) ? family : "other");
const familyColour = (family) => `var(--family-${knownFamily(family)})`; // that of the paper, light or dark
const familyMark = (family) => FAMILIES[knownFamily(family)];
const familyTag = (family) => el("span", { class: "family" },
  el("span", { class: "mark", "aria-hidden": "true", style: { color: familyColour(family) } }, familyMark(family)), " ", family);
