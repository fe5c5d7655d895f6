// Comments and flags on a sentence: what is said, a form to say more, and a flag that one click sets or takes away.

import { get, post } from "./api.js";
import { announce, fill, h } from "./dom.js";

const LONGEST = 2000;

/** What is said about `sent` (its `comments`). `node` is for the page, `flag()` and `write()` for its keys; `stop(error)` ends the session, `left()` is called when the form closes. */
export function commentBox(sent, { stop, left = () => {} }) {
  let said = sent.comments ?? [], everything = false;
  const list = h("ul", { class: "comments" });
  const words = h("textarea", { rows: 2, maxlength: LONGEST, "aria-label": "Your comment", onkeydown: typed });
  const form = h("form", { class: "comment-form", hidden: true, onsubmit: send }, words,
    h("span", { class: "actions" }, h("button", { type: "submit", class: "primary" }, "Save comment"), h("button", { type: "button", onclick: close }, "Cancel")));
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const node = h("div", { class: "talk" }, list, form, trouble);
  const flagged = () => said.find(({ mine, text, resolved }) => mine && !text && !resolved);

  function draw() {
    fill(list, said.map((comment) => h("li", { class: comment.resolved ? "resolved" : null },
      h("span", { class: "words", dir: "auto" }, comment.text ? comment.text : "⚑ Flag"), " ",
      h("span", { class: "quiet-text" }, comment.mine ? "you" : comment.by, ", ", new Date(comment.at * 1000).toLocaleDateString()), " ",
      h("button", { type: "button", class: "quiet", "aria-label": `${comment.resolved ? "Open again" : "Resolve"}: ${comment.text || "flag"}`, onclick: () => resolve(comment, !comment.resolved) }, comment.resolved ? "Open again" : "Resolve"))));
    list.hidden = !said.length;
    node.dispatchEvent(new CustomEvent("comments"));
  }

  async function attempt(what, request) {
    trouble.hidden = true;
    try {
      return await request();
    } catch (error) {
      if (!error.kind) throw error;
      if (error.kind === "login") stop(error);
      trouble.hidden = false;
      fill(trouble, h("span", {}, h("strong", {}, `${what} `), error.message));
      return null;
    }
  }

  async function add(text, done) {
    const comment = await attempt("Not saved.", () => post("api/comments", { id: sent.id, text }));
    if (!comment) return false;
    said = [...said.filter(({ id }) => id !== comment.id), comment];
    draw();
    announce(done);
    return true;
  }

  async function resolve(comment, resolved) {
    if (!(await attempt("Not changed.", () => post(`api/comments/${comment.id}/resolved`, { resolved })))) return;
    comment.resolved = resolved;
    if (!everything) said = said.filter((one) => !one.resolved);
    draw();
    announce(resolved ? "Resolved." : "Open again.");
  }

  async function send(event) {
    event.preventDefault();
    if (words.value.trim() && (await add(words.value.trim(), "Comment saved."))) {
      words.value = "";
      close();
    }
  }

  function typed(event) {
    event.stopPropagation(); // the keys of the page mean nothing here
    if (event.key === "Escape") close();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
  }

  function close() {
    form.hidden = true;
    left();
  }

  async function showAll() {
    const all = await attempt("Not loaded.", () => get(`api/comments/${encodeURIComponent(sent.id)}`));
    if (all) [said, everything] = [all, true];
    draw();
  }

  draw();
  return {
    node, showAll,
    flag: () => (flagged() ? resolve(flagged(), true) : add("", "Flagged.")),
    flagged: () => Boolean(flagged()),
    write() {
      form.hidden = false;
      words.focus();
    },
  };
}

/** The comments on the sentence that is on the annotation page; `of(null)` hides them. */
export function createTalk({ host, button, stop, left }) {
  let box = null;
  const flagged = () => button.setAttribute("aria-pressed", String(Boolean(box?.flagged())));

  function of(sent) {
    box = sent && commentBox(sent, { stop, left });
    fill(host, box ? box.node : []);
    box?.node.addEventListener("comments", flagged);
    flagged();
  }

  return { of, flag: () => box?.flag(), write: () => box?.write() };
}
