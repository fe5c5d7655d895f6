// The main page: one sentence after another. Nothing is reported as saved before the server has confirmed it.

import { get, post } from "./api.js";
import { bind } from "./controls.js";
import { $, announce, fill, h, many, number, percent, sentence } from "./dom.js";
import { createEditor } from "./editor.js";
import { readable, snippet } from "./glyphs.js";
import { withKeys } from "./keys.js";
import { markdown } from "./markdown.js";
import { same } from "./marks.js";
import { drafts, stopwatch, visited } from "./memory.js";
import { drawHistory, drawStatus } from "./panel.js";
import { shell, stop } from "./shell.js";
import { createTagbar } from "./tagbar.js";

const EVERY = 4000; // milliseconds between two requests for the status
const project = await shell("./");

async function start() {
  let current = null, busy = false, retry = null, generation = null, past = visited.all();
  let last; // the answer an undo takes back, by its seq; null: none, undefined: not yet asked for
  const clock = stopwatch();
  const work = $("work"); // kept, since `stop` takes it off the page
  const tagbar = createTagbar(project.tags, use);
  const editor = createEditor({
    host: $("sentence"), pager: $("pager"), tags: project.tags, direction: project.direction, changed: edited, brush: () => tagbar.brush(),
  });

  function use(name, how) {
    if (!current || busy) return;
    if (how === "button" && !editor.live()) tagbar.take(name);
    else editor.tag(name);
    editor.focus();
  }

  function edited() {
    if (!current) return;
    if (editor.touched()) drafts.keep(current, editor.state());
    const sure = editor.sureText();
    $("part").hidden = !sure;
    $("part").textContent = sure ? `Only this part will count: ${sure.map((text) => `“${text}”`).join(", ")}. The rest stays unlabeled.` : "";
  }

  // Showing a sentence.

  async function next(note = "") {
    await guarded("The next sentence could not be loaded.", async () => show(await get("api/next"), note), () => next(note));
  }

  async function open(id, note = "") {
    const fetched = async () => show({ ...(await get(`api/sentences/${encodeURIComponent(id)}`)), back: true }, note);
    await guarded("That answer could not be loaded.", fetched, () => open(id, note));
  }

  function show(sent, note) {
    current = sent.sentence && { ...sent, ...sent.sentence };
    work.hidden = !current;
    $("finished").hidden = Boolean(current);
    if (!current) {
      $("why").textContent = sentence(sent.why ?? "every sentence has an answer");
      announce($("why").textContent);
      return say(note);
    }
    const draft = drafts.of(current);
    editor.open(current, draft);
    clock.start();
    $("stream").textContent = about(current);
    $("leave").hidden = !current.back;
    drawHistory(past, current.id, open);
    say(draft ? `${note} Your unsaved marks are back.`.trim() : note);
    editor.focus();
    announce(`${note} ${current.tokens.slice(0, 60).map(readable).join(" ")}. ${editor.summary()}.`);
  }

  function about({ stream, suggestion, generation, answer, back }) {
    if (back) return answer ? "Your earlier answer: correct it and save it again." : "You took your answer back: answer again.";
    if (stream === "audit") return "Audit: drawn at random and shown without suggestions, so that the F1 estimate is unbiased.";
    if (stream === "overlap") return "Second answer: a colleague has labeled this sentence too.";
    if (!suggestion) return generation ? "No suggestion for this sentence." : "No suggestion yet: the first model needs some answers.";
    const least = Math.min(1, ...suggestion.spans.map((span) => span.confidence ?? 0));
    if (suggestion.spans.length) return `The model is at least ${percent(least)} sure of each mark. Dashed marks are its suggestions.`;
    return `The model finds nothing to mark here, and is at least ${percent(suggestion.confidence ?? 0)} sure of each token.`;
  }

  // Answering. While `busy`, a second Enter is ignored until the first has been answered.

  async function guarded(what, attempt, again) {
    if (busy) return;
    busy = true;
    work.setAttribute("aria-busy", "true");
    let after = null;
    try {
      await attempt();
      retry = null;
      $("trouble").hidden = true;
    } catch (error) {
      if (error.kind === "login") return stop(error);
      if (error.kind === "stale" && current) after = () => stale(error);
      else trouble(what, error, again);
    } finally {
      busy = false;
      work.removeAttribute("aria-busy");
    }
    if (after) await after();
  }

  function trouble(what, error, again) {
    if (!error.kind) throw error; // a bug: shown in the console, not in a banner
    retry = again;
    fill($("trouble-text"), h("strong", {}, `${what} `), error.message, current ? " Your marks are kept on this page." : "");
    $("trouble").hidden = false;
    if (current) say("");
  }

  /** Ask before saving a long text of which some pieces were never shown. */
  function asked() {
    const ask = $("unseen");
    $("unseen-text").textContent = `${number(editor.unseen())} of ${many(current.tokens.length, "token")} have not been shown yet. Saving would label them too.`;
    ask.returnValue = "";
    ask.onclose = () => {
      editor.focus();
      if (ask.returnValue === "all") save(true);
      else editor.showRest();
    };
    ask.showModal();
  }

  async function save(all = false) {
    if (!all && editor.unseen()) return asked();
    const [mine, response] = [current, editor.answer()];
    let saved = false;
    await guarded("Not saved.", async () => {
      say("Saving …");
      last = (await post("api/annotations", { id: mine.id, version: mine.version, ...response, seconds: clock.seconds() })).seq;
      saved = true;
    }, () => save(true));
    if (saved) await settled(mine, { kind: "label", ...response }, "Saved.");
  }

  async function skip() {
    const mine = current;
    let saved = false;
    await guarded("Not skipped.", async () => {
      last = (await post("api/skip", { id: mine.id, version: mine.version, seconds: clock.seconds() })).seq;
      saved = true;
    }, skip);
    if (saved) await settled(mine, { kind: "skip", spans: [], sure: null }, "Skipped.");
  }

  async function settled(mine, response, note) {
    current = null; // what is still on the screen can no longer be edited
    say(note);
    drafts.drop(mine);
    visited.add({ id: mine.id, text: snippet(mine), ...response });
    past = visited.all();
    drawHistory(past, null, open);
    await next(note);
    refresh();
  }

  /** Show what the server has: the sentence was answered by somebody else, in another tab, or by a request whose reply was lost. */
  async function stale(error) {
    const [mine, response] = [current, editor.answer()];
    try {
      const fresh = await get(`api/sentences/${encodeURIComponent(mine.id)}`);
      if (fresh.answer && same(fresh.answer, response)) return await settled(mine, { kind: "label", ...response }, "Saved: the server already had it.");
      if (fresh.sentence.version !== mine.version) {
        drafts.drop(mine);
        return show({ ...fresh, back: true }, "This sentence has been answered elsewhere. Here is that answer; your marks were not saved.");
      }
    } catch (failure) {
      if (failure.kind === "login") return stop(failure);
    }
    drafts.drop(mine);
    await next(error.message);
  }

  async function undo() {
    if (current && editor.undo()) return;
    let latest = last;
    if (latest === undefined) await guarded("The answer was not taken back.", async () => (latest = (await get("api/status")).answers.last), undo);
    if (latest === null) return say("There is no answer to take back.");
    if (latest !== undefined) await takeBack(latest);
  }

  /** The request names its answer: when it is repeated after a lost reply, only one answer is taken back. */
  async function takeBack(seq) {
    let taken = null;
    const sent = async () => (taken = await post("api/undo", { seq }).catch((error) => (error.kind === "stale" ? { error } : Promise.reject(error))));
    await guarded("The answer was not taken back.", sent, () => takeBack(seq));
    if (!taken) return;
    if (taken.error) return say(taken.error.message);
    last = taken.last;
    const before = past.find((answer) => answer.id === taken.id);
    visited.remove(taken.id);
    past = visited.all();
    if (before?.kind === "label") await reopened(taken.id, before);
    else await open(taken.id, "Answer taken back.");
    refresh();
  }

  /** Show the marks of the answer that was taken back: an undo is mostly for one wrong mark. */
  async function reopened(id, before) {
    await open(id, "Answer taken back.");
    if (current?.id !== id) return;
    const marks = before.spans.map((span) => ({ ...span, confidence: null }));
    editor.open(current, { marks, sure: before.sure?.length ? before.sure : null });
  }

  async function back() {
    const at = past.findIndex((answer) => answer.id === current?.id);
    const before = past[at + 1];
    if (before) await open(before.id);
    else say("There is no earlier answer in this session.");
  }

  // What the server is doing.

  async function refresh() {
    if (!work.isConnected) return;
    try {
      const status = await get("api/status");
      if (!work.isConnected) return;
      drawStatus(status, project);
      last ??= status.answers.last;
      takeUp(status.tags);
      const now = status.model?.generation ?? null;
      if (generation !== null && now !== null && now > generation) say(`Model ${now} is ready: the sentences are in a new order.`, true);
      generation = now ?? generation;
    } catch (error) {
      if (error.kind === "login") stop(error);
      else if (!error.kind) throw error; // anything else may pass: the next request is in a few seconds
    }
  }

  /** Add the tags that are new since the page was opened. */
  function takeUp(names) {
    const fresh = names.filter((name) => !project.tags.some((tag) => tag.name === name));
    if (!fresh.length) return;
    project.tags.splice(0, Infinity, ...withKeys(names.map((name, at) => ({ name, color: at, key: at < 9 ? String(at + 1) : null }))));
    tagbar.redraw();
    say(`New tags: ${fresh.join(", ")}.`, true);
  }

  function say(text, aloud = false) {
    $("status").textContent = text;
    if (aloud) announce(text);
  }

  bind({
    Enter: () => (retry ? retry() : current && save()), s: () => current && skip(), z: undo, Z: () => editor.redo(), x: () => current && editor.clear(),
    X: () => current && editor.clearAll(), p: () => current && editor.sure(), n: () => editor.jump(true), N: () => editor.jump(false), Backspace: back, leave: () => next(),
  }, { editor, tagbar, use, editing: () => current && !busy, waiting: () => busy });
  fill($("guidelines"), project.guidelines?.trim() ? markdown(project.guidelines) : h("p", { class: "quiet-text" }, "This project has no guidelines yet. Write them in guidelines.md in the project folder."));
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
  setInterval(() => !document.hidden && refresh(), EVERY);

  $("count").textContent = many(project.sentences, "sentence");
  if (!project.annotator.admin) for (const link of document.querySelectorAll("[data-admin]")) link.remove();
  await next();
  await refresh();
}

if (project) await start();
