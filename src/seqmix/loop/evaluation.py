"""What a round is measured by."""

from __future__ import annotations

from collections.abc import Sequence

from seqmix.data.scheme import spans
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.protocols import Tagger


def evaluate(tagger: Tagger, sentences: Sequence[Sentence], split: str) -> dict[str, object]:
    """Return the scores of a tagger on labeled sentences."""
    unlabeled = [sentence.unlabeled() for sentence in sentences]
    predicted = [list(paths[0].tags) for paths in tagger.best_paths(unlabeled)]
    gold = [[str(tag) for tag in sentence.hardened().tags] for sentence in sentences]
    return score(gold, predicted, split=split).as_dict()


def count_spans(sentence: Sentence) -> int:
    """Return the number of labeled spans."""
    tags = [str(tag) if tag is not None else OUTSIDE for tag in sentence.hardened().tags]
    return len(spans(tags))
