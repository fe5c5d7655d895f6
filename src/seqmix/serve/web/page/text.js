// A sentence with its marks as plain text: to read, not to edit.

import { h } from "./dom.js";
import { written } from "./glyphs.js";
import { markAt } from "./marks.js";
import { markFrame } from "./view.js";

const SHOWN = 400; // tokens of a sentence that are drawn

/** The nodes of a sentence; `frame(mark, node)` may change the frame of a mark. */
export function marked(sentence, spans, tags, frame = () => {}) {
  const marks = spans.map((span) => ({ ...span, confidence: null })).sort((a, b) => a.start - b.start);
  const space = (at) => sentence.spaces?.[at] ?? true;
  const nodes = [];
  const end = Math.min(sentence.tokens.length, SHOWN);
  for (let at = 0; at < end; ) {
    const mark = markAt({ marks }, at);
    const to = mark ? Math.min(mark.end, end) : at + 1;
    const inside = [];
    for (let i = at; i < to; i++) inside.push(i > at && space(i - 1) ? " " : "", ...written(sentence.tokens[i]));
    const framed = mark && markFrame(mark, inside, (name) => tags.find((tag) => tag.name === name)?.color ?? 0);
    if (mark) {
      framed.append(h("span", { class: "unseen" }, ` (${mark.tag}) `));
      frame(mark, framed);
    }
    nodes.push(...(mark ? [framed] : inside), space(to - 1) ? " " : "");
    at = to;
  }
  return [...nodes, end < (sentence.length ?? sentence.tokens.length) && "…"];
}
