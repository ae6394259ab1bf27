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

// A section of the page is filled when there is time for it, or at once when it is asked for.
const waiting = new Map();

function buildNow(id) {
  const build = waiting.get(id);
  if (waiting.delete(id)) replace(document.querySelector(`#${id} > .body`), build());
}
