// For admins: how well people agree, where they do not, and who they are.

import { get, post } from "./api.js";
import { drawConfusion, table } from "./by_tag.js";
import { typed } from "./controls.js";
import { $, announce, f1, fill, h, number } from "./dom.js";
import { createEditor } from "./editor.js";
import { directionOf } from "./glyphs.js";
import { shell, stop } from "./shell.js";
import { watchTags } from "./tagsync.js";
import { marked } from "./text.js";

const project = await shell("agreement.html");
let editors = []; // of the conflicts that are shown

async function start() {
  try {
    const [agreement, conflicts, people] = await Promise.all([get("api/agreement"), get("api/conflicts"), get("api/annotators")]);
    drawAgreement(agreement);
    await drawConfusion($("confusion"));
    drawConflicts(conflicts.conflicts ?? conflicts);
    drawPeople(people.annotators ?? people);
    $("invite").addEventListener("submit", invite);
    watchTags(project, retagged);
    $("add").disabled = false; // only now: before the line above, the browser would submit the form itself
  } catch (error) {
    stop(error);
  }
}

function drawAgreement({ pairs, overall }) {
  if (!pairs.length) {
    return fill($("agreement"), h("p", {}, project.overlap_share > 0 ? "No sentence has two answers yet." : "No sentence goes to two people: the project’s overlap share is 0."));
  }
  const cells = ({ n, f1: spans, kappa }) => [number(n), spans, kappa].map((value, at) => h("td", {}, at === 0 ? value : value === null || value === undefined ? "–" : f1(value)));
  const rows = pairs.map((pair) => h("tr", {}, h("th", { scope: "row" }, `${pair.a} and ${pair.b}`), cells(pair)));
  if (overall?.n !== undefined && pairs.length > 1) rows.push(h("tr", {}, h("th", { scope: "row" }, "All pairs"), cells(overall)));
  fill($("agreement"), h("div", { class: "wide" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Pair", "Sentences", "Span F1", "Cohen’s κ"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows))));
}

// Conflicts: the answers as they were saved, and one more that can be edited and saved.

/** The tags have changed: show the conflicts with those of now, unless somebody is deciding about one. */
async function retagged({ text }) {
  if (!editors.some((editor) => editor.touched())) drawConflicts(((conflicts) => conflicts.conflicts ?? conflicts)(await get("api/conflicts")));
  $("conflicts").prepend(h("p", { class: "quiet-text", role: "status" }, text));
}

function drawConflicts(conflicts) {
  const host = $("conflicts");
  editors = [];
  if (!conflicts.length) return fill(host, h("p", {}, "There are no conflicts."));
  fill(host, conflicts.slice(0, 20).map(conflictCard), conflicts.length > 20 && h("p", { class: "quiet-text" }, `${number(conflicts.length - 20)} more after these.`));
}

function conflictCard(conflict, at) {
  const [host, pager] = [h("div", { id: `conflict-${at}`, class: "sentence", role: "listbox", tabindex: "0", "aria-label": "Your decision", "aria-multiselectable": "true" }), h("div", { class: "pager", hidden: true })];
  const [names, known] = [[...project.tags], project.tag_change]; // whoever changes them meanwhile: the server knows what these mean then
  const editor = createEditor({ host, pager, tags: names, direction: project.direction });
  editors.push(editor);
  const status = h("span", { class: "quiet-text", role: "status" });
  const take = (spans) => {
    editor.open(conflict, { marks: spans.map((span) => ({ ...span, confidence: null })), sure: null });
    editor.focus();
  };
  const save = h("button", { type: "button", class: "primary", onclick: () => adjudicate({ ...conflict, known }, editor, card, save, status) }, "Save this");
  const tags = h("div", { class: "tags", role: "group", "aria-label": "Tags" },
    names.slice(0, 40).map((tag) => h("button", { type: "button", class: `tag c${tag.color}`, onclick: () => { editor.tag(tag.name); editor.focus(); } }, tag.name, tag.key && h("kbd", { "aria-hidden": "true" }, tag.key))),
    h("button", { type: "button", onclick: () => { editor.clear(); editor.focus(); } }, "Clear ", h("kbd", { "aria-hidden": "true" }, "x")));
  const card = h("article", { class: "card", "data-id": conflict.id },
    h("div", { class: "versions" }, conflict.answers.map((answer) => version(conflict, answer, () => take(answer.spans)))),
    h("h3", { class: "quiet-text" }, "Your decision"), host, pager, h("div", { class: "dock" }, tags, h("div", { class: "actions" }, save, status)));
  host.addEventListener("keydown", (event) => keyed(event, editor, save, names));
  editor.open(conflict, { marks: conflict.answers[0].spans.map((span) => ({ ...span, confidence: null })).sort((a, b) => a.start - b.start), sure: null });
  return card;
}

function keyed(event, editor, save, names) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const pressed = typed(event);
  const tag = names.find(({ key }) => key === pressed.toLowerCase());
  const actions = { x: editor.clear, X: editor.clearAll, z: editor.undo, Z: editor.redo, Enter: () => save.click() };
  if (!editor.key(event)) {
    if (actions[pressed]) actions[pressed]();
    else if (tag) editor.tag(tag.name);
    else return;
  }
  event.preventDefault();
}

/** One person's answer; marks that are not in every answer are framed and named. */
function version(conflict, { annotator, spans, sure }, take) {
  const key = (span) => `${span.start} ${span.end} ${span.tag}`;
  const shared = (span) => conflict.answers.every(({ spans }) => spans.some((theirs) => key(theirs) === key(span)));
  const frame = (mark, node) => {
    if (shared(mark)) return;
    node.classList.add("differs");
    node.append(h("span", { class: "unseen" }, "(not agreed) "));
  };
  return h("section", { class: "version", "aria-label": `${annotator}’s answer` },
    h("h4", {}, sure?.length ? `${annotator} (sure of one part only)` : annotator, h("button", { type: "button", class: "quiet", onclick: take, "aria-label": `Use ${annotator}’s answer` }, "Use this")),
    h("p", { class: "text", dir: directionOf(conflict.tokens, project.direction) }, marked(conflict, spans, project.tags, frame)));
}

async function adjudicate(conflict, editor, card, save, status) {
  save.disabled = true;
  fill(status, "Saving …");
  try {
    await post("api/adjudications", { id: conflict.id, spans: editor.answer().spans, version: conflict.version ?? 0, tag_change: conflict.known });
    editors = editors.filter((other) => other !== editor);
    announce("Decision saved.");
    card.replaceChildren(h("p", { class: "quiet-text" }, "Decided and saved: ", conflict.tokens.slice(0, 12).join(" ").slice(0, 120)));
  } catch (error) {
    if (error.kind === "login") return stop(error);
    fill(status, `Not saved. ${error.message}`);
    save.disabled = false;
  }
}

// People.

function drawPeople(people) {
  const kinds = { labeled: "Labeled", skipped: "Skipped", discarded: "Discarded", bulk: "Accepted in one go" };
  const shown = Object.keys(kinds).filter((kind) => kind === "labeled" || people.some((person) => person[kind]));
  const rows = people.map((person) => [
    `${person.name}${person.admin ? " (admin)" : person.model ? " (language model)" : ""}`,
    ...shown.map((kind) => number(person[kind])), person.each === null ? "–" : `${person.each.toFixed(1)} s`,
  ]);
  fill($("people"), table(["Name", ...shown.map((kind) => kinds[kind]), "An answer takes"], rows));
}

async function invite(event) {
  event.preventDefault();
  try {
    const { name, link } = await post("api/annotators", { name: $("name").value.trim() });
    $("name").value = "";
    fill($("invited"), `Send this link to ${name}; it is shown only once: `, h("code", {}, link));
    drawPeople(((people) => people.annotators ?? people)(await get("api/annotators")));
  } catch (error) {
    if (error.kind === "login") return stop(error);
    fill($("invited"), error.message);
  }
}

if (project) await start();
