// For admins: the tags, and changes of them. What a change touches is counted and shown before it can be made.

import { get, post } from "./api.js";
import { $, announce, fill, h, many, sentence } from "./dom.js";
import { withKeys } from "./keys.js";
import { shell, stop } from "./shell.js";

const COLORS = 12;
const ACTIONS = { rename: "Rename", merge: "Merge", split: "Split", recolor: "Color", retire: "Retire" };
const DONE = {
  add: ({ tag }) => `added ${tag}`, rename: ({ tag, into }) => `renamed ${tag} to ${into[0]}`, merge: ({ tag, into }) => `merged ${tag} into ${into[0]}`,
  split: ({ tag, into }) => `split ${tag} into ${into.join(", ")}`, recolor: ({ tag }) => `gave ${tag} another color`, retire: ({ tag }) => `retired ${tag}`,
  undo: ({ tag }) => `took back the last change of ${tag}`,
};
const project = await shell("tags.html");

async function start() {
  let tags = project.tags, counts = {}, open = 0, changes = [], newest = project.tag_change;
  let wish = null, asked = 0, typing = null; // the change that the dialog is about

  async function load() {
    const [now, rest] = await Promise.all([get("api/tags"), get("api/tags/changes")]);
    [tags, newest, counts, open, changes] = [withKeys(now.tags), now.newest, rest.spans, rest.open, rest.changes];
    draw();
  }

  function draw() {
    fill($("list"), tags.map((tag) => h("li", { class: `c${tag.color}`, "data-tag": tag.name },
      h("span", { class: "label" }, h("span", { class: "swatch large-swatch", "aria-hidden": "true" }), h("span", { class: "name" }, tag.name), tag.key && h("kbd", {}, tag.key)),
      h("span", { class: "count" }, many(counts[tag.name] ?? 0, "span")),
      h("span", { class: "do" }, Object.entries(ACTIONS).map(([kind, name]) => h("button",
        { type: "button", "aria-label": `${name} ${tag.name}`, disabled: (kind === "merge" || kind === "retire") && tags.length < 2, onclick: () => ask(kind, tag) }, name))))));
    $("waiting").hidden = !open;
    fill($("waiting"), `${many(open, "answer")} with spans of a tag that was split ${open === 1 ? "waits" : "wait"} for somebody to choose. `, h("a", { href: "review.html" }, "Review them"));
    fill($("changes"), changes.map((change) => h("li", { class: change.undone ? "undone" : null }, h("strong", {}, change.by ?? "A command"), ` ${DONE[change.kind](change)}, `, when(change.at))));
    if (!changes.length) fill($("changes"), h("p", { class: "quiet-text" }, "The tags have not changed since the project began."));
    $("undo").hidden = !changes.some(({ kind, undone }) => kind !== "undo" && !undone);
  }

  // The dialog: fields, a preview of what they would do, and a button that is dead until the server has counted.

  function ask(kind, tag = null) {
    wish = { kind, tag: tag?.name ?? "" };
    const names = { add: "Add a tag", undo: "Take back the last change" };
    $("ask-title").textContent = names[kind] ?? `${ACTIONS[kind]} ${tag.name}`;
    $("sure").textContent = { add: "Add", undo: "Take back", recolor: "Change color" }[kind] ?? ACTIONS[kind];
    fill($("fields"), fields(kind, tag));
    $("touched").textContent = "";
    $("ask").showModal();
    $("fields").querySelector("input, select")?.focus();
    look(0);
  }

  function fields(kind, tag) {
    const text = (label, more = {}) => h("label", {}, label, h("input", { name: "name", maxlength: 64, autocomplete: "off", spellcheck: "false", ...more }));
    const radio = (name, value, label, checked) => h("label", { class: "option" }, h("input", { type: "radio", name, value, checked }), label);
    if (kind === "add") return [text("Name"), h("fieldset", {}, h("legend", {}, "What do the answers so far mean for it?"),
      radio("earlier", "none", "There is none in them: whoever answered would have noticed.", true), radio("earlier", "unknown", "Nobody looked for it: unmarked text in them no longer teaches that there is nothing.", false))];
    if (kind === "rename") return text("New name", { value: tag.name });
    if (kind === "split") return text(`Names, separated by spaces; ${tag.name} may be one of them`, { maxlength: 1000, value: `${tag.name} ` });
    if (kind === "merge") return h("label", {}, "Into", h("select", { name: "name" }, tags.filter(({ name }) => name !== tag.name).map(({ name }) => h("option", { value: name }, name))));
    if (kind === "recolor") return h("fieldset", {}, h("legend", {}, "Color"), h("div", { class: "colors" }, Array.from({ length: COLORS }, (_, color) => h("label", { class: `option c${color}` },
      h("span", { class: "swatch", "aria-hidden": "true" }), h("span", {}, h("input", { type: "radio", name: "color", value: color, checked: color === tag.color }), ` ${color + 1}`)))));
    if (kind === "retire") return h("p", {}, "From now on its spans count as unmarked. The history keeps them: taking the change back restores them.");
    return h("p", {}, "The tags will be what they were before it; later answers stay where they still have a meaning.");
  }

  /** The change as the server wants it. */
  function wanted() {
    const values = new FormData($("form"));
    const names = (values.get("name") ?? "").split(/\s+/).filter(Boolean);
    if (wish.kind === "add") return { kind: "add", tag: names.join(" "), earlier: values.get("earlier") };
    if (wish.kind === "recolor") return { ...wish, color: Number(values.get("color")) };
    return { ...wish, into: ["rename", "merge", "split"].includes(wish.kind) ? names : [] };
  }

  function look(wait = 250) {
    const turn = ++asked;
    clearTimeout(typing);
    $("sure").disabled = true;
    typing = setTimeout(async () => {
      try {
        const there = await post("api/tags/preview", wanted());
        if (turn !== asked) return;
        newest = there.newest;
        $("touched").textContent = touches(there);
        $("sure").disabled = false;
      } catch (error) {
        if (turn !== asked) return;
        if (!error.kind) throw error;
        if (error.kind === "login") return stop(error);
        $("touched").textContent = error.message;
      }
    }, wait);
  }

  function touches(there) {
    if (wish.kind === "recolor") return "This affects no answers.";
    if (wish.kind === "add") return `${sentence(there.words).slice(0, -1)} ${there.answers === 1 && !there.seed ? "was" : "were"} given without it.`;
    const after = { split: " Each of these spans waits until somebody chooses; until then no model learns it and no export contains it.", retire: "", undo: "" }[wish.kind] ?? "";
    return `This affects ${there.words}.${after}`;
  }

  async function change() {
    const { kind } = wish;
    $("sure").disabled = true;
    try {
      await post("api/tags", { ...wanted(), newest });
      $("ask").close();
      await load();
      say(kind === "undo" ? "Taken back." : `Done: ${DONE[kind](changes[0])}.`);
    } catch (error) {
      if (!error.kind) throw error;
      if (error.kind === "login") return stop(error);
      $("touched").textContent = error.message;
      if (error.kind === "stale") {
        await load().catch(() => null);
        look(0);
      } else $("sure").disabled = false;
    }
  }

  function say(text) {
    $("status").textContent = text;
    announce(text);
  }

  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!$("sure").disabled) change();
  });
  $("form").addEventListener("input", () => look());
  $("cancel").addEventListener("click", () => $("ask").close());
  $("add").addEventListener("click", () => ask("add"));
  $("add").disabled = false;
  $("undo").addEventListener("click", () => ask("undo"));
  try {
    await load();
  } catch (error) {
    stop(error);
  }
}

function when(at) {
  const date = new Date(at * 1000);
  return h("time", { datetime: date.toISOString() }, date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" }));
}

if (project) await start();
