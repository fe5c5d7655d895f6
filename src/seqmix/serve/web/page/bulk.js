// For admins: accept all open sentences that a model is sure of, at an error rate that holds. A preview comes first, and one click takes all of it back.

import { get, post } from "./api.js";
import { $, announce, fill, h, many, number, percent, sentence } from "./dom.js";
import { directionOf } from "./glyphs.js";
import { stop } from "./shell.js";
import { marked } from "./text.js";

const EVERY = 5000; // milliseconds between two looks at the predictions
const rate = (alpha) => `${Number((100 * alpha).toFixed(1))}%`;

/** Show the section and keep it up to date. */
export async function createBulk(project) {
  let shown = null, predicting = false, turn = Promise.resolve();
  $("bulk").hidden = false;

  /** One request after another: a click while the section is loaded waits for its turn. */
  function guarded(what, attempt) {
    const run = () => attempted(what, attempt);
    return (turn = turn.then(run, run));
  }

  async function attempted(what, attempt) {
    try {
      await attempt();
      $("bulk-trouble").hidden = true;
    } catch (error) {
      if (error.kind === "login") return stop(error);
      if (!error.kind) throw error;
      $("bulk-trouble").hidden = false;
      fill($("bulk-trouble"), h("strong", {}, `${what} `), error.message);
    }
  }

  async function look() {
    await guarded("The preview could not be loaded.", async () => draw(await get(`api/bulk?alpha=${$("alpha").value}`)));
    await guarded("What was accepted could not be loaded.", async () => drawBatches(await get("api/batches")));
  }

  function draw(answer) {
    [shown, predicting] = [answer.preview, answer.predicting];
    $("predict").textContent = predicting ? "Stop predicting" : shown ? "Predict again" : "Let a model predict the open sentences";
    $("predicting").textContent = predicting
      ? "A model is trained on the answers alone and predicts the open sentences, while no other model is due. This takes minutes."
      : shown ? `Predicted on ${new Date(shown.at * 1000).toLocaleString()} by a model that learned from ${many(shown.answers, "answer")}.` : "";
    $("accept").disabled = !shown?.accepted;
    $("accept").textContent = shown?.accepted ? `Accept ${many(shown.accepted, "sentence")}` : "Accept";
    fill($("verdict"), shown ? verdict(shown) : !predicting && sentence(answer.why));
    fill($("sample"), shown?.accepted > 0 && [h("h3", { class: "quiet-text" }, "The least certain of them"), answer.sample.map(card)]);
  }

  function verdict({ accepted, open, alpha, audits, errors, answered, expected, least, level, lost, why }) {
    if (!accepted) {
      const reasons = {
        "few open": `this requires more open sentences with a prediction, and there are ${number(open)}`,
        "few answers": `this requires at least ${many(least, "audit answer")} that the model is sure of, with at most one wrong, and there are ${number(answered)} in all${lost ? `, of which ${number(lost)} do not count, as a model asked for as large a share` : ""}`,
        "many errors": `${number(errors)} of the ${many(audits, "audit answer")} that the model is most sure of are wrong, which is too many`,
      };
      return h("p", {}, `At an error rate of ${rate(alpha)} nothing can be accepted: ${reasons[why]}.`);
    }
    return [
      h("p", { class: "figure" }, h("span", { class: "large" }, number(accepted)), h("span", { class: "range" }, `of ${many(open, "open sentence")}`)),
      h("p", {}, `At most ${rate(alpha)} of them are wrong, with ${percent(level)} confidence: of the ${many(audits, "audit answer")} that the model is as sure of, it had ${errors ? number(errors) : "none"} wrong. Expect about ${rate(expected)}.`),
    ];
  }

  function card(item) {
    const facts = [h("span", {}, `right with a probability of ${percent(item.confidence)}`), h("span", { class: "id", dir: "ltr" }, item.id)];
    return h("article", { class: "sure" }, h("p", { class: "text", dir: directionOf(item.tokens, project.direction) }, marked(item, item.spans, project.tags)), h("p", { class: "facts" }, facts));
  }

  function drawBatches(batches) {
    const accepted = batches.filter(({ kind }) => kind === "accept");
    fill($("accepted"), accepted.map((batch) => h("li", {},
      `${many(batch.answers, "sentence")} at ${rate(batch.details.alpha)}, by ${batch.annotator}, ${new Date(batch.at * 1000).toLocaleString()} `,
      batch.undone_at ? h("span", { class: "quiet-text" }, "taken back") : h("button", { type: "button", class: "quiet", onclick: ({ target }) => undo(batch, target), "aria-label": `Take back ${many(batch.answers, "sentence")}` }, "Undo"))));
  }

  async function undo(batch, button) {
    button.disabled = true;
    await guarded("Not taken back.", async () => {
      const { cancelled, changed } = await post(`api/batches/${batch.id}/undo`, {});
      said(`${many(cancelled, "sentence")} taken back${changed ? `; ${number(changed)} that people have changed since then stay` : ""}.`);
    });
    await look();
    button.disabled = false;
  }

  function said(text) {
    $("bulk-status").textContent = text;
    announce(text);
  }

  $("alpha").addEventListener("change", look);
  $("predict").addEventListener("click", async () => {
    await guarded("The request failed.", () => post("api/bulk/predict", { on: !predicting }));
    await look();
  });
  $("accept").addEventListener("click", async () => {
    $("accept").disabled = true;
    await guarded("Nothing was accepted.", async () => {
      const { accepted } = await post("api/bulk/accept", { alpha: shown.alpha, at: shown.at });
      said(`${many(accepted, "sentence")} accepted.`);
    });
    await look();
    $("accept").disabled = !shown?.accepted; // also when the server could not be asked
  });
  setInterval(() => predicting && !document.hidden && look(), EVERY);
  await look();
}
