// Spans whose tag was split: one choice for each, by a key or a click, before the answer can be saved.

import { post } from "./api.js";
import { h } from "./dom.js";
import { isSure, marksIn } from "./marks.js";

/** `decided()` is called after a choice; `text(mark)` returns the words of a span. */
export function createChoices({ editor, text, decided }) {
  let opened = [], whole = false, nothing = new Set(), buttons = [], boxes = new Map();

  /** Begin with a review: what is open in it, and what to draw besides the answer. */
  function of({ doubts, whole: all }) {
    opened = doubts.flatMap(({ kind, details }) => (kind === "split" ? (details.open ?? []) : []));
    [whole, nothing, buttons, boxes] = [all, new Set(), [], new Map()];
    return opened.map(({ start, end, tag }) => ({ start, end, by: tag }));
  }

  const chosen = ({ start, end }) => marksIn(editor.state(), start, end)[0]?.tag ?? ((whole ? nothing.has(start) : isSure(editor.state(), start)) ? "" : null);
  const waiting = () => opened.filter((mark) => chosen(mark) === null);

  function choose(mark, tag) {
    if (tag) editor.tagAll([[mark.start, mark.end]], tag);
    else {
      editor.untag(mark.start, mark.end);
      nothing.add(mark.start);
    }
    next();
  }

  /** Select the next span that waits, so that a key tags it. */
  function next() {
    const [mark] = waiting();
    if (mark) editor.point(mark.start, mark.end);
    decided();
    editor.focus();
  }

  function row(mark) {
    const names = [...mark.choices.filter(Boolean), ""];
    const made = names.map((tag) => [mark, tag, h("button", { type: "button", class: "quiet", "aria-pressed": "false", onclick: () => choose(mark, tag) }, tag || "Nothing")]);
    buttons.push(...made);
    const box = h("input", { type: "checkbox" });
    if (!whole) boxes.set(mark, box); // whoever decides about the answer of another decides about one
    return h("p", { class: "choice" }, `“${text(mark)}” was ${mark.tag} and is now `, made.map(([, , button]) => button), !whole && h("label", { class: "quiet-text" }, box, " wherever it occurs"));
  }

  /** The choices as nodes. */
  const nodes = () => opened.map(row);

  /** Show what is chosen. */
  function redraw() {
    for (const [mark, tag, button] of buttons) button.setAttribute("aria-pressed", String(chosen(mark) === tag));
  }

  /** Make the choices that were asked for in all answers; return the batches. Call it before the next review is shown. */
  async function everywhere(id) {
    const wanted = [...boxes].filter(([mark, box]) => box.checked && chosen(mark)).map(([mark]) => ({ id, start: mark.start, end: mark.end, tag: chosen(mark) }));
    const batches = [];
    for (const body of wanted) {
      let one;
      do batches.push((one = await post("api/same", body)));
      while (one.more);
    }
    return batches;
  }

  return { of, everywhere, nodes, next, redraw, waiting, any: () => opened.length > 0 };
}
