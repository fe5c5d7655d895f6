// How each tag does: its marks and the model's F1 on it, and for admins how people agree on it and what they confuse.

import { get } from "./api.js";
import { $, f1, fill, h, many, number } from "./dom.js";

const MOST = 30; // differences that are shown

/** Show the marks and the F1 of each tag when the list is opened. */
export function followTags() {
  const host = $("by-tag");
  const load = async () => {
    try {
      const { tags } = await get("api/tags/progress");
      const rows = tags.map(({ tag, spans, f1: figure }) => h("tr", {}, h("th", { scope: "row" }, tag), h("td", {}, many(spans, "mark")), h("td", {}, figure ? `F1 ${f1(figure.f1)} (${f1(figure.low)} – ${f1(figure.high)})` : "")));
      fill($("by-tag-rows"), rows);
    } catch (error) {
      if (!error.kind) throw error; // otherwise the next opening asks again
    }
  };
  host.addEventListener("toggle", () => host.open && load());
  if (host.open) load(); // it was opened before the project was there
}

/** Show how well people agree on each tag, and what they confuse. */
export async function drawConfusion(host) {
  const { tags, differences } = await get("api/confusion");
  if (!tags.length) return fill(host);
  fill(host, h("h3", {}, "By tag"),
    table(["Tag", "Marks", "Span F1"], tags.map((row) => [row.tag, number(row.marks), f1(row.f1)])),
    differences.length > 0 && [h("h3", {}, "What differs"), table(["", "Times", ""], differences.slice(0, MOST).map((difference) => [said(difference), number(difference.n), link(difference)]))],
    differences.length > MOST && h("p", { class: "quiet-text" }, `${number(differences.length - MOST)} more kinds, less frequent than these.`));
}

function said({ a, b, tag_a, tag_b, ends }) {
  if (tag_a === null) return `${b} marks ${tag_b}, ${a} nothing`;
  if (tag_b === null) return `${a} marks ${tag_a}, ${b} nothing`;
  if (tag_a === tag_b) return `${a} and ${b} mark ${tag_a} with different boundaries`;
  return `${a} marks ${tag_a}, ${b} ${tag_b}${ends ? ", with different boundaries" : ""}`;
}

const link = ({ example }) => h("a", { href: `answers.html?id=${encodeURIComponent(example)}` }, "example");
/** A table whose first cells name their rows. */
export const table = (head, rows) => h("div", { class: "wide" }, h("table", {},
  h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
  h("tbody", {}, rows.map(([name, ...cells]) => h("tr", {}, h("th", { scope: "row" }, name), cells.map((cell) => h("td", {}, cell)))))));
