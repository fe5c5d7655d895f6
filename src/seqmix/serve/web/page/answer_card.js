// An answer or an open sentence in the list: what is known of it, and what may be done with it.

import { post } from "./api.js";
import { commentBox } from "./comments.js";
import { corrector } from "./correct.js";
import { announce, fill, h, many } from "./dom.js";
import { directionOf, readable } from "./glyphs.js";
import { marked } from "./text.js";

const STREAMS = { audit: "audit", overlap: "second answer", bulk: "accepted in one go", source: "by a language model", seed: "seed" };

/** The card; `changed()` is called when the list must be loaded again. */
export function answerCard(item, { project, stop, changed }) {
  const { answer } = item;
  const [body, about, talk] = [h("div", {}), h("p", { class: "facts" }), commentBox(item, { stop })];
  const { correct, back, flag, open, review, all } = buttons(item, { edit, undo, talk });

  function show() {
    fill(body, h("p", { class: "made", dir: directionOf(item.tokens, project.direction) }, marked(item, (answer ?? item.seed)?.spans ?? [], project.tags)));
    fill(about, facts(item).map((fact) => h("span", {}, fact)));
    const own = answer?.mine && answer.kind !== "adjudicate";
    open.href = `./#${new URLSearchParams({ id: item.id, ...(answer?.correction && !own && { answer: answer.seq }) })}`;
    open.hidden = Boolean(answer) && !answer.correction && answer.kind !== "skip";
    [correct.hidden, back.hidden] = [!answer?.correction, !answer?.mine || answer.kind !== "adjudicate"];
    review.hidden = !answer?.open?.length || answer.mine || !project.annotator.admin;
  }

  async function edit() {
    correct.disabled = true;
    const close = () => {
      show();
      correct.disabled = false;
      correct.focus();
    };
    try {
      const editor = await corrector(answer.seq, { project, done: (now) => [replaced(item, now, project.annotator.name), close()], left: close, stop });
      correct.hidden = true;
      fill(body, editor.node);
      editor.start();
    } catch (error) {
      failed(error, close);
    }
  }

  /** Take an own decision back: the answers count again. */
  async function undo() {
    back.disabled = true;
    try {
      await post("api/undo", { seq: answer.seq });
      announce("Taken back.");
      changed();
    } catch (error) {
      failed(error, () => (back.disabled = false));
    }
  }

  function failed(error, close) {
    if (!error.kind) throw error;
    if (error.kind === "login") return stop(error);
    close();
    fill(body, ...body.childNodes, h("p", { role: "alert" }, error.message));
  }

  const flagged = () => flag.setAttribute("aria-pressed", String(talk.flagged()));
  talk.node.addEventListener("comments", flagged);
  show();
  flagged();
  return h("article", { class: "card", "data-id": item.id }, body, talk.node, h("footer", { class: "about-answer" }, about, h("span", { class: "actions" }, all)));
}

function buttons({ tokens }, { edit, undo, talk }) {
  const text = tokens.slice(0, 12).map(readable).join(" ");
  const button = (name, label, onclick, more = {}) => h("button", { type: "button", "aria-label": `${label}: ${text}`, onclick, ...more }, name);
  const made = {
    correct: button("Correct", "Correct", edit), back: button("Take back", "Take back the decision", undo),
    flag: button("⚑ Flag", "Flag", talk.flag, { class: "flag" }), comment: button("Comment", "Comment", talk.write),
    review: h("a", { class: "button", href: "review.html" }, "Review"), open: h("a", { class: "button", "aria-label": `Open: ${text}` }, "Open"),
  };
  return { ...made, all: Object.values(made) };
}

/** Note that an answer was corrected: by a label, which is new unless it was one's own, or by a decision. */
function replaced(item, now, name) {
  const own = item.answer.mine && now.kind === "label";
  Object.assign(item.answer, now, { mine: true, annotator: name, counts: item.answer.counts || !own, at: Date.now() / 1000, open: [], seconds: 0, batch: null, shown: null });
  if (["bulk", "source"].includes(item.stream)) item.stream = null;
}

function facts({ id, answer, seed, stream, length }) {
  const place = [h("span", { class: "id", dir: "ltr" }, id), STREAMS[stream] ?? null, length > 400 && many(length, "token")];
  if (!answer) return [seed && !seed.spans.length && "nothing marked", seed?.sure?.length && "part only", ...place].filter(Boolean);
  const date = new Date(answer.at * 1000);
  return [
    answer.kind === "adjudicate" ? `decided by ${answer.annotator}` : answer.mine ? "you" : answer.annotator,
    h("time", { datetime: date.toISOString(), title: date.toLocaleString() }, date.toLocaleDateString()),
    answer.seconds >= 1 && `${Math.round(answer.seconds)} s`,
    answer.kind === "label" && !answer.spans.length && "nothing marked",
    answer.open?.length > 0 && `${many(answer.open.length, "span")} of a split tag`, answer.sure?.length && "part only", !answer.counts && answer.kind === "label" && "another answer counts", answer.batch?.kind.replaceAll("_", " "),
    ...Object.entries(answer.shown ?? {}).map(([source, [offered, kept]]) => `${source}: ${kept} of ${offered} kept`), ...place,
  ].filter(Boolean);
}
