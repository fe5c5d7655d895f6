// Which key does what, in one table: the page listens to it and the help shows it.

import { h } from "./dom.js";

const RESERVED = new Set("xzspnm");
const DIGITS = [..."123456789"];
const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"].filter((letter) => !RESERVED.has(letter));

/** The tags, each with a key: the server's where it is free, else the next free one; beyond those, a tag has no key and is clicked or found with `/`. */
export function withKeys(tags) {
  const taken = new Set();
  const wished = tags.map(({ key }) => {
    const wish = key === null || key === undefined ? null : String(key).toLowerCase();
    if (wish === null || taken.has(wish) || !(DIGITS.includes(wish) || LETTERS.includes(wish))) return null;
    taken.add(wish);
    return wish;
  });
  const free = [...DIGITS, ...LETTERS].filter((key) => !taken.has(key));
  return tags.map((tag, at) => ({ name: tag.name, color: Number(tag.color ?? tag.color_index ?? at) % 12, key: wished[at] ?? free.shift() ?? null }));
}

const HELP = [
  ["Move", [
    [["←", "→"], "to the previous or the next token"], [["↑", "↓"], "one line up or down"], [["Home", "End"], "to the first or the last token"],
    [["Shift+→"], "select several tokens; with any of these keys"], [["n", "Shift+N"], "to the next or the previous mark, or to a name that a source points at"],
    [[","], "hide or show all suggestions that nobody has confirmed"], [["."], "show or hide the text around the sentence in its document"],
  ]],
  ["Mark", [
    [["1", "…", "9", "a", "…"], "tag the selection, or change the tag of a mark"], [["/"], "find a tag by its name"], [["x"], "clear the mark under the cursor"],
    [["m"], "mark the same text everywhere: here, in your answers, in open sentences"], [["Shift+X"], "clear all marks"], [["p"], "sure of this part only: the rest stays unlabeled"], [["Esc"], "cancel the selection or the chosen tag"],
  ]],
  ["Answer", [
    [["Enter"], "accept what is shown, save, continue"], [["s"], "skip this sentence: it comes back"], [["Delete"], "discard it: bad text that nobody should see again"], [["z"], "undo the last change; if there is none, the last answer"],
    [["Shift+F"], "flag the sentence, or remove the flag"], [["Shift+C"], "comment on it"], [["Shift+Z"], "redo the change"], [["Backspace"], "go back to the previous answer to correct it"], [["?"], "this help"],
  ]],
];

/** The table of keys, as nodes. */
export function helpKeys() {
  const keys = (names) => names.map((name) => (name === "…" ? " … " : h("kbd", {}, name)));
  const list = (rows) => h("dl", {}, rows.map(([names, what]) => [h("dt", {}, keys(names)), h("dd", {}, what)]));
  return HELP.map(([title, rows]) => h("section", {}, h("h3", {}, title), list(rows)));
}
