// Tags that somebody changes while a page is open: the page takes them up, and so do the marks that are not saved yet.

import { get } from "./api.js";
import { withKeys } from "./keys.js";
import { visited } from "./memory.js";
import { stop } from "./shell.js";

const EVERY = 4000; // milliseconds between two looks at the tags

/** Bring a project's tags up to date; return what changed in words, and what a tag is `now(tag)`, or null if nothing did. */
export async function takeUp(project) {
  const { tags, newest, meanings } = await get(`api/tags?since=${project.tag_change}`);
  if (newest === project.tag_change) return null;
  const known = project.tags.map(({ name }) => name);
  project.tags.splice(0, Infinity, ...withKeys(tags));
  project.tag_change = newest;
  const now = (tag) => (meanings[tag]?.length === 1 ? meanings[tag][0] : tag); // a split tag stays until a person has chosen
  visited.rename(now);
  return { now, text: news(known, project.tags.map(({ name }) => name), meanings) };
}

/** Look now and then whether the tags have changed while a page is open, and `changed()` tells it; not while it is busy. */
export function watchTags(project, changed, busy = () => false) {
  async function look() {
    if (document.hidden || busy()) return;
    try {
      const change = await takeUp(project);
      if (change) await changed(change);
    } catch (error) {
      if (error.kind === "login") stop(error);
      else if (!error.kind) throw error; // anything else may pass
    }
  }
  document.addEventListener("visibilitychange", look);
  setInterval(look, EVERY);
}

/** `follow(newest)` brings the page to the last change of the tags; `current()` is the sentence on it, `redraw()` shows the tags anew. */
export function createTagSync({ project, editor, current, redraw, say }) {
  async function follow(newest) {
    if (newest === undefined || newest === project.tag_change) return;
    const change = await takeUp(project);
    if (!change) return;
    const { now, text } = change;
    for (const spans of [current()?.suggestion?.spans, ...(current()?.offers ?? []).map((offer) => offer.spans)]) {
      for (const span of spans ?? []) span.tag = span.tag && now(span.tag);
    }
    editor.rename(now);
    redraw();
    say(text, true);
  }

  /** Marks that were kept before a change, with the tags of now. */
  async function upToDate(draft) {
    if (!draft || draft.change === undefined || draft.change === project.tag_change) return draft;
    const { meanings } = await get(`api/tags?since=${draft.change}`);
    const now = (tag) => (meanings[tag]?.length === 1 ? meanings[tag][0] : tag);
    return { ...draft, marks: draft.marks.map((mark) => ({ ...mark, tag: now(mark.tag) })).filter((mark) => mark.tag) };
  }

  return { follow, upToDate };
}

/** What changed, in words. */
export function news(before, after, meanings) {
  const parts = [];
  for (const [tag, now] of Object.entries(meanings)) {
    const names = now.filter(Boolean);
    if (now.length === 1 && now[0] === tag) continue;
    if (!names.length) parts.push(`${tag} is no longer used`);
    else if (names.length === 1) parts.push(`${tag} is now ${names[0]}`);
    else parts.push(`${tag} is now one of ${names.join(", ")}: choose for each of its marks`);
  }
  const meant = new Set(Object.values(meanings).flat());
  const fresh = after.filter((tag) => !before.includes(tag) && !meant.has(tag));
  if (fresh.length) parts.push(`new: ${fresh.join(", ")}`);
  return parts.length ? `The tags have changed: ${parts.join("; ")}.` : "The tags look different now.";
}
