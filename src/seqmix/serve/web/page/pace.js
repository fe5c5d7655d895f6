// What to aim for now, and how long answers take.

import { $, fill, h, many, number } from "./dom.js";

const STREAMS = { active: "chosen by the model", audit: "audit", overlap: "second answers" };

/** "90 s", "12 min" or "2.5 h". */
export const duration = (seconds) => (seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`);

/** Show how many answers there are of those to aim for. */
export function drawGoal({ answers, goal }) {
  $("done").textContent = number(answers.labeled);
  $("total").textContent = aim(goal, answers);
  $("bar").style.setProperty("--share", `${Math.min(100, (100 * answers.labeled) / (goal.answers || 1))}%`);
  const rest = goal.minutes ? ` (about ${duration(60 * goal.minutes)})` : "";
  $("goal").textContent = goal.more > 0 ? `${many(goal.more, "more answer")}${rest} ${REASONS[goal.why]}.` : REASONS[goal.why] ? `${REASONS[goal.why]}.` : "";
}

const aim = ({ why, answers: aimed }, { sentences }) =>
  why === "all" ? `of ${number(sentences)} labeled` : why === "enough" ? "labeled" : `of about ${number(aimed)} labeled`;

const REASONS = {
  "first model": "until the first model",
  measure: "until a forecast is possible",
  gain: "for the gain forecast below",
  enough: "More answers should bring next to nothing",
  all: "and all of the text is labeled",
};

/** Show the pace of this annotator, and where the time of all goes. */
export function drawPace(pace) {
  $("pace").hidden = !pace;
  if (!pace) return;
  const { mine, seconds, answers } = pace;
  const own = mine && mine.answers < answers ? `${duration(mine.seconds)} an answer by you, ${duration(seconds)} by all` : `${duration(seconds)} an answer`;
  $("pace-summary").textContent = own;
  const rows = [
    ...pace.by_tag.map(({ tag, spans, seconds: each }) => row(`a mark of ${tag}`, many(spans, "mark"), duration(each))),
    ...pace.by_stream.map((part) => row(STREAMS[part.stream] ?? part.stream, many(part.answers, "answer"), duration(part.seconds), part.ratio)),
    ...pace.by_source.map((part) => row(`suggested by ${part.source}`, many(part.answers, "answer"), duration(part.seconds), part.ratio)),
  ];
  fill($("pace-rows"), rows);
}

/** The last column is the time taken to the time that answers with as many words and marks take on average. */
const row = (name, n, seconds, ratio = null) =>
  h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, n), h("td", {}, seconds), h("td", {}, ratio === null ? "" : `× ${ratio.toFixed(1)}`));
