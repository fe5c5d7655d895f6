"""Precision, recall and F1 on exact spans, equal to conlleval to the digit.

>>> from seqmix.data.scoring import score
>>> score([["B-PER", "O"]], [["B-PER", "B-LOC"]]).f1
0.6666666666666666
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from seqmix.data.spans import OUTSIDE, prefixed, spans, token_spans
from seqmix.errors import DataError


@dataclass(frozen=True, repr=False)
class Count:
    """How many spans are in the gold, were predicted (`found`), and were predicted correctly."""

    gold: int = 0
    found: int = 0
    correct: int = 0

    @property
    def precision(self) -> float:
        """The correct share of the predicted spans; 0 if there are none."""
        return self.correct / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """The correct share of the gold spans; 0 if there are none."""
        return self.correct / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 2 * self.correct / (self.gold + self.found) if self.gold + self.found else 0.0

    def __repr__(self) -> str:
        figures = ("f1", "precision", "recall", "gold", "found", "correct")
        shown = ", ".join(f"{name}={round(getattr(self, name), 4)}" for name in figures)
        return f"{type(self).__name__}({shown})"

    def __add__(self, other: Count) -> Count:
        return Count(self.gold + other.gold, self.found + other.found, self.correct + other.correct)


@dataclass(frozen=True, repr=False)
class Score(Count):
    """Counts over all spans (micro averages) and by type, and token accuracy."""

    by_type: Mapping[str, Count] = field(default_factory=dict)
    """The same counts for the spans of each type."""
    tokens: int = 0
    """How many tokens were scored."""
    tokens_correct: int = 0
    """How many of them have the gold tag."""
    sentences: int = 0
    """How many sentences were scored."""
    split: str = ""
    """The name of the data, so that dev is never mistaken for test."""

    @property
    def macro_f1(self) -> float:
        """The unweighted mean F1 over the types in gold or prediction."""
        scores = [count.f1 for count in self.by_type.values()]
        return sum(scores) / len(scores) if scores else 0.0

    @property
    def accuracy(self) -> float:
        """The share of tokens with exactly the gold tag."""
        return self.tokens_correct / self.tokens if self.tokens else 0.0

    def report(self) -> str:
        """Return the figures in the layout of conlleval."""
        lines = [
            f"processed {self.tokens} tokens with {self.gold} phrases; "
            f"found: {self.found} phrases; correct: {self.correct}.",
            f"accuracy: {100 * self.accuracy:6.2f}%; {_line(self)}",
        ]
        lines += [
            f"{type:>17}: {_line(count)}  {count.found}" for type, count in self.by_type.items()
        ]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Return plain numbers for JSON."""
        return {
            **({"split": self.split} if self.split else {}),
            "f1": self.f1,
            "precision": self.precision,
            "recall": self.recall,
            "macro_f1": self.macro_f1,
            "accuracy": self.accuracy,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "gold": self.gold,
            "found": self.found,
            "correct": self.correct,
            "by_type": {
                type: {
                    "f1": c.f1,
                    "precision": c.precision,
                    "recall": c.recall,
                    "gold": c.gold,
                    "found": c.found,
                }
                for type, c in self.by_type.items()
            },
        }


def score(
    gold: Iterable[Sequence[str]], predicted: Iterable[Sequence[str]], split: str = ""
) -> Score:
    """Score predicted tags against gold tags, on exact spans like conlleval.

    If the gold has neither O nor prefixes, tags are parts of speech: each token is a span.

    Args:
        gold: The gold tags of each sentence.
        predicted: The predicted tags of the same sentences.
        split: The name of the data in the result, such as `dev`.
    """
    gold, predicted = list(gold), list(predicted)
    if len(gold) != len(predicted):
        raise DataError(
            f"there are {len(gold)} gold sentences and {len(predicted)} predicted ones; "
            "they must be the same sentences"
        )
    pairs = [(list(g), list(p)) for g, p in zip(gold, predicted, strict=True)]
    for number, (g, p) in enumerate(pairs, 1):
        if len(g) != len(p):
            raise DataError(
                f"sentence {number} has {len(g)} gold tags and {len(p)} predicted ones; "
                "they must be the same tokens"
            )
    plain = not any(tag == OUTSIDE or prefixed(tag) for g, _ in pairs for tag in g)
    read = token_spans if plain else spans
    in_gold: Counter[str] = Counter()
    in_predicted: Counter[str] = Counter()
    correct: Counter[str] = Counter()
    for g, p in pairs:
        gold_spans, predicted_spans = read(g), read(p)
        in_gold.update(span.type for span in gold_spans)
        in_predicted.update(span.type for span in predicted_spans)
        correct.update(span.type for span in set(gold_spans) & set(predicted_spans))
    by_type = {
        type: Count(in_gold[type], in_predicted[type], correct[type])
        for type in sorted({*in_gold, *in_predicted})
    }
    total = sum(by_type.values(), Count())
    return Score(
        *(total.gold, total.found, total.correct),
        by_type,
        tokens=sum(len(g) for g, _ in pairs),
        tokens_correct=sum(a == b for g, p in pairs for a, b in zip(g, p, strict=True)),
        sentences=len(pairs),
        split=split,
    )


def _line(count: Count) -> str:
    precision, recall, f1 = 100 * count.precision, 100 * count.recall, 100 * count.f1
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"
