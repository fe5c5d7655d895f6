// Guidelines: the Markdown they need (headings, lists, tables, quotes, bold, italic, code, links), turned into nodes, never into HTML text.

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
      const list = taken(lines, at, (next) => BULLET.test(next) || /^\s+\S/.test(next));
      blocks.push(h(/^\s*\d/.test(line) ? "ol" : "ul", {}, items(list).map((item) => h("li", {}, inline(item)))));
      at += list.length;
    } else if (line.startsWith("|")) {
      const rows = taken(lines, at, (next) => next.startsWith("|"));
      blocks.push(table(rows));
      at += rows.length;
    } else if (line.startsWith(">")) {
      const quote = taken(lines, at, (next) => next.startsWith(">"));
      blocks.push(h("blockquote", {}, inline(quote.map((next) => next.replace(/^>\s?/, "")).join(" "))));
      at += quote.length;
    } else if (line.trim() === "") at++;
    else {
      const paragraph = taken(lines, at, (next, first) => first || !(next.trim() === "" || /^(#{1,6}\s|```|\||>)/.test(next) || BULLET.test(next)));
      blocks.push(h("p", {}, inline(paragraph.join(" "))));
      at += paragraph.length;
    }
  }
  return blocks;
}

const BULLET = /^\s*([-*+]|\d+[.)])\s+/;

function taken(lines, at, fits) {
  const block = [];
  while (at + block.length < lines.length && fits(lines[at + block.length], block.length === 0)) block.push(lines[at + block.length]);
  return block;
}

/** Items of a list; an indented line continues the item before it. */
function items(lines) {
  const result = [];
  for (const line of lines) {
    if (BULLET.test(line)) result.push(line.replace(BULLET, ""));
    else result[result.length - 1] += ` ${line.trim()}`;
  }
  return result;
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

/** Whether it is an address on the web, not a script, a file or a page of this server. */
function web(address) {
  try {
    return /^https?:\/\//i.test(address) && ["http:", "https:"].includes(new URL(address).protocol);
  } catch {
    return false;
  }
}
