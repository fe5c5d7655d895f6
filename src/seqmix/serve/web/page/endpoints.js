// A language model as a source: what would be sent, the yes to send it, its prompt and limits, and what it has used.

import { get, post } from "./api.js";
import { announce, fill, h, many, number } from "./dom.js";

const path = (name) => `api/endpoints/${encodeURIComponent(name)}`;

/** The part of a source's card that is about its endpoint; it is loaded when it is opened, and at once where a yes is missing. */
export function endpointOf(name, guarded) {
  const place = h("div", { class: "endpoint" }, h("p", { class: "quiet-text" }, "Loading …"));
  const redraw = (endpoint) => fill(place, drawn(endpoint, guarded, redraw));
  guarded(async () => redraw(await get(path(name))));
  return place;
}

/** The form that adds one. */
export function newEndpoint(form, guarded, done) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const { name, url, model } = form.elements;
    guarded(async () => {
      await post("api/endpoints", { name: name.value.trim(), url: url.value.trim(), model: model.value.trim() });
      form.reset();
      await done();
      announce("Added. Nothing is sent before you say yes.");
    });
  });
}

function drawn(endpoint, guarded, redraw) {
  return [consent(endpoint, guarded, redraw), used(endpoint), answered(endpoint, guarded, redraw), settings(endpoint, guarded, redraw)];
}

function consent({ name, origin, allowed, preview }, guarded, redraw) {
  const say = (yes) => guarded(async () => {
    redraw(await post(`${path(name)}/consent`, { origin, yes }));
    announce(yes ? `Text is sent to ${origin} from now on.` : `Nothing more is sent to ${origin}.`);
  });
  if (allowed) return h("p", {}, `Text of this project is sent to ${origin}. `, h("button", { type: "button", onclick: () => say(false) }, "Stop sending"));
  return h("div", { class: "consent" },
    h("p", {}, h("strong", {}, `May text of this project be sent to ${origin}?`), " One sentence at a time, with the prompt below, and the guidelines where the prompt asks for them."),
    preview !== null && [h("p", { class: "quiet-text" }, "This would be sent first:"), h("pre", { tabindex: "0", "aria-label": "What would be sent first" }, preview)],
    h("p", {}, h("button", { type: "button", class: "primary", onclick: () => say(true) }, "Yes, send text there")));
}

function used({ usage, most_tokens: most, unusable, why }) {
  const cost = usage.cost > 0 ? `, which cost about ${usage.cost.toFixed(2)}` : "";
  return [
    h("p", { class: "quiet-text" }, `${many(usage.requests, "request")} so far, ${number(usage.tokens)} of at most ${number(most)} tokens${cost}.`),
    unusable > 0 && h("p", { class: "quiet-text" }, `${many(unusable, "answer")} could not be used; the reason for the last one: ${why}.`),
  ];
}

/** What the model has answered as an annotator of its own, and the button that takes it back. */
function answered({ name, answers, answered: count, weight }, guarded, redraw) {
  if (!count && !answers) return null;
  const back = () => guarded(async () => {
    const after = await post(`${path(name)}/take-back`, {});
    redraw(after);
    announce(`${many(after.taken, "answer")} taken back.`);
  });
  const learned = weight > 0 ? `Models learn from them with a weight of ${weight.toFixed(2)}, which the audit sets.` : "No model learns from them: the audit does not vouch for them yet.";
  return h("p", {}, `It has answered ${many(count, "sentence")} itself. ${learned} `, count > 0 && h("button", { type: "button", onclick: back }, "Take back all its answers"));
}

function settings(endpoint, guarded, redraw) {
  const id = (field) => `${field}-${endpoint.name}`;
  const prompt = h("textarea", { id: id("prompt"), rows: "14", maxlength: "20000", spellcheck: "false" });
  prompt.value = endpoint.prompt;
  const input = (field, more) => h("input", { id: id(field), type: "number", required: true, min: "0", value: String(endpoint[field]), ...more });
  const [minute, most, price] = [input("per_minute", { min: "1", max: "10000" }), input("most_tokens", {}), input("price", { step: "any" })];
  const share = input("answers", { max: "0.9", step: "any" });
  const change = (event) => {
    event.preventDefault();
    guarded(async () => {
      const changes = { prompt: prompt.value, per_minute: Number(minute.value), most_tokens: Number(most.value), price: Number(price.value), answers: Number(share.value) };
      redraw(await post(`${path(endpoint.name)}/change`, changes));
      announce("Saved.");
    });
  };
  const label = (field, text, node) => h("label", { for: id(field) }, text, node);
  return h("details", {}, h("summary", {}, "Prompt and limits"),
    h("form", { class: "typed", onsubmit: change },
      h("label", { class: "whole", for: id("prompt") }, "Prompt", prompt),
      h("p", { class: "quiet-text whole" }, "{text} becomes the sentence, {tags} the tags, {guidelines} your guidelines. After a change of the prompt, it is asked about every sentence again."),
      label("per_minute", "Requests per minute, at most", minute), label("most_tokens", "Tokens in total, at most", most), label("price", "Price per million tokens", price), label("answers", "Share of the queue that it answers itself", share),
      h("p", { class: "whole actions" }, h("button", { type: "submit" }, "Save"), h("button", { type: "button", class: "quiet", onclick: () => (prompt.value = endpoint.default) }, "The original prompt"))));
}
