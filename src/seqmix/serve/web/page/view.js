// One sentence drawn as a listbox of tokens: a token is an option, a mark is a frame around its tokens that ends with the tag's name.
// Only a window of the tokens is in the page, so a sentence of a hundred thousand tokens opens as fast as one of ten.

import { fill, h, number, percent } from "./dom.js";
import { isCut, readable, written } from "./glyphs.js";
import { isSure, markAt } from "./marks.js";

export const WINDOW = 400; // tokens drawn at a time
const ALL = 5000; // up to here "show all" is offered
const GLUED = 24; // longest token, in letters, that stays on one line with its tag

/** Draw tokens of `sent` into `host`; `colors` maps a tag to its color number. `state` and `selection` come with each call. */
export function sentenceView(host, pager, colors, move) {
  let sent = null, first = 0, size = WINDOW, options = [], painted = [], shown = [], hints = [];

  function open(sentence, direction) {
    [sent, first, size, options, painted, shown] = [sentence, 0, WINDOW, [], [], []];
    host.dir = direction;
    host.dataset.id = sentence.id;
    host.classList.toggle("long", sentence.tokens.length > 60);
  }

  const last = () => Math.min(first + size, sent.tokens.length);

  /** Draw everything: the marks or the window have changed. */
  function draw(state, selection, pointers = []) {
    hints = pointers;
    if (selection.cursor < first || selection.cursor >= last()) first = Math.floor(selection.cursor / size) * size;
    const nodes = [];
    options = [];
    for (let at = first; at < last(); ) {
      const mark = markAt(state, at);
      const end = mark ? Math.min(mark.end, last()) : at + 1;
      const inside = [];
      for (let i = at; i < end; i++) {
        if (i > at && spaceAfter(i - 1)) inside.push(" ");
        inside.push(token(i, mark, state));
      }
      nodes.push(mark ? frame(mark, inside, isSure(state, mark.start)) : inside[0]);
      if (spaceAfter(end - 1)) nodes.push(" ");
      at = end;
    }
    fill(host, nodes);
    if (!shown.some(([a, b]) => a <= first && last() <= b)) shown.push([first, last()]);
    painted = [];
    paint(selection);
    drawPager();
  }

  const spaceAfter = (at) => (sent.spaces ? (sent.spaces[at] ?? true) : true);

  function token(at, mark, state) {
    const text = sent.tokens[at];
    const sure = isSure(state, at);
    const hint = hints.find(({ start, end }) => start <= at && at < end);
    const node = h("span", {
      id: `${host.id}-${at}`, class: `token${sure ? "" : " unsure"}${state.sure && sure ? " sure" : ""}${hint ? " hint" : ""}`, role: "option", "data-at": at,
      "aria-selected": "false", "aria-label": spoken(text, mark, at) + (hint ? `, perhaps a name, says ${hint.by}` : "") + (sure ? "" : ", not sure"),
      "aria-setsize": sent.tokens.length, "aria-posinset": at + 1, title: isCut(text) ? `${number(text.length)} characters` : hint ? `${hint.by} points here; n jumps to it, and a tag marks all of it` : null,
    }, written(text));
    options.push(node);
    return node;
  }

  /** Update only the cursor and the selection. */
  function paint({ cursor, start, end, live }) {
    for (const node of painted) {
      node.classList.remove("selected", "cursor");
      node.setAttribute("aria-selected", "false");
    }
    painted = options.slice(Math.max(0, start - first), Math.max(0, end - first));
    for (const node of painted) {
      node.classList.toggle("selected", live);
      node.setAttribute("aria-selected", String(live));
    }
    const at = options[cursor - first];
    if (!at) return;
    at.classList.add("cursor");
    painted.push(at);
    host.setAttribute("aria-activedescendant", at.id);
  }

  function drawPager() {
    const n = sent.tokens.length;
    const cut = sent.tokens.findIndex((token, at) => at >= first && at < last() && isCut(token));
    pager.hidden = n <= size && cut < 0;
    if (pager.hidden) return;
    fill(
      pager,
      n > size && [
        h("button", { type: "button", class: "quiet", disabled: first === 0, onclick: () => move(first - size) }, "← Earlier"),
        h("span", {}, `Tokens ${number(first + 1)}–${number(last())} of ${number(n)}`),
        h("button", { type: "button", class: "quiet", disabled: last() >= n, onclick: () => move(first + size) }, "Later →"),
        n <= ALL && h("button", { type: "button", class: "quiet", onclick: () => { size = n; move(0); } }, "Show all"),
      ],
      cut >= 0 && h("details", { ontoggle: (event) => showWhole(event.target, sent.tokens[cut]) },
        h("summary", {}, `Token ${number(cut + 1)} has ${number(sent.tokens[cut].length)} characters: show all of it`)),
    );
  }

  /** The token `lines` lines further up or down, nearest to the cursor. */
  function vertical(cursor, down) {
    const here = options[cursor - first]?.getBoundingClientRect();
    if (!here) return cursor;
    let best = cursor, row = null, nearest = Infinity;
    for (let i = cursor - first + (down ? 1 : -1); i >= 0 && i < options.length; i += down ? 1 : -1) {
      const box = options[i].getBoundingClientRect();
      if (down ? box.top < here.bottom - 2 : box.bottom > here.top + 2) continue;
      row ??= box.top;
      if (Math.abs(box.top - row) > 4) break;
      const away = Math.abs(box.left + box.right - here.left - here.right);
      if (away < nearest) [best, nearest] = [first + i, away];
    }
    return best;
  }

  /** The tokens that have not been on the page yet: how many, and the first one. */
  function unseen() {
    let count = 0, at = null, upTo = 0;
    for (const [start, end] of [...shown.sort(([a], [b]) => a - b), [sent.tokens.length, Infinity]]) {
      if (start > upTo) [count, at] = [count + start - upTo, at ?? upTo];
      upTo = Math.max(upTo, end);
    }
    return { count, at };
  }

  /** The first token behind a point of the page, in the order of the text. */
  function behind(x, y) {
    const line = parseFloat(getComputedStyle(host).lineHeight) / 2;
    const before = options.filter((node) => {
      const box = node.getBoundingClientRect();
      const down = y - (box.top + box.bottom) / 2;
      if (Math.abs(down) > line) return down > 0;
      return host.dir === "rtl" ? x < (box.left + box.right) / 2 : x > (box.left + box.right) / 2;
    });
    return first + before.length;
  }

  const reveal = (cursor) => options[cursor - first]?.scrollIntoView({ block: "nearest" });
  const frame = (mark, inside, sure) => markFrame(mark, inside, colors, sure);
  return { open, draw, paint, vertical, reveal, unseen, behind, step: () => size };
}

/** The frame of a mark, its tag and how confident the model is of it; dashed until a person confirms it. */
export function markFrame(mark, inside, colors, sure = true) {
  const suggested = mark.confidence !== null && mark.confidence !== undefined;
  const chip = h("span", { class: "chip", "aria-hidden": "true", "data-mark": mark.start },
    h("span", { class: "name" }, mark.tag),
    suggested && origin(mark),
    h("span", { class: "remove", "data-remove": mark.start, title: "Remove" }, "×"));
  const last = inside.at(-1);
  const length = (last.textContent ?? last).length;
  const glued = length > GLUED ? [last, chip] : h("span", { class: "glued", role: "presentation" }, last, chip); // no tag alone on the next line
  return h("span", { class: `mark c${colors(mark.tag)}${suggested ? " suggested" : ""}${sure ? "" : " unsure"}`, role: "presentation" }, inside.slice(0, -1), glued);
}

/** What suggested a mark: the names of the sources, and how confident the model is. */
function origin({ by = ["model"], confidence }) {
  const sources = by.filter((name) => name !== "model");
  const model = sources.length < by.length;
  return [
    sources.length > 0 && h("span", { class: "source" }, sources.join(" · ")),
    model && h("span", { class: "confidence" }, percent(confidence), h("span", { class: "bar", "--share": percent(confidence) })),
  ];
}

function spoken(text, mark, at) {
  const word = readable(text);
  if (!mark) return word;
  const part = mark.end - mark.start === 1 ? "" : at === mark.start ? " begins" : at === mark.end - 1 ? " ends" : " continues";
  const { by = ["model"] } = mark;
  const sources = by.filter((name) => name !== "model").join(" and ");
  const confidence = by.includes("model") ? `, ${Math.round(100 * mark.confidence)} percent` : "";
  const suggested = mark.confidence !== null ? `, suggested${sources && ` by ${sources}`}${confidence}` : "";
  return `${word}, ${mark.tag}${part}${suggested}`;
}

function showWhole(details, text) {
  if (!details.open || details.querySelector("textarea")) return;
  details.append(h("textarea", { readonly: true, rows: 8, "aria-label": "The whole token" }));
  details.querySelector("textarea").value = text;
}
