// Mark one, mark all: after a span is marked, the same text elsewhere is offered, and one key marks it everywhere.

import { get, post } from "./api.js";
import { $, announce, fill, h, many, number } from "./dom.js";
import { marksIn } from "./marks.js";

const WAIT = 300; // milliseconds after a mark in which another may follow
const KEPT = "seqmix-same";

/** `current()` is the sentence on the page, `send(what, attempt, again)` talks to the server, `done(last)` hears what an undo would take back next. */
export function createSame({ editor, current, send, say, done }) {
  let known = new Set(), offer = null, asked = 0, waiting = null, applied = null;
  const options = remembered();

  const keyOf = ({ start, end, tag }) => `${start} ${end} ${tag}`;
  const confirmed = () => editor.state().marks.filter((mark) => mark.confidence === null);

  /** A sentence was opened: what is marked in it is not new. */
  function opened() {
    known = new Set(confirmed().map(keyOf));
    applied = null;
    withdraw();
  }

  /** The marks may have changed: look for the same text as that of a new one. */
  function changed() {
    const marks = confirmed();
    const fresh = marks.filter((mark) => !known.has(keyOf(mark)));
    const gone = offer && !marks.some((mark) => keyOf(mark) === keyOf(offer.mark));
    known = new Set(marks.map(keyOf));
    if (fresh.length === 1) look(fresh[0]);
    else if (gone) withdraw();
  }

  function withdraw() {
    offer = null;
    asked += 1;
    clearTimeout(waiting);
    $("same").hidden = true;
  }

  function look(mark, wait = WAIT) {
    const turn = ++asked;
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      try {
        const { id } = current() ?? {};
        if (id === undefined) return;
        const there = await get(`api/same?${new URLSearchParams({ id, start: mark.start, end: mark.end, tag: mark.tag, ...options })}`);
        if (turn !== asked || current()?.id !== id) return; // something else was marked, or shown, meanwhile
        offer = { id, mark, there };
        draw();
      } catch (error) {
        if (!error.kind) throw error; // nothing is lost: the offer is a convenience
      }
    }, wait);
  }

  const here = () => offer.there.here.filter(([start, end]) => !marksIn(editor.state(), start, end).length);

  function draw() {
    const { mark, there } = offer;
    const n = here().length;
    const places = [
      n && `${number(n)} more here`, there.answers && `${many(there.answers, "answer")} of yours without it`,
      there.open && `${there.more ? "at least " : ""}${many(there.open, "open sentence")}`,
    ].filter(Boolean);
    const aside = [there.otherwise && `marked differently in ${many(there.otherwise, "answer")}`, there.audit && `${many(there.audit, "audit answer")} stay as they are`].filter(Boolean);
    const written = Object.entries(there.variants).map(([text, times]) => `${text} ${number(times)}×`);
    const checks = options.ignore_case || options.endings;
    $("same").hidden = !places.length && !aside.length && !checks;
    if ($("same").hidden) return;
    fill($("same"),
      h("p", {}, h("strong", {}, `“${there.text}” → ${mark.tag} elsewhere: `), places.length ? `${places.join(", ")}.` : "nowhere unmarked.",
        aside.length > 0 && h("span", { class: "quiet-text" }, ` (${aside.join("; ")})`), written.length > 1 && h("span", { class: "quiet-text" }, ` ${written.join(" · ")}`)),
      h("p", { class: "actions" },
        h("button", { type: "button", id: "mark-all", "aria-keyshortcuts": "m", disabled: !places.length, onclick: apply }, "Mark all ", h("kbd", { "aria-hidden": "true" }, "m")),
        check("ignore_case", "Any case"), check("endings", "Other endings"),
        h("a", { href: `answers.html?${new URLSearchParams({ text: there.text })}`, target: "_blank", rel: "noopener" }, "Look at them")));
    if (places.length) announce(`The same text elsewhere: ${places.join(", ")}. m marks all.`);
  }

  function check(name, label) {
    const change = ({ target }) => {
      options[name] = target.checked;
      remember(options);
      look(offer.mark, 0);
      editor.focus();
    };
    return h("label", {}, h("input", { type: "checkbox", id: `same-${name}`, checked: options[name], onchange: change }), ` ${label}`);
  }

  /** Mark the text everywhere: the answers on the server first, then this sentence. */
  async function apply() {
    if (!offer) return say("Mark something first: then m marks the same text everywhere.", true);
    const { id, mark, there } = offer;
    const places = here();
    if (!there.answers && !there.open && !places.length) return say("This text is unmarked nowhere else.", true);
    let reply = null;
    await send("Not marked elsewhere.", async () => {
      let answers = 0, one;
      do {
        one = await post("api/same", { id, start: mark.start, end: mark.end, tag: mark.tag, ...options, here: places });
        answers += one.answers;
        say(`Marking … ${many(answers, "answer")} so far.`);
      } while (one.more); // a request is short, so that others save in between; repeated, it continues the same batch
      reply = { ...one, answers };
    }, apply);
    if (!reply) return;
    if (places.length) editor.tagAll(places, mark.tag);
    applied = { batch: reply.batch, state: editor.state(), local: places.length > 0 };
    done({ batch: reply.batch });
    withdraw();
    const parts = [places.length && `${number(places.length)} here`, reply.answers && `${many(reply.answers, "answer")} of yours`, there.open && `${many(there.open, "open sentence")} will show it`];
    say(`Marked all: ${parts.filter(Boolean).join(", ")}. z takes all of it back.`, true);
    editor.focus();
  }

  /** Take all of it back, if nothing was changed since; return whether there was something. */
  function undo() {
    if (!applied || applied.state !== editor.state()) return false;
    const { batch, local } = applied;
    send("Not taken back.", async () => {
      const { cancelled, last } = await post(`api/batches/${batch}/undo`, {});
      applied = null;
      if (local) editor.undo();
      done(last);
      say(`Taken back${cancelled ? `: ${many(cancelled, "answer")}` : ""}, and open sentences no longer show it.`, true);
    }, undo);
    return true;
  }

  return { opened, changed, apply, undo };
}

function remembered() {
  try {
    const { ignore_case, endings } = JSON.parse(localStorage.getItem(KEPT)) ?? {};
    return { ignore_case: ignore_case === true, endings: endings === true };
  } catch {
    return { ignore_case: false, endings: false };
  }
}

function remember(options) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(options));
  } catch {
    // it will not be remembered
  }
}
