"""Accept the candidates whose score lies in the range, which may be relative to the parent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from seqmix.augment.score_range import ScoreRange
from seqmix.data.augmented import Augmentation, Augmented, Lineage
from seqmix.data.sentence import Sentence
from seqmix.protocols import Discriminator


@dataclass(frozen=True)
class Candidate:
    """A parent with its stretch mixed, not yet scored."""

    sentence: Sentence
    lineage: Lineage
    places: tuple[int, int]  # of both parents among the sentences
    parent: Sentence  # the one that was rewritten; its candidates share how they start
    legal: bool  # its heaviest tags are spans of BIO, unless its parent's are not either

    @property
    def share(self) -> float:
        """The share of the words that are new."""
        start, end = self.lineage.windows[self.lineage.into]
        return (end - start) / len(self.sentence)


@dataclass(frozen=True)
class Judging:
    """A discriminator and the range of scores that it accepts."""

    judge: Discriminator | None
    limits: ScoreRange | None
    _real: dict[tuple[str, ...], float] = field(default_factory=dict)  # scores of parents

    def scores(self, candidates: Sequence[Candidate]) -> list[float]:
        """Return a score for each; `inf` for a candidate that certainly lies above the range."""
        if self.judge is None:
            return [0.0] * len(candidates)
        sentences = [candidate.sentence for candidate in candidates]
        parents = [candidate.parent.id for candidate in candidates]
        scores = self.judge.scores(sentences, parents, self._above(candidates))
        return [float(score) for score in scores]

    def keeps(self, candidate: Candidate, score: float) -> bool:
        """Return whether the score lies in the range."""
        if self.limits is None:
            return True
        if self.limits.relative:
            score = growth(score, self._real[candidate.parent.tokens], candidate.share * self._unit)
        return self.limits.holds(score)

    @property
    def _unit(self) -> float:
        """One nat in the logarithm of a score: factors are of probabilities, whatever the base."""
        return math.log(2) if self.judge is not None and str(self.judge.base) == "2" else 1.0

    def _above(self, candidates: Sequence[Candidate]) -> float | NDArray[np.float64]:
        """Return the highest score that can be kept, for all candidates or for each."""
        if self.limits is None or not self.limits.relative or self.judge is None:
            return math.inf if self.limits is None else self.limits.high
        parents = {
            candidate.parent.tokens: candidate.parent
            for candidate in candidates
            if candidate.parent.tokens not in self._real
        }
        scores = self.judge.scores(list(parents.values())).tolist()
        self._real.update(zip(parents, scores, strict=True))
        # the slack is for rounding, which must not drop what the range holds
        highest = self._unit * math.log(self.limits.high) * (1 + 1e-9)
        return np.array(
            [
                self._real[candidate.parent.tokens] * math.exp(min(700, candidate.share * highest))
                for candidate in candidates
            ]
        )


class Acceptance:
    """The sentences accepted so far, up to n, each parent of them used at most `cap` times."""

    def __init__(
        self, n: int, cap: int, judging: Judging, seen: set[tuple[str, ...]], trace: bool
    ) -> None:
        self.n, self.cap, self.judging, self.trace = n, cap, judging, trace
        self.uses: Counter[int] = Counter()
        self.counts: Counter[str] = Counter()
        self._seen = seen
        self._outputs: list[Augmented] = []
        self._rejected: list[Augmented] = []

    @property
    def missing(self) -> int:
        """How many sentences are still to be accepted."""
        return self.n - len(self._outputs)

    def take(self, candidates: Sequence[Candidate]) -> None:
        """Score the candidates that are legal and new, and keep the good ones until there are n."""
        legal = [candidate for candidate in candidates if candidate.legal]
        new = [candidate for candidate in legal if candidate.sentence.tokens not in self._seen]
        self.counts["illegal tags"] += len(candidates) - len(legal)
        self.counts["repeated"] += len(legal) - len(new)
        for candidate, score in zip(new, self.judging.scores(new), strict=True):
            if not self.missing:
                break
            self.counts["scored"] += 1
            lineage = candidate.lineage
            if self.judging.judge is not None:
                lineage = replace(lineage, score=score, base=str(self.judging.judge.base))
            if not self.judging.keeps(candidate, score):
                self.counts["out of range"] += 1
                if self.trace:
                    self._rejected.append(Augmented(candidate.sentence, lineage, kept=False))
            elif candidate.sentence.tokens in self._seen:
                self.counts["repeated"] += 1
            elif max(self.uses[place] for place in candidate.places) >= self.cap:
                self.counts["parent used up"] += 1
            else:
                self._seen.add(candidate.sentence.tokens)
                self.uses.update(candidate.places)
                self._outputs.append(Augmented(candidate.sentence, lineage))

    def augmentation(self) -> Augmentation:
        """Return what was accepted, with a reason if it is fewer than n."""
        reason = None
        if self.missing:
            counts = ", ".join(f"{n} {what}" for what, n in sorted(self.counts.items()))
            remedy = "loosen density, score range or max_uses for more"
            reason = f"no pair is left ({counts or 'none to begin with'}); {remedy}"
        outputs, rejected = tuple(self._outputs), tuple(self._rejected)
        return Augmentation(outputs, self.n, reason, rejected, dict(self.counts))


def growth(score: float, parent: float, share: float) -> float:
    """Return how many times less probable each new word made its parent.

    That is (score / parent)^(1 / share), with the share of words that are new.

    >>> round(growth(400.0, 100.0, 0.25))
    256
    """
    if math.isinf(score):
        return math.inf
    tiny = 1e-300
    return math.exp(min(700.0, (math.log(max(score, tiny)) - math.log(max(parent, tiny))) / share))
