// Keys and buttons of the annotation page, which share a few actions.

import { $, fill } from "./dom.js";
import { helpKeys } from "./keys.js";

const BUTTONS = { save: "Enter", skip: "s", discard: "Delete", undo: "z", clear: "x", sure: "p", leave: "leave", context: ".", flag: "F", comment: "C", suggestions: ",", retry: "Enter" };

/** Bind `actions` to keys and buttons; `editor` moves, `use` tags, and nothing happens while `waiting` for the server. */
export function bind(actions, { editor, tagbar, use, editing, waiting }) {
  const help = () => $("help").showModal();
  const all = { ...actions, "?": help, "/": () => tagbar.find() };

  document.addEventListener("keydown", (event) => {
    if (elsewhere(event) || event.isComposing) return;
    if (undoKeys(event)) return event.preventDefault();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && tagbar.brush()) return tagbar.take(tagbar.brush());
    const key = typed(event);
    const tag = tagbar.byKey(key.toLowerCase());
    const act = all[key];
    if (editing() && editor.key(event)) return event.preventDefault();
    if (!act && !tag) return;
    event.preventDefault();
    if (waiting() || event.repeat) return; // a key held down answers one sentence, not ten
    if (act) act();
    else use(tag, "key");
  });

  function undoKeys(event) {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "z" || !editing()) return false;
    return event.shiftKey ? editor.redo() : editor.undo();
  }

  for (const [id, name] of Object.entries(BUTTONS)) {
    $(id).addEventListener("click", () => {
      if (!waiting()) all[name]();
      if (name !== "C") editor.focus(); // a comment is typed elsewhere
    });
  }
  $("open-help").addEventListener("click", help);
  fill($("help-keys"), helpKeys());
}

/** The key as on a Latin keyboard: Hebrew and Cyrillic letters count as the key they are on, and so do digits that need Shift (France). */
export function typed({ key, code, shiftKey }) {
  const place = key.length === 1 ? code.match(/^(?:Key|Digit)([A-Z1-9])$/)?.[1] : null;
  if (!place) return key;
  if (code.startsWith("Digit")) return shiftKey ? key : place;
  return /[^\x20-\x7e]/.test(key) ? (shiftKey ? place : place.toLowerCase()) : key;
}

/** Someone is typing, reading the help, or pressing a button. */
function elsewhere(event) {
  const at = document.activeElement;
  if (document.querySelector("dialog[open]") || at?.matches("input, textarea, select, summary")) return true;
  return Boolean(at?.matches("button, a")) && (event.key === "Enter" || event.key === " ");
}
