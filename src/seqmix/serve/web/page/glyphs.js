// How a token is written on the screen: invisible characters become visible, characters that would reorder the text become signs,
// and very long tokens are cut.
// subtle: tokens are not isolated from each other. Two Latin words inside Hebrew must keep their order, and with the overriding
// characters replaced by signs no token can reorder what lies outside it.

import { h, number } from "./dom.js";

const LONGEST = 200; // characters of one token that are drawn
const NAMES = {
  0x00a0: "NBSP", 0x00ad: "SHY", 0x061c: "ALM", 0x180e: "MVS", 0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM",
  0x2028: "LSEP", 0x2029: "PSEP", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ",
  0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
const DRAWN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/u; // always drawn; u: a whole pair is no surrogate
const UNSEEN = /^[\s\u00ad\u061c\u180e\u200b-\u200f\u2060]+$/u; // drawn where nothing else is in the token: joiners are part of some scripts

const OLD = "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US".split(" ");

/** The name of one character; its picture (␀) is in few fonts. */
function sign(code) {
  if (code < 0x20) return OLD[code];
  if (code === 0x7f) return "DEL";
  return NAMES[code] ?? `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Characters in pieces: runs of plain text, and signs. */
function pieces(text) {
  const unseen = UNSEEN.test(text);
  const result = [];
  for (const char of text) {
    const drawn = unseen || DRAWN.test(char);
    if (drawn) result.push({ drawn, text: sign(char.codePointAt(0)) });
    else if (result.length && !result.at(-1).drawn) result.at(-1).text += char;
    else result.push({ drawn, text: char });
  }
  return result;
}

/** The token as a screen reader reads it, and as titles show it. */
export function readable(token) {
  if (token === "") return "(empty)";
  return pieces(token.slice(0, LONGEST)).map((piece) => piece.text).join("") + (token.length > LONGEST ? "…" : "");
}

/** The beginning of a sentence in one line. */
export function snippet({ tokens, spaces }) {
  const words = tokens.slice(0, 20).map((token, at) => readable(token) + ((spaces?.[at] ?? true) ? " " : ""));
  const text = words.join("").trim().slice(0, 110);
  return text + (tokens.length > 20 || words.join("").trim().length > 110 ? " …" : "");
}

export const isCut = (token) => token.length > LONGEST;

/** The nodes that show a token. */
export function written(token) {
  if (token === "") return [h("span", { class: "sign" }, "empty")];
  const nodes = pieces(cutAt(token)).map((piece) => (piece.drawn ? h("span", { class: "sign" }, piece.text) : piece.text));
  if (isCut(token)) nodes.push(h("span", { class: "sign" }, `… ${number(token.length - LONGEST)} more`));
  return nodes;
}

/** Cut a long token, but not between the halves of a surrogate pair, which would show two broken signs. */
function cutAt(token) {
  if (!isCut(token)) return token;
  const last = token.charCodeAt(LONGEST - 1);
  return token.slice(0, last >= 0xd800 && last < 0xdc00 ? LONGEST - 1 : LONGEST);
}

const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const STRONG = /\p{L}/u;

/** rtl or ltr: the project's direction if it has one, else that of the first letter. */
export function directionOf(tokens, direction) {
  if (direction === "rtl" || direction === "ltr") return direction;
  for (const token of tokens.slice(0, 200)) {
    const first = token.slice(0, LONGEST).match(STRONG);
    if (first) return RTL.test(first[0]) ? "rtl" : "ltr";
  }
  return "ltr";
}
