// The panel beside the sentence: the progress, what the model is doing, how good it is, and the last answers.

import { curve } from "./curve.js";
import { $, f1, fill, h, many, number, percent, sentence } from "./dom.js";
import { drawGoal, drawPace, duration } from "./pace.js";

const STAGES = { 1: "your answers", 2: "its encoder has read your text", 3: "a student of its teachers" };

/** Draw the status that the server sent. */
export function drawStatus(status, project) {
  const { answers, model, audit, forecast } = status;
  drawGoal(status);
  drawPace(status.pace);
  $("count").textContent = many(answers.sentences, "sentence");
  const rest = [project.annotators > 1 && `${number(answers.mine)} by you`, answers.audit > 0 && `${number(answers.audit)} for the audit`, answers.skipped > 0 && `${number(answers.skipped)} skipped`, answers.discarded > 0 && `${number(answers.discarded)} discarded`];
  $("counts").textContent = rest.filter(Boolean).join(" · ");
  drawModel(model, status.next_training_in);
  fill($("estimate"), audit ? estimate(audit) : h("p", { class: "quiet-text" }, waiting(project, status)));
  fill($("curve"), curve(status.curve ?? []) ?? []);
  $("forecast").textContent = forecast ? ahead(forecast) : audit ? early(status.lacking) : "";
}

function drawModel(model, left) {
  const line = $("model");
  line.classList.toggle("training", Boolean(model?.training));
  const stage = STAGES[model?.stage] ? ` (stage ${model.stage}: ${STAGES[model.stage]})` : "";
  const trained = model?.trained_on ? `Model ${model.generation}${stage}, trained on ${many(model.trained_on, "answer")}${age(model.age_s)}.` : "No model yet.";
  line.textContent = [trained, doing(model, left)].filter(Boolean).join(" ");
}

/** What the trainer is doing, or why it does nothing. */
function doing(model, left) {
  if (model?.training) return working(model);
  if (model?.phase && model.phase !== "waiting") return sentence(`trainer: ${model.phase}`);
  return left > 0 ? `Next training after ${many(left, "more answer")}.` : "";
}

/** "The encoder reads your text: 40%, about 3 min left." */
function working({ phase, progress, left_s: left }) {
  const rest = Number.isFinite(left) ? `about ${left < 90 ? `${Math.max(1, Math.round(left))} s` : `${Math.round(left / 60)} min`} left` : "";
  const shown = [progress && percent(progress), rest].filter(Boolean).join(", ");
  return sentence(shown ? `${phase || "training"}: ${shown}` : `${phase || "training"}…`);
}

const age = (seconds) => (seconds === null || seconds === undefined ? "" : seconds < 90 ? ", just now" : `, ${seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`} ago`);
const ahead = ({ gain, low, high, labels, level, little, minutes }) =>
  `${many(labels, "more answer")}${minutes ? ` (${duration(60 * minutes)})` : ""} should bring ${little ? "next to nothing" : `${signed(gain)} F1`} (${signed(low)} to ${signed(high)}, ${percent(level)} interval).`;
const early = ({ forecast, models }) =>
  `Too early to say what more answers would bring: this needs at least ${[forecast && many(forecast, "more audit answer"), models && many(models, "more model")].filter(Boolean).join(" and ")}.`;
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
function waiting(project, { answers, model, lacking }) {
  if (!(project.audit_share > 0)) return "This project has no audit sentences, so F1 cannot be estimated.";
  if (model?.trained_on && answers.audit) return `No estimate yet: it needs at least ${many(lacking.audit, "more audit answer")} with something marked.`;
  return "No estimate yet: it will come from the audit sentences, which are drawn at random.";
}

function estimate({ f1: value, low, high, n, level }) {
  return [
    h("p", { class: "figure" }, h("span", { class: "large" }, f1(value)), h("span", { class: "range" }, `${f1(low)} – ${f1(high)}`)),
    h("p", { class: "quiet-text" }, `${percent(level)} interval, from ${many(n, "audit sentence")}`),
  ];
}

/** The last answers, newest first; a click goes back to one. */
export function drawHistory(answers, current, open) {
  $("history-empty").hidden = answers.length > 0;
  fill($("history"), answers.slice(0, 12).map((answer) => h("li", {},
    h("button", { type: "button", class: "past", "aria-current": answer.id === current ? "true" : null, onclick: () => open(answer.id) },
      h("span", { class: "snippet", dir: "auto" }, answer.text), h("span", { class: "tagged" }, summaryOf(answer))))));
}

function summaryOf(answer) {
  if (answer.kind !== "label") return answer.kind === "skip" ? "skipped" : "discarded";
  const tags = answer.spans.map((span) => span.tag);
  const shown = tags.slice(0, 5).join(" · ") + (tags.length > 5 ? ` · ${tags.length - 5} more` : "");
  return (shown || "nothing marked") + (answer.sure?.length ? " (part)" : "");
}
