"""What a policy is: a score for each sentence or a selection from the pool, and what it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from heapq import nlargest
from typing import Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from seqmix.errors import ConfigError, ModelError
from seqmix.protocols import PoolView, Probs, Score, Selector

Need = Literal["crf", "committee", "history", "labels"]
TokenScore = Callable[[Probs], NDArray[np.float64]]  # [n_tokens, n_tags] -> [n_tokens]


@dataclass(frozen=True)
class PolicySpec:
    """A query policy: either a score, of which the highest are asked, or a selector.

    PolicySpec(lambda view: ((s.id, len(s)) for s in view.sentences()))  # the longest first

    Args:
        score: A function (view) -> pairs of (id, score); the highest scores are asked first.
        selector: A function (view, n, rng) -> ids, or scores by id, of what to ask together.
        needs: What it cannot do without: a tagger with a CRF head (`crf`), a `committee`, the
            predictions of earlier rounds (`history`), or the `labels` so far.
        most: How many sentences it can put in order in reasonable time; None means a whole pool.
        tokens: How it scores each token by p(tag | token), to ask for a part of a sentence; None
            where it does not.
    """

    score: Score | None = None
    selector: Selector | None = None
    needs: frozenset[Need] = frozenset()
    most: int | None = None
    tokens: TokenScore | None = None

    def __post_init__(self) -> None:
        if (self.score is None) == (self.selector is None):
            raise ConfigError("a policy must have a score or a selector, and not both")
        if not callable(policy := self.score or self.selector):
            raise ConfigError(
                f"a policy is a function; got {policy!r}; policies by name are in seqmix.POLICIES, "
                'and ActiveLearner(policy="nte") takes the name'
            )

    @property
    def alone(self) -> bool:
        """Whether it scores each sentence by itself, from the tagger alone."""
        return self.score is not None and self.needs.isdisjoint({"history", "labels"})

    def choose(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Return the scores of the n sentences to ask for by id, best first."""
        if self.score is not None:
            return top(self.score(view), n, rng)
        assert self.selector is not None
        chosen = self.selector(view, n, rng)
        if not isinstance(chosen, Mapping):  # plain ids: their order is all that is known
            chosen = {id: -float(place) for place, id in enumerate(dict.fromkeys(chosen))}
        return dict(list(chosen.items())[: max(n, 0)])


Policy = str | PolicySpec | Selector  # a name in `POLICIES`, one that is not there, or a function


def top(scored: Iterable[tuple[str, float]], n: int, rng: Generator) -> dict[str, float]:
    """Return the n highest scores by id, best first, in one pass over the pool.

    The generator breaks ties, the same way in whatever order the pool comes.
    """
    lot = lots(rng)
    best = nlargest(n, ((_number(id, score), lot(id), id) for id, score in scored))
    return {id: score for score, _, id in best}


def lots(rng: Generator) -> Callable[[str], float]:
    """Return a function that draws a number in [0, 1) for an id, whenever the id comes."""
    key = rng.bytes(16)

    def lot(id: str) -> float:
        digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
        return (int.from_bytes(digest, "big") >> 11) * 2.0**-53

    return lot


def _number(id: str, score: float) -> float:
    if math.isnan(score):
        raise ModelError(
            f"the score of sentence {id!r} is not a number, so the tagger's weights have "
            "diverged; train it with a lower lr"
        )
    return score
