// Editing the marks of one sentence with keyboard, mouse or finger: the cursor, the selection, undo. It does not talk to the server.

import { announce, many } from "./dom.js";
import { directionOf, readable } from "./glyphs.js";
import * as marks from "./marks.js";
import { sentenceView } from "./view.js";

/** An editor on `host`. `changed()` is called after every change, `brush()` returns the tag that a drag applies at once, or null. */
export function createEditor({ host, pager, tags, direction, changed = () => {}, brush = () => null }) {
  const colors = (name) => tags.find((tag) => tag.name === name)?.color ?? 0;
  const view = sentenceView(host, pager, colors, (at) => select(clamp(at), clamp(at)));
  let sent = { tokens: [] }, state = marks.opened({}), hints = [], past = [], future = [];
  let cursor = 0, anchor = 0, live = false; // live: selected by a person, so a tag button applies to it

  const clamp = (at) => Math.max(0, Math.min(sent.tokens.length - 1, at));
  const range = () => ({ cursor, start: Math.min(cursor, anchor), end: Math.max(cursor, anchor) + 1, live });
  const text = (start, end) => sent.tokens.slice(start, Math.min(end, start + 12)).map(readable).join(" ");

  function open(sentence, draft = null) {
    [sent, hints, past, future, cursor, anchor, live] = [sentence, sentence.hints ?? [], [], [], 0, 0, false];
    state = draft ?? marks.opened(sentence);
    view.open(sentence, directionOf(sentence.tokens, direction));
    redraw();
  }

  function redraw() {
    view.draw(state, range(), pointers());
    changed();
  }

  function change(next, message) {
    past.push(state);
    future = [];
    state = next;
    redraw();
    if (message) announce(message);
  }

  function select(from, to, pointed = true) {
    const before = Math.floor(cursor / view.step());
    [anchor, cursor, live] = [from, to, pointed];
    if (Math.floor(cursor / view.step()) !== before || !host.querySelector(`[data-at="${cursor}"]`)) view.draw(state, range(), pointers());
    else view.paint(range());
    changed();
  }

  function tag(name) {
    if (!sent.tokens.length) return;
    const { start, end } = hinted(range());
    const next = marks.tagged(state, start, end, name);
    const mark = marks.markAt(next, start);
    anchor = cursor = clamp(mark.end - 1);
    live = false;
    change(next, `${name}: ${text(mark.start, mark.end)}`);
  }

  /** The hints where nothing is marked yet. */
  const pointers = () => hints.filter((hint) => !marks.marksIn(state, hint.start, hint.end).length);

  /** A single token inside a hint means the whole hint; but not what the model is hardly sure of. */
  const hinted = ({ start, end }) => (end - start === 1 && pointers().find((hint) => !hint.weak && hint.start <= start && start < hint.end)) || { start, end };

  /** Show these suggestions in place of those that nobody has confirmed. */
  function suggest(spans, untagged) {
    hints = untagged;
    change(marks.withSuggestions(state, spans));
  }

  /** Mark nothing there and be sure of it. */
  function untag(start, end) {
    const next = marks.cleared(state, start, end);
    change(next.sure && !marks.isSure(next, start) ? marks.sureOf(next, start, end) : next);
  }

  /** Give all marks, also those an undo brings back, the tags that `now(tag)` returns; without one they go. */
  function rename(now) {
    const renamed = (one) => ({ ...one, marks: one.marks.map((mark) => ({ ...mark, tag: now(mark.tag) })).filter((mark) => mark.tag) });
    [state, past, future] = [renamed(state), past.map(renamed), future.map(renamed)];
    redraw();
  }

  /** Tag several places in one change. */
  function tagAll(places, name) {
    change(places.reduce((next, [start, end]) => marks.tagged(next, start, end, name), state));
  }

  /** Remove these marks in one change, if they are still what they were. */
  function untagAll(spans) {
    const gone = ({ start, end, tag }) => spans.some((span) => span.start === start && span.end === end && span.tag === tag);
    if (state.marks.some(gone)) change({ ...state, marks: state.marks.filter((mark) => !gone(mark)) });
  }

  function clear() {
    const { start, end } = range();
    const gone = marks.marksIn(state, start, end);
    if (!gone.length) return announce("No mark here.");
    change(marks.cleared(state, start, end), `Cleared ${gone.map((mark) => mark.tag).join(", ")}.`);
  }

  function clearAll() {
    if (state.marks.length) change({ ...state, marks: [] }, "All marks cleared.");
  }

  function sure() {
    const { start, end } = range();
    const next = marks.sureOf(state, start, end);
    change(next, next.sure ? `Sure of ${next.sure.map(([a, b]) => text(a, b)).join("; ")} only.` : "Sure of the whole sentence.");
  }

  function stepBack(from, to, message) {
    if (!from.length) return false;
    to.push(state);
    state = from.pop();
    redraw();
    announce(message);
    return true;
  }

  /** Move to the next or the previous mark. */
  function jump(forward) {
    const stops = [...state.marks, ...pointers()].sort((a, b) => a.start - b.start);
    const mark = forward ? stops.find((m) => m.start > cursor) : stops.findLast((m) => m.end <= cursor);
    if (mark) select(mark.end - 1, mark.start);
    else announce(forward ? "No next mark." : "No previous mark.");
    view.reveal(cursor);
  }

  /** Handle a key; return whether it does something here. */
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    const rtl = host.dir === "rtl";
    const moves = {
      ArrowLeft: () => cursor + (rtl ? 1 : -1), ArrowRight: () => cursor + (rtl ? -1 : 1),
      ArrowUp: () => view.vertical(cursor, false), ArrowDown: () => view.vertical(cursor, true),
      Home: () => 0, End: () => sent.tokens.length - 1, PageUp: () => cursor - view.step(), PageDown: () => cursor + view.step(),
    };
    if (moves[event.key] && sent.tokens.length) {
      const to = clamp(moves[event.key]());
      select(event.shiftKey ? anchor : to, to);
      view.reveal(to);
    } else if (event.key === "Escape" && (live || anchor !== cursor)) select(cursor, cursor, false);
    else return false;
    return true;
  }

  // Mouse: drag over tokens, or click a mark to select it. Finger: tap the first and the last token, so that the page still scrolls.
  let drag = null;
  const under = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest?.("[data-at], [data-mark]");
  const scrolling = (event) => event.target === host && event.offsetX > host.clientWidth; // the bar, not the text
  const place = (node) => (node && host.contains(node) ? Number(node.dataset.at ?? node.dataset.mark) : null);

  host.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const at = place(event.target.closest("[data-at], [data-mark]"));
    drag = { at, type: event.pointerType, moved: false, x: event.clientX, y: event.clientY };
    if (event.pointerType === "touch" || scrolling(event)) return;
    host.setPointerCapture(event.pointerId);
    if (at !== null) select(event.shiftKey ? anchor : at, at);
  });
  host.addEventListener("mousedown", (event) => {
    event.preventDefault(); // or the browser selects the text itself
    host.focus({ preventScroll: true });
  });
  host.addEventListener("pointermove", (event) => {
    if (!drag || drag.type === "touch") return;
    const at = place(under(event));
    if (at === null || (drag.at !== null && at === cursor)) return;
    if (drag.at === null) { // the drag began between words or outside the text: start at the next word it reaches
      const next = view.behind(drag.x, drag.y);
      drag.at = anchor = clamp(at < next ? next - 1 : next);
    }
    drag.moved = true;
    select(anchor, at);
  });
  host.addEventListener("pointercancel", () => (drag = null));
  host.addEventListener("pointerup", (event) => {
    const done = drag;
    drag = null;
    if (!done) return;
    const mark = done.at === null ? null : marks.markAt(state, done.at);
    const taken = under(event)?.closest("[data-mark]") && document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-remove]");
    if (taken && mark) return change(marks.cleared(state, mark.start, mark.end), `Cleared ${mark.tag}.`);
    if (done.type === "touch") tapped(done, event, mark);
    else if (done.at !== null && !event.shiftKey && !done.moved && mark && !brush()) select(mark.start, mark.end - 1);
    if (done.at !== null && brush() && live) tag(brush());
  });

  function tapped(done, event, mark) {
    if (Math.hypot(event.clientX - done.x, event.clientY - done.y) > 12) return;
    if (done.at === null) return select(cursor, cursor, false);
    if (mark) return select(mark.start, mark.end - 1);
    if (live && !brush() && !marks.markAt(state, anchor)) return select(anchor, done.at); // the second tap: up to here
    select(done.at, done.at);
  }

  return {
    open, key, tag, tagAll, untag, untagAll, rename, clear, clearAll, sure, jump, suggest,
    undo: () => stepBack(past, future, "Change undone."),
    redo: () => stepBack(future, past, "Change redone."),
    point: (start, end) => select(start, end - 1),
    focus: () => host.focus({ preventScroll: true }),
    answer: () => marks.answer(state),
    state: () => state,
    touched: () => past.length > 0,
    live: () => live,
    unseen: () => (state.sure ? 0 : view.unseen().count),
    showRest: () => select(view.unseen().at ?? cursor, view.unseen().at ?? cursor, false),
    empty: () => sent.tokens.length === 0,
    selectionText: () => text(range().start, range().end),
    sureText: () => state.sure?.map(([a, b]) => text(a, b)) ?? null,
    summary: () => `${many(sent.tokens.length, "token")}, ${many(state.marks.length, "mark")}`,
  };
}
