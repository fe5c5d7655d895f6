// Which key does what, in one table: the page listens to it and the help shows it.

import { h } from "./dom.js";

const RESERVED = new Set("xzspn");
const DIGITS = [..."123456789"];
const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"].filter((letter) => !RESERVED.has(letter));

/** The tags with a key each: the server's where it is free, else the next one; beyond that a tag has none and is clicked or found with `/`. */
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
    [["←", "→"], "to the token before, or the next"], [["↑", "↓"], "by a line"], [["Home", "End"], "to the first or the last token"],
    [["Shift+→"], "select several tokens, with any of these"], [["n", "Shift+N"], "to the next mark, or the one before"],
  ]],
  ["Mark", [
    [["1", "…", "9", "a", "…"], "tag the selection; on a mark, give it another tag"], [["/"], "find a tag by its name"], [["x"], "clear the mark under the cursor"],
    [["Shift+X"], "clear all marks"], [["p"], "only sure of this part: the rest is left open"], [["Esc"], "drop the selection, or the tag in hand"],
  ]],
  ["Answer", [
    [["Enter"], "accept what is shown and go on"], [["s"], "skip this sentence"], [["z"], "take back the last change; with none left, the last answer"],
    [["Shift+Z"], "make the change again"], [["Backspace"], "back to the answer before, to correct it"], [["?"], "this help"],
  ]],
];

/** The table of keys, as nodes. */
export function helpKeys() {
  const keys = (names) => names.map((name) => (name === "…" ? " … " : h("kbd", {}, name)));
  const list = (rows) => h("dl", {}, rows.map(([names, what]) => [h("dt", {}, keys(names)), h("dd", {}, what)]));
  return HELP.map(([title, rows]) => h("section", {}, h("h3", {}, title), list(rows)));
}
