"""Which candidates are kept: their scores beside the score range, which may be relative to the parent that was rewritten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from seqmix.augment.score_range import ScoreRange
from seqmix.data.augmented import Lineage
from seqmix.data.sentence import Sentence
from seqmix.protocols import Discriminator


@dataclass(frozen=True)
class Candidate:
    """A parent with its stretch mixed, not judged yet."""

    sentence: Sentence
    lineage: Lineage
    places: tuple[int, int]  # of both parents in the input
    parent: Sentence  # the one that was rewritten: its candidates share how they start
    legal: bool  # the heaviest tags are spans of BIO, or the parent's were not either

    @property
    def share(self) -> float:
        """The share of its words that are new."""
        start, end = self.lineage.windows[self.lineage.into]
        return (end - start) / len(self.sentence)


@dataclass(frozen=True)
class Judging:
    """A discriminator and the range of scores that it accepts."""

    judge: Discriminator | None
    limits: ScoreRange | None
    _real: dict[tuple[str, ...], float] = field(default_factory=dict)  # scores of parents

    def scores(self, candidates: Sequence[Candidate]) -> list[float]:
        """One number each; `inf` for a candidate that is proven to lie above the range."""
        if self.judge is None:
            return [0.0] * len(candidates)
        sentences, families = (
            [one.sentence for one in candidates],
            [one.parent.id for one in candidates],
        )
        return [
            float(score)
            for score in self.judge.scores(sentences, families, self._above(candidates))
        ]

    def keeps(self, candidate: Candidate, score: float) -> bool:
        """Whether the score lies in the range."""
        if self.limits is None:
            return True
        if self.limits.relative:
            score = growth(score, self._real[candidate.parent.tokens], candidate.share * self._unit)
        return self.limits.holds(score)

    @property
    def _unit(self) -> float:
        """What a nat is in the logarithm of a score: the factor is one of probabilities, whatever the base of the perplexity."""
        return math.log(2) if self.judge is not None and str(self.judge.base) == "2" else 1.0

    def _above(self, candidates: Sequence[Candidate]) -> float | NDArray[np.float64]:
        """The highest score that can be kept, for all or for each."""
        if self.limits is None or not self.limits.relative or self.judge is None:
            return math.inf if self.limits is None else self.limits.high
        fresh = {
            one.parent.tokens: one.parent
            for one in candidates
            if one.parent.tokens not in self._real
        }
        self._real.update(zip(fresh, self.judge.scores(list(fresh.values())).tolist(), strict=True))
        tallest = (
            self._unit * math.log(self.limits.high) * (1 + 1e-9)
        )  # rounding must not drop what the range holds
        return np.array(
            [
                self._real[one.parent.tokens] * math.exp(min(700, one.share * tallest))
                for one in candidates
            ]
        )


def growth(score: float, parent: float, share: float) -> float:
    """How many times less probable each new word alone made its parent, of whose words a share is new: (score / parent)^(1 / share).

    >>> round(growth(400.0, 100.0, 0.25))
    256
    """
    if math.isinf(score):
        return math.inf
    tiny = 1e-300
    return math.exp(min(700.0, (math.log(max(score, tiny)) - math.log(max(parent, tiny))) / share))
