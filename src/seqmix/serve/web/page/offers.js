// What sources suggest beside the model: all side by side, each with the name of its source, all turned off and on by one key.
// A suggestion without a tag is a hint: it points at a name, the next key gives all of it a tag, and it is never saved by itself.

import { $, percent } from "./dom.js";

const [KEY, LEAST] = ["seqmix-suggestions", "seqmix-least"];
const MODEL = "model";

/** What people marked everywhere, the model's marks, then those of each source where nothing is marked yet; the same mark by several is one mark with all their names. What is less sure than `least` is only pointed at. */
export function merged({ suggestion, offers = [] }, least = 0) {
  const marks = [], hints = [];
  const [people, sources] = [offers.filter(({ kind }) => kind === "mark_all"), offers.filter(({ kind }) => kind !== "mark_all")];
  for (const { source, spans } of [...people, { source: MODEL, spans: suggestion?.spans ?? [] }, ...sources]) {
    for (const { start, end, tag, confidence } of spans) {
      if (tag === null || (confidence ?? 1) < least) {
        hints.push({ start, end, by: source, weak: tag !== null });
        continue;
      }
      const there = marks.filter((mark) => mark.start < end && start < mark.end);
      const same = there.find((mark) => mark.start === start && mark.end === end && mark.tag === tag);
      if (same) [same.confidence, same.by] = [same.confidence ?? confidence, [...same.by, source]];
      else if (!there.length) marks.push({ start, end, tag, confidence, by: [source] });
    }
  }
  return { marks, hints: hints.filter((hint) => !marks.some((mark) => mark.start < hint.end && hint.start < mark.end)) };
}

/** `of(sentence)` is what to open, `seen()` which sources were on the page, `toggle()` hides or shows all that nobody has confirmed. */
export function createOffers(editor, say) {
  let on = read(KEY) !== "off", least = Number(read(LEAST) ?? 0.2), sent = null, seen = false;
  const button = $("suggestions");
  const now = () => (on ? merged(sent, least) : { marks: [], hints: [] });

  $("least").value = String(least);
  $("least").addEventListener("change", ({ target }) => {
    least = Number(target.value);
    write(LEAST, String(least));
    if (on && sent && !sent.answer && !button.hidden) again();
    editor.focus();
  });

  function again() {
    const { marks, hints } = now();
    editor.suggest(marks, hints);
  }

  function of(sentence) {
    [sent, seen] = [sentence, on && !sentence.answer];
    button.hidden = Boolean(sentence.answer) || sentence.stream === "audit";
    button.setAttribute("aria-pressed", String(on));
    const { marks, hints } = now();
    return { ...sentence, suggestion: sentence.suggestion || marks.length ? { ...sentence.suggestion, spans: marks } : null, hints: sentence.answer ? (sentence.answer.open ?? []).map(({ start, end, tag }) => ({ start, end, by: tag })) : hints };
  }

  function toggle() {
    if (!sent || button.hidden) return;
    on = !on;
    write(KEY, on ? "on" : "off");
    seen ||= on;
    button.setAttribute("aria-pressed", String(on));
    again();
    say(on ? "Suggestions are on." : "Suggestions are off; the key , shows them again.", true);
  }

  const names = () => [...(sent.suggestion ? [MODEL] : []), ...(sent.offers ?? []).map(({ source }) => source)];
  return { of, toggle, seen: () => (seen && sent ? names() : []), about: (sentence) => about(sentence, on, least) };
}

/** What the line above the sentence says about its suggestions. */
function about({ suggestion, offers = [], generation }, on, limit) {
  const sources = offers.map(({ source }) => source).join(", ");
  if (!on) return "Suggestions are off.";
  const also = sources ? ` Others are from ${sources}.` : "";
  if (!suggestion && sources) return `Suggested by ${sources}. Dashed marks are suggestions.`;
  if (!suggestion) return generation ? "No suggestion for this sentence." : "No suggestion yet: the first model needs some answers.";
  const [filled, weak] = [true, false].map((enough) => suggestion.spans.filter(({ confidence }) => ((confidence ?? 0) >= limit) === enough));
  const less = weak.length ? ` Dotted: it is less than ${percent(limit)} sure.` : "";
  if (filled.length) return `The model is at least ${percent(Math.min(...filled.map(({ confidence }) => confidence ?? 0)))} sure of each mark. Dashed marks are its suggestions.${less}${also}`;
  if (weak.length) return `The model is not sure of any mark here.${less}${also}`;
  return `The model finds nothing to mark here, and is at least ${percent(suggestion.confidence ?? 0)} sure of each token.${also}`;
}

function read(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // it will not be remembered
  }
}
