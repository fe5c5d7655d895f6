// What was generated from the labels: each sentence with its parents, for SeqMix the weight and the mixed labels, and a veto.

import { get, post } from "./api.js";
import { $, announce, fill, h, many, percent } from "./dom.js";
import { directionOf, readable, written } from "./glyphs.js";
import { shell, stop } from "./shell.js";

const PAGE = 20;
const METHODS = {
  mention: { text: "Each sentence is one of yours, in which mentions are replaced by other mentions of the same type.", other: "Use SeqMix instead" },
  sub: { text: "SeqMix takes two labeled sentences, mixes a stretch of one with a stretch of the other, and trains on the result. The labels are mixed with the same weight λ.", other: "Replace mentions instead" },
};
const SHOWN = 400; // tokens of one sentence that are drawn
const project = await shell("generated.html");

async function start() {
  let shown = 0;

  async function more() {
    $("more").disabled = true;
    $("trouble").hidden = true;
    try {
      const { generated, total, variant } = await get(`api/generated?offset=${shown}&limit=${PAGE}`);
      drawMethod(variant);
      $("cards").append(...generated.map(card));
      shown += generated.length;
      $("more").hidden = shown >= total || !generated.length;
      $("summary").textContent = total ? `${many(total, "sentence")}, newest first.` : "Nothing has been generated yet: the first training will do it.";
    } catch (error) {
      if (!error.kind) throw error;
      if (error.kind === "login") return stop(error);
      $("trouble").hidden = false;
      $("trouble").textContent = error.message;
      $("more").hidden = false;
    }
    $("more").disabled = false;
  }

  if (!project.annotator.admin) for (const node of document.querySelectorAll("[data-admin]")) node.remove();
  $("more").addEventListener("click", more);
  await more();
}

/** How sentences are generated, and for admins the button that changes it. */
function drawMethod(variant) {
  const method = METHODS[variant];
  $("method").textContent = method?.text ?? (variant === "none" ? "This project generates no sentences." : `These sentences are generated with ${variant}.`);
  const button = $("switch");
  if (!button) return;
  button.hidden = !method;
  button.textContent = method?.other ?? "";
  button.onclick = async () => {
    button.disabled = true;
    try {
      drawMethod((await post("api/augmentation", { seqmix: variant === "mention" })).variant);
      $("switched").textContent = "This takes effect with the next model.";
    } catch (error) {
      if (error.kind === "login") return stop(error);
      $("switched").textContent = error.message;
    }
    button.disabled = false;
  };
}

function card(item) {
  const window = windowOf(item);
  const node = h("article", { class: `card${item.vetoed ? " vetoed" : ""}`, "data-id": item.id });
  const state = h("span", { class: "quiet-text" });
  const button = h("button", { type: "button", class: "veto", onclick: () => veto(item, node, button, state) });
  drawVeto(item, node, button, state);
  node.append(
    h("header", {}, facts(item), h("span", {}, state, " ", button)),
    h("p", { class: "made", dir: directionOf(item.tokens, project.direction) }, text(item.tokens, window)),
    mixed(item, window),
    h("div", { class: "parents" }, item.parents.map((parent, at) => parentLine(item, parent, at))),
  );
  return node;
}

function facts({ weight, score, parents }) {
  const values = [
    weight !== null && weight !== undefined && ["λ", weight.toFixed(2)],
    score !== null && score !== undefined && ["perplexity", score < 1e6 ? String(Math.round(score)) : "out of range"],
    parents.length === 1 && ["made from", "one sentence"],
  ];
  return h("p", { class: "facts" }, values.filter(Boolean).map(([name, value]) => h("span", {}, `${name} `, h("b", {}, value))));
}

/** Where the new words are: as sent, or the window of the parent that the sentence was written into. */
function windowOf({ window, tokens, parents, tags }) {
  if (window) return window;
  const into = parents.find(({ tokens: old, window: place }) => place && old.length === tokens.length && old.every((token, at) => (at >= place[0] && at < place[1]) || token === tokens[at]));
  if (into) return into.window;
  const soft = tags.flatMap((row, at) => (row && Object.keys(row).length > 1 ? [at] : []));
  return soft.length ? [soft[0], soft.at(-1) + 1] : [0, 0];
}

/** The tokens as text, those of the window marked. */
function text(tokens, [start, end]) {
  const from = Math.max(0, Math.min(start - 100, tokens.length - SHOWN)); // for a very long sentence, the part around the window
  const to = Math.min(tokens.length, from + SHOWN);
  const inner = [];
  const nodes = from > 0 ? ["… "] : [];
  for (let at = from; at < to; at++) {
    const inside = at >= start && at < end;
    (inside ? inner : nodes).push(...written(tokens[at]));
    if (at + 1 < to) (inside && at + 1 < end ? inner : nodes).push(" ");
    if (inside && at + 1 === Math.min(end, to)) nodes.splice(nodes.length - (at + 1 < to ? 1 : 0), 0, h("mark", { class: "window" }, inner));
  }
  return [...nodes, to < tokens.length && " …"];
}

const LONGEST = 60; // columns of labels that are drawn

/** The mixed labels word by word: one bar per token, with its shares written below. */
function mixed({ tokens, tags }, [start, end]) {
  const columns = tokens.slice(start, end).slice(0, LONGEST).map((token, at) => {
    const row = Object.entries(tags[start + at] ?? {}).sort((a, b) => b[1] - a[1]);
    return h("li", {},
      h("span", { class: "word", dir: "auto" }, written(token)),
      h("span", { class: "stack", "aria-hidden": "true" }, row.map(([tag, share]) => h("i", { class: tag === "O" ? "outside" : `c${colorOf(tag)}${tag.startsWith("I-") ? " inside" : ""}`, "--share": percent(share) }))),
      h("span", { class: "shares" }, row.map(([tag, share]) => h("span", {}, row.length > 1 ? `${tag} ${percent(share)}` : tag))));
  });
  return h("ul", { class: "mix", "aria-label": "Mixed labels" }, columns);
}

const colorOf = (tag) => project.tags.find(({ name }) => tag === name || tag.slice(2) === name)?.color ?? 0;

function parentLine({ weight }, parent, at) {
  const share = weight === null || weight === undefined ? "" : percent(at === 0 ? weight : 1 - weight);
  return h("p", {}, h("span", { class: "share", title: "Share in the mix" }, share || `${at + 1}.`), h("span", { dir: directionOf(parent.tokens, project.direction) }, text(parent.tokens, parent.window ?? [0, 0])));
}

async function veto(item, node, button, state) {
  button.disabled = true;
  try {
    const answer = await post(`api/generated/${encodeURIComponent(item.id)}/veto`, { veto: !item.vetoed });
    item.vetoed = answer.vetoed ?? !item.vetoed;
    drawVeto(item, node, button, state);
    announce(item.vetoed ? "Vetoed." : "Allowed again.");
  } catch (error) {
    if (error.kind === "login") return stop(error);
    fill(state, error.message);
    announce(error.message);
  }
  button.disabled = false;
  button.focus();
}

function drawVeto(item, node, button, state) {
  node.classList.toggle("vetoed", item.vetoed);
  button.setAttribute("aria-pressed", String(item.vetoed));
  button.setAttribute("aria-label", `Veto: ${item.tokens.slice(0, 12).map(readable).join(" ")}`);
  button.textContent = item.vetoed ? "Vetoed" : "Veto";
  fill(state, item.vetoed ? "Left out of training." : "");
}

if (project) await start();
