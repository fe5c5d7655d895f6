// The line above the sentence: why it is shown, and what saving will do.

/** Return that line for the sentence on the page; `offers` knows what is suggested. */
export function about(current, offers) {
  const { stream, answer, back, version, discarded, corrects } = current;
  if (corrects && !corrects.mine) return of(corrects);
  if (corrects?.kind === "adjudicate") return "Your decision: correct it and save it again. It is about the whole sentence.";
  if (discarded) return "You discarded this sentence: save marks to keep it after all.";
  if (back && answer?.open?.length) return `A tag has been split since: choose what the dotted spans are now (${answer.open[0].choices.filter(Boolean).join(", ")}).`;
  if (back && answer) return "Your earlier answer: correct it and save it again.";
  if (back && version) return "You took your answer back: answer again.";
  if (stream === "audit") return "Audit: drawn at random and shown without suggestions, so that the F1 estimate is unbiased.";
  if (stream === "overlap") return "Second answer: a colleague has labeled this sentence too.";
  return offers.about(current);
}

/** What saving does to the answer of somebody else, or of a model. */
export function of({ kind, annotator }) {
  if (kind === "adjudicate") return `${annotator}’s answer: what you save is your decision, about the whole sentence, and counts instead.`;
  const model = annotator.startsWith("model:") ? `A model’s answer (${annotator.slice(6)})` : `A model’s answer, accepted by ${annotator}`;
  return `${model}: what you save is your answer and replaces it.`;
}
