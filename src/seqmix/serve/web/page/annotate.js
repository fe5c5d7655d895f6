// The main page: one sentence after another. Nothing is reported as saved before the server has confirmed it.

import { about } from "./about.js";
import { get, post } from "./api.js";
import { followTags } from "./by_tag.js";
import { createTalk } from "./comments.js";
import { createContext } from "./context.js";
import { bind } from "./controls.js";
import { $, announce, fill, h, many, number, sentence } from "./dom.js";
import { createEditor } from "./editor.js";
import { readable, snippet } from "./glyphs.js";
import { markdown } from "./markdown.js";
import { same } from "./marks.js";
import { drafts, stopwatch, visited } from "./memory.js";
import { createOffers } from "./offers.js";
import { drawHistory, drawStatus } from "./panel.js";
import { createSame } from "./same.js";
import { shell, stop } from "./shell.js";
import { createTagbar } from "./tagbar.js";
import { createTagSync } from "./tagsync.js";

const EVERY = 4000; // milliseconds between two requests for the status
const project = await shell("./");

async function start() {
  let current = null, busy = false, retry = null, generation = null, size = null, past = visited.all();
  let last; // what an undo takes back: an answer by its `seq`, or a `batch`; null: nothing, undefined: not yet asked for
  const clock = stopwatch();
  const work = $("work"); // kept, since `stop` takes it off the page
  const idle = () => !busy && work.isConnected;
  const tagbar = createTagbar(project.tags, use);
  const editor = createEditor({
    host: $("sentence"), pager: $("pager"), tags: project.tags, direction: project.direction, changed: edited, brush: () => tagbar.brush(),
  });

  const context = createContext(project.direction, (text) => say(text, true));
  const offers = createOffers(editor, say);
  const talk = createTalk({ host: $("talk"), button: $("flag"), stop, left: () => editor.focus() });
  const tagsync = createTagSync({ project, editor, current: () => current, redraw: () => [tagbar.redraw(), (past = visited.all()), drawHistory(past, current?.id, open), everywhere.opened()], say });
  const everywhere = createSame({ editor, current: () => current, send: guarded, say, done: (latest) => (last = latest) });

  function use(name, how) {
    if (!current || busy) return;
    if (how === "button" && !editor.live()) tagbar.take(name);
    else editor.tag(name);
    editor.focus();
  }

  function edited() {
    if (!current) return;
    if (editor.touched()) drafts.keep(current, editor.state(), project.tag_change);
    const sure = editor.sureText();
    everywhere.changed();
    $("part").hidden = !sure;
    $("part").textContent = sure ? `Only this part will count: ${sure.map((text) => `“${text}”`).join(", ")}. The rest stays unlabeled.` : "";
  }

  // Showing a sentence.

  async function next(note = "") {
    await guarded("The next sentence could not be loaded.", async () => show(await get("api/next"), note), () => next(note));
  }

  /** Go back to a sentence; with `seq`, to correct this answer to it, which may be that of somebody else. */
  async function open(id, note = "", seq = null) {
    const path = seq === null ? `api/sentences/${encodeURIComponent(id)}` : `api/answers/${seq}`;
    await guarded("That answer could not be loaded.", async () => show({ ...(await get(path)), back: true }, note), () => open(id, note, seq));
  }

  async function show(sent, note) {
    current = sent.sentence && { ...sent, ...sent.sentence };
    work.hidden = !current;
    $("finished").hidden = Boolean(current);
    if (!current) {
      $("why").textContent = sentence(sent.why ?? "every sentence has an answer");
      announce($("why").textContent);
      return say(note);
    }
    const draft = await tagsync.upToDate(drafts.of(current));
    editor.open(offers.of(current), draft);
    everywhere.opened();
    talk.of(current);
    context.of(current.id);
    clock.start();
    $("stream").textContent = about(current, offers);
    $("leave").hidden = !current.back;
    drawHistory(past, current.id, open);
    say(draft ? `${note} Your unsaved marks are back.`.trim() : note);
    editor.focus();
    announce(`${note} ${current.tokens.slice(0, 60).map(readable).join(" ")}. ${editor.summary()}.`);
  }

  /** A link that somebody opens while the page is busy waits for its turn. */
  function linked() {
    if (!location.hash.startsWith("#id=")) return;
    if (busy) setTimeout(linked, 50);
    else arrive();
  }

  /** Show the sentence that the address names, as a link on the page of answers does, or else the next one. */
  async function arrive() {
    const wanted = new URLSearchParams(location.hash.slice(1));
    if (!wanted.get("id")) return next();
    history.replaceState(null, "", location.pathname); // a reload shows the next sentence
    await open(wanted.get("id"), "", wanted.get("answer"));
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
      const content = { id: mine.id, version: mine.version, spans: response.spans, tag_change: project.tag_change };
      const sent = decides(mine) ? post("api/adjudications", content) : post("api/annotations", { ...content, sure: response.sure, sources: offers.seen(), seconds: clock.seconds() });
      last = { seq: (await sent).seq };
      saved = true;
    }, () => save(true));
    if (saved) await settled(mine, { kind: "label", ...response }, "Saved.");
  }

  /** Skip the sentence, or discard it: both are answers without marks. */
  async function pass(kind, done) {
    const mine = current;
    if (decides(mine)) return kind === "skip" ? next() : say("Only who gave this answer can discard the sentence.", true);
    let saved = false;
    await guarded(`Not ${done.toLowerCase()}`, async () => {
      last = { seq: (await post(`api/${kind}`, { id: mine.id, version: mine.version, seconds: clock.seconds() })).seq };
      saved = true;
    }, () => pass(kind, done));
    if (saved) await settled(mine, { kind, spans: [], sure: null }, done);
  }

  async function settled(mine, response, note) {
    current = null; // what is still on the screen can no longer be edited
    context.of(null);
    talk.of(null);
    say(note);
    drafts.drop(mine);
    if (!decides(mine)) visited.add({ id: mine.id, text: snippet(mine), ...response });
    past = visited.all();
    drawHistory(past, null, open);
    await next(note);
    refresh();
  }

  /** Show what the server has: the sentence was answered by somebody else, in another tab, or by a request whose reply was lost. */
  async function stale(error) {
    const [mine, response] = [current, editor.answer()];
    if (mine.corrects) return drafts.drop(mine), next(error.message);
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
    if (current && (everywhere.undo() || editor.undo())) return;
    let latest = last;
    if (latest === undefined) await guarded("The answer was not taken back.", async () => (latest = (await get("api/status")).answers.last), undo);
    if (latest === null) return say("There is no answer to take back.");
    if (latest !== undefined) await takeBack(latest);
  }

  /** The request names its answer: when it is repeated after a lost reply, only one answer is taken back. */
  async function takeBack({ seq, batch }) {
    let taken = null;
    const undone = () => (batch ? post(`api/batches/${batch}/undo`, {}) : post("api/undo", { seq }));
    const sent = async () => (taken = await undone().catch((error) => (error.kind === "stale" ? { error } : Promise.reject(error))));
    await guarded("The answer was not taken back.", sent, () => takeBack({ seq, batch }));
    if (!taken) return;
    if (taken.error) return say(taken.error.message);
    last = taken.last;
    if (taken.batch) {
      if (current?.id === taken.here.id) editor.untagAll(taken.here.spans);
      refresh();
      return say(`Took back what was done in one go${taken.cancelled ? `: ${many(taken.cancelled, "answer")}` : ""}.`, true);
    }
    if (taken.decision) return next("Decision taken back.");
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
    everywhere.opened();
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
      await tagsync.follow(status.tag_change);
      if (size !== null && status.answers.sentences > size) await grown(status.answers.sentences - size);
      size = status.answers.sentences;
      const now = status.model?.generation ?? null;
      if (generation !== null && now !== null && now > generation) say(`Model ${now} is ready: the sentences are in a new order.`, true);
      generation = now ?? generation;
    } catch (error) {
      if (error.kind === "login") stop(error);
      else if (!error.kind) throw error; // anything else may pass: the next request is in a few seconds
    }
  }

  async function grown(more) {
    if (current || busy) return say(`${many(more, "new sentence")} in this project.`, true);
    await next(`${many(more, "new sentence")} in this project.`);
  }

  function say(text, aloud = false) {
    $("status").textContent = text;
    if (aloud) announce(text);
  }

  bind({
    Enter: () => (retry ? retry() : current && save()), s: () => current && pass("skip", "Skipped."), Delete: () => current && pass("discard", "Discarded."), z: undo, Z: () => editor.redo(), x: () => current && editor.clear(),
    X: () => current && editor.clearAll(), p: () => current && !decides(current) && editor.sure(), m: () => current && everywhere.apply(), F: talk.flag, C: talk.write, n: () => editor.jump(true), N: () => editor.jump(false), Backspace: back, ".": () => current && context.toggle(), ",": () => current && offers.toggle(), leave: () => next(),
  }, { editor, tagbar, use, editing: () => current && idle(), waiting: () => !idle() });
  fill($("guidelines"), project.guidelines?.trim() ? markdown(project.guidelines) : h("p", { class: "quiet-text" }, "This project has no guidelines yet. Write them in guidelines.md in the project folder."));
  document.addEventListener("visibilitychange", () => !document.hidden && refresh());
  setInterval(() => !document.hidden && refresh(), EVERY);

  if (!project.annotator.admin) for (const link of document.querySelectorAll("[data-admin]")) link.remove();
  followTags();
  addEventListener("hashchange", linked);
  await arrive();
  await refresh();
}

/** Whether saving decides about the answer of somebody else. */
const decides = ({ corrects }) => corrects?.kind === "adjudicate";

if (project) await start();
