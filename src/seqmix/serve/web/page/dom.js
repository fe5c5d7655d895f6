// Building pages out of nodes. Text always becomes a text node, so a sentence is shown and never run.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `h("p", {class: "note"}, "text", node, …)`. Properties: on… listeners, null and false are left out, true is an empty attribute. */
export function h(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** The same for SVG. */
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value); // through the object model: the policy forbids style attributes
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...flat(children));
  return element;
}

const flat = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

export const $ = (id) => document.getElementById(id);

/** Replace what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
}

export const number = (n) => n.toLocaleString("en");
export const many = (n, what) => `${number(n)} ${what}${n === 1 ? "" : "s"}`;
export const percent = (p) => `${Math.round(100 * p)}%`;
export const f1 = (value) => value.toFixed(2);

/** The server's words as a sentence: with a capital and a full stop. */
export const sentence = (text) => (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".") : "");

let clearing;
/** Announce a text to screen readers. It is cleared in between, or the same text would not be read twice. */
export function announce(text) {
  const region = $("announce");
  region.textContent = "";
  clearTimeout(clearing);
  clearing = setTimeout(() => (region.textContent = text), 40);
}
