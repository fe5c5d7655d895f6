// The marks of one sentence as values: every function returns a new state and leaves the old one alone, so undo is a list of states.
// A mark is {start, end, tag, confidence, by}: tokens start up to but not including end. confidence is null once a person has confirmed it; by names what suggested it.
// Marks are sorted and never overlap. `sure` is null (the whole sentence counts) or sorted ranges [a, b) that do not touch.

/** A fresh state for a sentence as the server sent it: an earlier answer, else the model's suggestion, else nothing. */
export function opened(sent) {
  const spans = sent.answer ? sent.answer.spans : (sent.suggestion?.spans ?? []);
  const marks = spans.map((span) => (sent.answer ? { start: span.start, end: span.end, tag: span.tag, confidence: null } : suggested(span)));
  return { marks: sorted(marks), sure: sent.answer?.sure?.length ? joined(sent.answer.sure) : null };
}

const suggested = ({ start, end, tag, confidence, by }) => ({ start, end, tag, confidence: confidence ?? 0, ...(by && { by }) });

/** Replace the suggestions that nobody has confirmed by these, where nothing is marked. */
export function withSuggestions(state, spans) {
  const kept = state.marks.filter((mark) => mark.confidence === null);
  const free = ({ start, end }) => !kept.some((mark) => mark.start < end && start < mark.end);
  return { ...state, marks: sorted([...kept, ...spans.filter(free).map(suggested)]) };
}

/** The place of the first mark that ends behind `at`. */
function from(marks, at) {
  let low = 0, high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].end <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The mark a token is in, or null. */
export function markAt(state, at) {
  const mark = state.marks[from(state.marks, at)];
  return mark && mark.start <= at ? mark : null;
}

/** The marks that share a token with [start, end). */
export function marksIn(state, start, end) {
  const inside = [];
  for (let i = from(state.marks, start); i < state.marks.length && state.marks[i].start < end; i++) inside.push(state.marks[i]);
  return inside;
}

/** Tag [start, end) and remove the marks that were there. A single token inside a mark means the whole mark. */
export function tagged(state, start, end, tag) {
  const around = end - start === 1 ? markAt(state, start) : null;
  if (around) [start, end] = [around.start, around.end];
  const kept = state.marks.filter((mark) => mark.end <= start || mark.start >= end);
  const sure = state.sure && joined([...state.sure, [start, end]]); // whoever tags a part is sure of it
  return { marks: sorted([...kept, { start, end, tag, confidence: null }]), sure };
}

/** Remove every mark that shares a token with [start, end). */
export function cleared(state, start, end) {
  return { ...state, marks: state.marks.filter((mark) => mark.end <= start || mark.start >= end) };
}

/** "Only sure of this part": add [start, end), grown to whole marks; remove it again where all of it was sure already. */
export function sureOf(state, start, end) {
  for (const mark of marksIn(state, start, end)) [start, end] = [Math.min(start, mark.start), Math.max(end, mark.end)];
  const ranges = state.sure ?? [];
  if (!ranges.some(([a, b]) => a <= start && end <= b)) return { ...state, sure: joined([...ranges, [start, end]]) };
  const left = ranges.flatMap(([a, b]) => [[a, Math.min(b, start)], [Math.max(a, end), b]]).filter(([a, b]) => a < b);
  return { ...state, sure: left.length ? left : null };
}

/** Whether a token belongs to what will be saved. */
export const isSure = (state, at) => state.sure === null || state.sure.some(([a, b]) => a <= at && at < b);

/** What is sent: marks without their confidence; for a partial answer only those inside the sure part. */
export function answer(state) {
  const spans = state.marks.filter((mark) => isSure(state, mark.start)).map(({ start, end, tag }) => ({ start, end, tag }));
  return { spans, sure: state.sure };
}

/** Whether two answers are the same. */
export const same = (a, b) => JSON.stringify(plain(a)) === JSON.stringify(plain(b));

const plain = ({ spans, sure }) => [sorted([...spans]).map(({ start, end, tag }) => [start, end, tag]), sure?.length ? joined(sure) : null];
const sorted = (marks) => marks.sort((a, b) => a.start - b.start);

function joined(ranges) {
  const result = [];
  for (const [a, b] of [...ranges].sort((a, b) => a[0] - b[0])) {
    const last = result.at(-1);
    if (last && a <= last[1]) last[1] = Math.max(last[1], b);
    else result.push([a, b]);
  }
  return result;
}
