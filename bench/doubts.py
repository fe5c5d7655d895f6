r"""How many wrong answers are among the first hundred in doubt.

python bench/doubts.py [--data ../shared/data/conll03] [--sentences 1500] [--share 0.05] \
    [--steps 300] [--how retag drop] [--corpora gazette conll03]

Of the gold spans, a share drawn at random gets another tag (retag) or is left out (drop). Precision
is the share of the first hundred answers that hold such a span; recall is their share of all
answers that do, which a hundred limits.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from common import load, show
from seqmix.data.samples import sample
from seqmix.data.scheme import tag
from seqmix.data.sentence import Sentence, unique_ids
from seqmix.data.spans import Span, spans
from seqmix.data.tagset import TagSet
from seqmix.serve.review.evidence import Doubt, inconsistencies, model_doubt, together
from seqmix.serve.review.out_of_fold import opinions
from seqmix.tagger import Settings, Tagger

FIRST = 100
BATCH = 8  # sentences per step


def read(name: str, folder: str | None) -> list[Sentence]:
    """Each text of a corpus once."""
    if name == "conll03":
        corpus = load(folder)
        if corpus.name != name:
            raise SystemExit("there is no CoNLL-03 here; name its folder with --data")
        sentences = corpus.train
    else:
        parts = ("train", "reserve", "dev", "test")
        sentences = [s for part in parts for s in sample(f"gazette:{part}")]
    return unique_ids(list({s.tokens: s for s in sentences}.values()))


def spoiled(
    sentences: Sequence[Sentence], share: float, how: str, rng: np.random.Generator
) -> tuple[list[Sentence], set[str]]:
    """The sentences with a share of their spans changed, and the ids of those that are wrong."""
    places = [(i, span) for i, s in enumerate(sentences) for span in spans(s.tags)]
    types = sorted({span.type for _, span in places})
    chosen = rng.choice(len(places), round(share * len(places)), replace=False)
    changed = {places[at] for at in chosen}
    answers, wrong = [], {sentences[i].id for i, _ in changed}
    for i, sentence in enumerate(sentences):
        kept: list[Span] = []
        for span in spans(sentence.tags):
            if (i, span) not in changed:
                kept.append(span)
            elif how == "retag":
                others = [name for name in types if name != span.type]
                kept.append(Span(span.start, span.end, str(rng.choice(others))))
        answers.append(sentence.with_tags(tag(kept, len(sentence))))
    return answers, wrong


def model_doubts(answers: Sequence[Sentence], tags: TagSet, steps: int) -> list[Doubt]:
    """What taggers with a CRF, trained plainly, say of answers they have not seen."""

    def fit(part: Sequence[Sentence], rng: np.random.Generator) -> Tagger:
        return Tagger(head="crf", settings=Settings(steps=steps, batch_size=BATCH)).fit(
            part, rng, tags
        )

    said = opinions(fit, answers, np.random.default_rng(1))
    return [doubt for pair in said if (doubt := model_doubt(*pair))]


def ranked(*kinds: Sequence[Doubt]) -> list[str]:
    """Ids of answers in doubt in the order in which the page lists them."""
    scores: dict[str, list[float]] = {}
    for doubt in (doubt for kind in kinds for doubt in kind):
        scores.setdefault(doubt.sentence_id, []).append(doubt.score)
    return sorted(scores, key=lambda id: (-together(scores[id]), id))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=None, help="a folder with CoNLL-03's train.txt")
    parser.add_argument("--sentences", type=int, default=1500)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--how", nargs="+", default=["retag", "drop"], choices=["retag", "drop"])
    parser.add_argument(
        "--corpora", nargs="+", default=["gazette", "conll03"], choices=["gazette", "conll03"]
    )
    args = parser.parse_args()
    rows: list[list[object]] = []
    for name in args.corpora:
        sentences = read(name, args.data)[: args.sentences]
        tags = TagSet.of(sentences)
        for how in args.how:
            answers, wrong = spoiled(sentences, args.share, how, np.random.default_rng(0))
            model, other = model_doubts(answers, tags, args.steps), inconsistencies(answers)
            for kind, ids in (
                ("both", ranked(model, other)),
                ("model", ranked(model)),
                ("same text", ranked(other)),
            ):
                hits = len(wrong.intersection(ids[:FIRST]))
                row = [name, len(answers), how, len(wrong), kind, len(ids)]
                row += [f"{hits / FIRST:.2f}", f"{hits / len(wrong):.2f}"]
                rows.append([*row, f"{min(1.0, FIRST / len(wrong)):.2f}"])
    head = ["data", "answers", "changed", "wrong", "doubts", "in doubt"]
    show([*head, "precision", "recall", "at most"], rows)
