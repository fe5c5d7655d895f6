// Answers in doubt, one after another: keep what is right, mend what is wrong. Nothing is reported as saved before the server has confirmed it.

import { get, post } from "./api.js";
import { createBulk } from "./bulk.js";
import { typed } from "./controls.js";
import { $, announce, fill, h, many, number, percent } from "./dom.js";
import { createEditor } from "./editor.js";
import { directionOf } from "./glyphs.js";
import { same } from "./marks.js";
import { stopwatch } from "./memory.js";
import { shell, stop } from "./shell.js";
import { createChoices } from "./split.js";
import { takeUp, watchTags } from "./tagsync.js";
import { marked } from "./text.js";

const EVERY = 5000; // milliseconds between two looks at what models judge
const project = await shell("review.html");

async function start() {
  let reviews = [], total = 0, current = null, busy = false, judged = null;
  const [put_off, done] = [new Set(), []]; // ids for later; decisions that can be taken back, the last one at the end
  const clock = stopwatch();
  const editor = createEditor({ host: $("sentence"), pager: $("pager"), tags: project.tags, direction: project.direction, changed: edited });
  const choices = createChoices({ editor, text: ({ start, end }) => current.tokens.slice(start, end).join(" "), decided: () => edited() });

  // Showing an answer.

  async function load(note = "") {
    await guarded("The list could not be loaded.", async () => {
      await post("api/reviews/compare", {});
      await takeUp(project); // somebody may have changed the tags
      drawTags();
      take(await get("api/reviews?limit=50"));
    });
    show(note);
  }

  function take(list) {
    [reviews, total] = [list.reviews, list.total];
    drawJudging(list);
  }

  function show(note = "") {
    if (reviews.every(({ id }) => put_off.has(id))) put_off.clear();
    current = reviews.find(({ id }) => !put_off.has(id)) ?? null;
    $("review").hidden = !current;
    $("summary").textContent = total ? `${many(total, "answer")} in doubt${put_off.size ? `, ${number(put_off.size)} of them postponed` : ""}.` : "No answer is in doubt.";
    $("status").textContent = note;
    if (!current) return announce(`${note} ${$("summary").textContent}`);
    const hints = choices.of(current);
    fill($("reasons"), current.doubts.map(reason));
    $("whose").textContent = current.annotator === null ? "Labeled before the project began" : current.mine ? "Your answer" : `${current.annotator}’s answer`;
    $("sentence").dataset.id = current.id;
    editor.open({ ...current, hints }, state(current.spans));
    $("mend").hidden = !proposed(current);
    $("keep").hidden = choices.any();
    choices.next();
    clock.start();
    editor.focus();
    announce(`${note} ${current.doubts.map(title).join(". ")}. ${editor.summary()}.`);
  }

  const state = (spans) => ({ marks: spans.map((span) => ({ ...span, confidence: null })).sort((a, b) => a.start - b.start), sure: current.whole || !current.sure?.length ? null : current.sure });
  const proposed = ({ doubts }) => doubts.find(({ proposal }) => proposal)?.proposal;
  const changed = () => current && !same(editor.answer(), { spans: current.spans, sure: state([]).sure });

  function edited() {
    choices.redraw();
    $("save").disabled = !ready();
  }

  /** Whether there is something to save, and nothing is left to choose. */
  const ready = () => current && (choices.any() ? !choices.waiting().length : changed());

  function reason(doubt) {
    const text = (item, spans) => h("p", { class: "text", dir: directionOf(item.tokens, project.direction) }, marked(item, spans, project.tags));
    const { reading, usual, counts, start, end } = doubt.details;
    const says = {
      model: () => [doubt.proposal && text(current, doubt.proposal)],
      inconsistent: () => [
        h("p", {}, `“${current.tokens.slice(start, end).join(" ")}” is ${named(reading)} here and mostly ${named(usual)}: `, Object.entries(counts).map(([tag, n]) => `${tag === "O" ? "no mark" : tag} ${n}×`).join(", "), "."),
        doubt.examples.length > 0 && h("ul", {}, doubt.examples.map((example) => h("li", {}, text(example, usual === "O" ? [] : [{ start: example.start, end: example.end, tag: usual }])))),
      ],
      annotators: () => [h("p", {}, "The page ", h("a", { href: "agreement.html" }, "Team"), " shows the answers side by side.")],
      split: choices.nodes,
    }[doubt.kind];
    return h("section", { class: "reason" }, h("h3", {}, title(doubt),
      doubt.proposal && h("button", { type: "button", class: "quiet", onclick: () => { editor.open(current, state(doubt.proposal)); edited(); editor.focus(); } }, "Use this")), says?.());
  }

  // Deciding. While `busy`, a second key is ignored until the first has been answered.

  async function guarded(what, attempt) {
    if (busy) return false;
    busy = true;
    $("review").setAttribute("aria-busy", "true");
    try {
      await attempt();
      $("trouble").hidden = true;
      return true;
    } catch (error) {
      if (error.kind === "login") stop(error);
      else if (!error.kind) throw error;
      else {
        $("trouble").hidden = false;
        fill($("trouble"), h("strong", {}, `${what} `), error.message, " ", h("button", { type: "button", onclick: () => load() }, "Load the list again"));
      }
      return false;
    } finally {
      busy = false;
      $("review").removeAttribute("aria-busy");
    }
  }

  async function keep() {
    const { id, seq } = current;
    if (await guarded("Not kept.", () => post("api/reviews/keep", { id, seq }))) settled({ id, seq, kept: true }, "Kept.");
  }

  async function mend({ spans, sure }) {
    const { id, seq, version } = current;
    let saved;
    const sent = async () => (saved = await post("api/reviews/mend", { id, seq, version, spans, sure: current.whole ? null : sure, tag_change: project.tag_change, seconds: clock.seconds() }));
    if (!(await guarded("Not saved.", sent))) return;
    let batches = [];
    await guarded("The choice was not made elsewhere.", async () => (batches = await choices.everywhere(id)));
    settled({ id, ...saved }, "Corrected.");
    if (!batches.length) return;
    for (const batch of new Set(batches.map((one) => one.batch))) done.push({ batch });
    await load(`Corrected, and so ${batches.reduce((sum, { answers }) => sum + answers, 0) === 1 ? "is" : "are"} ${many(batches.reduce((sum, { answers }) => sum + answers, 0), "other answer")} with the same text.`);
  }

  function settled(decision, note) {
    done.push(decision);
    reviews = reviews.filter(({ id }) => id !== decision.id);
    total -= 1;
    return reviews.length || !total ? show(note) : load(note);
  }

  /** Take the last decision back. */
  async function undo() {
    if (editor.undo()) return edited();
    const last = done.at(-1);
    if (!last) return ($("status").textContent = "There is no decision to take back.");
    const back = last.batch ? () => post(`api/batches/${last.batch}/undo`, {}) : last.kept ? () => post("api/reviews/keep", { id: last.id, seq: last.seq, keep: false }) : () => post("api/undo", { seq: last.seq });
    if (!(await guarded("Not taken back.", back))) return;
    done.pop();
    put_off.delete(last.id);
    await load("Taken back.");
  }

  function later() {
    put_off.add(current.id);
    show("Postponed.");
  }

  const use = (tag) => {
    editor.tag(tag.name);
    choices.next();
  };
  const actions = {
    k: () => !choices.any() && keep(), m: () => proposed(current) && mend({ ...state([]), spans: proposed(current) }), s: later, z: undo, Z: editor.redo,
    Enter: () => ready() && mend(editor.answer()), x: editor.clear, X: editor.clearAll,
  };
  const act = (name) => current && !busy && actions[name]();

  document.addEventListener("keydown", (event) => {
    const at = document.activeElement;
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || at?.matches("input, select, summary")) return;
    if (at?.matches("button, a") && (event.key === "Enter" || event.key === " ")) return;
    const pressed = typed(event);
    const tag = project.tags.find(({ key }) => key === pressed.toLowerCase() && !(pressed in actions));
    if (current && !busy && editor.key(event)) return event.preventDefault();
    if (!(pressed === "z" || current) || !(actions[pressed] || tag)) return;
    event.preventDefault();
    if (busy || event.repeat) return;
    if (actions[pressed]) pressed === "z" ? undo() : act(pressed);
    else use(tag);
  });
  for (const [id, name] of Object.entries({ keep: "k", mend: "m", save: "Enter", later: "s" })) $(id).addEventListener("click", () => act(name));
  $("undo").addEventListener("click", () => !busy && undo());
  function drawTags() {
    fill($("tags"), project.tags.slice(0, 40).map((tag) => h("button", { type: "button", class: `tag c${tag.color}`, onclick: () => current && use(tag) }, tag.name, tag.key && !(tag.key in actions) && h("kbd", { "aria-hidden": "true" }, tag.key))));
  }

  // What models say: somebody asks for it, and the trainer does it while no model is due.

  function drawJudging(list) {
    judged = list.judged;
    $("judge").hidden = !project.annotator.admin;
    $("judge").textContent = list.judging ? "Stop judging" : "Let models judge the answers";
    $("judge").dataset.on = list.judging ? "" : "on";
    const when = judged && `Models judged ${many(judged.answers, "answer")} on ${new Date(judged.at * 1000).toLocaleString()}.`;
    $("judged").textContent = list.judging ? "Five models are trained, each without a fifth of the answers, while no other model is due. This takes minutes; the list grows by itself." : (when ?? "");
  }

  $("judge").addEventListener("click", async () => {
    await guarded("The request failed.", () => post("api/reviews/judge", { model: $("judge").dataset.on === "on" }));
    await look();
  });

  async function look() {
    if (document.hidden || busy) return;
    try {
      const before = judged?.at;
      const list = await get("api/reviews?limit=50");
      drawJudging(list);
      if (!busy && list.judged?.at !== before && !changed()) {
        take(list);
        show("Models have judged the answers.");
      }
    } catch (error) {
      if (error.kind === "login") stop(error);
      else if (!error.kind) throw error; // anything else may pass
    }
  }

  /** The tags have changed: show the list with those of now; marks that are not saved stay, with theirs. */
  async function retagged({ now, text }) {
    drawTags();
    if (!changed()) return load(text);
    const renamed = (spans) => spans.map((span) => ({ ...span, tag: now(span.tag) })).filter((span) => span.tag);
    current.spans = renamed(current.spans);
    for (const doubt of current.doubts) doubt.proposal &&= renamed(doubt.proposal);
    if (!choices.any()) fill($("reasons"), current.doubts.map(reason));
    reviews = [current]; // the others are loaded again when this one is done
    editor.rename(now);
    $("status").textContent = text;
  }

  await load();
  watchTags(project, retagged, () => busy);
  if (project.annotator.admin) await createBulk(project);
  setInterval(() => $("judge").dataset.on !== "on" && look(), EVERY);
}

const named = (tag) => (tag === "O" ? "not marked" : `marked ${tag}`);

function title({ kind, score }) {
  const what = { model: `Models that have not seen this answer disagree with it, and are ${percent(score)} sure`, inconsistent: "The same text is tagged differently elsewhere", annotators: "People disagree", split: "A tag was split" };
  return what[kind] ?? kind;
}

if (project) await start();
