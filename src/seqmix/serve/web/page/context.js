// What stands before and after the sentence in its document: shown when asked for, and then for every sentence until it is turned off.

import { get } from "./api.js";
import { $, fill, h } from "./dom.js";
import { directionOf } from "./glyphs.js";
import { marked } from "./text.js";

/** `of(id)` says which sentence is on the page (null: none), `toggle()` shows or hides its neighbors; `say` reports a failure. */
export function createContext(direction, say) {
  let on = false, shown = null;

  const text = (side) => side.map((sent) => h("p", { dir: directionOf(sent.tokens, direction) }, marked(sent, [], [])));

  function hide() {
    $("before").hidden = $("after").hidden = true;
  }

  async function draw(id) {
    let around;
    try {
      around = await get(`api/neighbors/${encodeURIComponent(id)}`);
    } catch (error) {
      if (!error.kind) throw error;
      return say(error.message);
    }
    if (!on || id !== shown) return; // another sentence came meanwhile
    const none = h("p", {}, around.document === null ? "This sentence belongs to no document." : `${around.document} has no other text near it.`);
    fill($("before"), around.before.length || around.after.length ? text(around.before) : none);
    fill($("after"), text(around.after));
    $("before").hidden = !$("before").childElementCount;
    $("after").hidden = !$("after").childElementCount;
    $("before").scrollTop = $("before").scrollHeight; // the nearest sentence is the last one
  }

  function of(id) {
    shown = id;
    hide();
    if (on && id !== null) draw(id);
    
  }

  function toggle() {
    on = !on;
    $("context").setAttribute("aria-pressed", String(on));
    of(shown);
  }

  return { of, toggle };
}
