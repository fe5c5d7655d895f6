// Guidelines: as much of Markdown as they need (headings, lists, tables, quotes, bold, italic, code, links), turned into nodes, never into HTML text.

import { h } from "./dom.js";

/** The blocks of a text. Headings start two levels down, below those of the page. */
export function markdown(text) {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    const heading = line.match(/^(#{1,6})\s+(.*)$/);
    if (heading) {
      blocks.push(h(`h${Math.min(6, heading[1].length + 2)}`, {}, inline(heading[2])));
      at++;
    } else if (line.startsWith("```")) {
      const code = taken(lines, at + 1, (next) => !next.startsWith("```"));
      blocks.push(h("pre", {}, h("code", {}, code.join("\n"))));
      at += code.length + 2;
    } else if (BULLET.test(line)) {
      const own = taken(lines, at, (next) => BULLET.test(next) || /^\s+\S/.test(next));
      blocks.push(h(/^\s*\d/.test(line) ? "ol" : "ul", {}, items(own).map((item) => h("li", {}, inline(item)))));
      at += own.length;
    } else if (line.startsWith("|")) {
      const rows = taken(lines, at, (next) => next.startsWith("|"));
      blocks.push(table(rows));
      at += rows.length;
    } else if (line.startsWith(">")) {
      const own = taken(lines, at, (next) => next.startsWith(">"));
      blocks.push(h("blockquote", {}, inline(own.map((next) => next.replace(/^>\s?/, "")).join(" "))));
      at += own.length;
    } else if (line.trim() === "") at++;
    else {
      const own = taken(lines, at, (next, first) => first || !(next.trim() === "" || /^(#{1,6}\s|```|\||>)/.test(next) || BULLET.test(next)));
      blocks.push(h("p", {}, inline(own.join(" "))));
      at += own.length;
    }
  }
  return blocks;
}

const BULLET = /^\s*([-*+]|\d+[.)])\s+/;

function taken(lines, at, fits) {
  const own = [];
  while (at + own.length < lines.length && fits(lines[at + own.length], own.length === 0)) own.push(lines[at + own.length]);
  return own;
}

/** Items of a list; a line further in goes on with the item before it. */
function items(lines) {
  const found = [];
  for (const line of lines) {
    if (BULLET.test(line)) found.push(line.replace(BULLET, ""));
    else found[found.length - 1] += ` ${line.trim()}`;
  }
  return found;
}

function table(rows) {
  const cells = rows.filter((row) => !/^\|[\s:|-]+\|?\s*$/.test(row)).map((row) => row.replace(/^\||\|\s*$/g, "").split("|").map((cell) => cell.trim()));
  const line = (name) => (row) => h("tr", {}, row.map((cell) => h(name, name === "th" ? { scope: "col" } : {}, inline(cell))));
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {}, h("thead", {}, cells.slice(0, 1).map(line("th"))), h("tbody", {}, cells.slice(1).map(line("td")))));
}

/** Bold, italic, code and links inside a line. */
function inline(text) {
  const parts = text.split(/(`[^`]+`|\*\*[^*]+\*\*|\*[^*\s][^*]*\*|\[[^\]]*\]\([^)]*\)|https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])/);
  return parts.map((part) => {
    if (/^`.+`$/.test(part)) return h("code", {}, part.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(part)) return h("strong", {}, part.slice(2, -2));
    if (/^\*.+\*$/.test(part)) return h("em", {}, part.slice(1, -1));
    const [, name, address] = part.match(/^\[([^\]]*)\]\(([^)]*)\)$/) ?? [null, part, part];
    return web(address) ? h("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, name) : part;
  });
}

/** Whether it is an address on the web and nothing else: no script, no file, no page of this server. */
function web(address) {
  try {
    return /^https?:\/\//i.test(address) && ["http:", "https:"].includes(new URL(address).protocol);
  } catch {
    return false;
  }
}
