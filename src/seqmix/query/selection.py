"""Conditions on what a policy chooses: a token budget, a share of sentences without entities.

A condition shows the policy a part of the pool, so it works with every policy and streams like it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE
from seqmix.errors import ConfigError
from seqmix.protocols import Measure, PoolView, Probs
from seqmix.query.spec import PolicySpec


@dataclass(frozen=True)
class Budget:
    """Take a policy's n best in order, skipping those that do not fit into the tokens left.

    A sentence longer than the whole budget is never a candidate.
    """

    policy: PolicySpec
    tokens: int

    def __post_init__(self) -> None:
        if self.tokens < 1:
            raise ConfigError(f"a budget must be at least 1 token; got {self.tokens}")

    def __call__(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Return the scores of at most n ids, best first."""
        candidates = self.policy.choose(PoolPart(view, self._fits), n, rng)
        lengths = {
            sentence.id: len(sentence) for sentence in view.sentences() if sentence.id in candidates
        }
        return {id: candidates[id] for id in affordable(candidates, lengths, self.tokens)}

    def _fits(self, view: PoolView) -> Iterator[bool]:
        return (len(sentence) <= self.tokens for sentence in view.sentences())


@dataclass(frozen=True)
class WithoutEntity:
    """Keep a share of the n for sentences in which the tagger predicts no entity.

    Otherwise nobody would be asked about what it misses. The policy fills both shares, best first;
    where too few such sentences are left, others take their places.
    """

    policy: PolicySpec
    share: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ConfigError(f"share must lie between 0 and 1; got {self.share}")

    def __call__(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Ask the policy twice: of the whole pool, and of the part without predicted entities."""
        best = self.policy.choose(view, n, rng)
        quota = self.policy.choose(PoolPart(view, _no_entity), round(self.share * n), rng)
        rest = [id for id in best if id not in quota][: max(n - len(quota), 0)]
        scores = {**best, **quota}
        return dict(sorted(((id, scores[id]) for id in (*quota, *rest)), key=lambda pair: -pair[1]))


def affordable(order: Iterable[str], costs: Mapping[str, int], budget: int) -> Iterator[str]:
    """Yield those that fit into what is left of a budget when their turn comes."""
    for id in order:
        if costs[id] <= budget:
            budget -= costs[id]
            yield id


def with_quota(order: Sequence[str], some: Collection[str], share: float) -> list[str]:
    """Return a whole ranking in which at least share · n of any first n are of `some`.

    The order changes no more than needed. A model that misses every name of some kind is sure of
    it, so a policy alone would never show it such a sentence.
    """
    places, placed, seen = {id: place for place, id in enumerate(order)}, list[str](), 0
    scarce, others = (
        deque(id for id in order if id in some),
        deque(id for id in order if id not in some),
    )
    while scarce and others:
        takes = seen < int(share * (len(placed) + 1)) or places[scarce[0]] < places[others[0]]
        placed.append((scarce if takes else others).popleft())
        seen += takes
    return [*placed, *scarce, *others]


def _no_entity(view: PoolView) -> Iterator[bool]:
    return (all(tag == OUTSIDE for tag in tags) for _, tags, _ in view.paths())


class PoolPart:
    """A view of a part of the pool; `keep` says for each sentence, in order, if it is shown."""

    def __init__(self, view: PoolView, keep: Callable[[PoolView], Iterator[bool]]) -> None:
        self.view, self.keep = view, keep
        self.tag_set, self.rng = view.tag_set, view.rng

    def sentences(self) -> Iterator[Sentence]:
        """Yield the sentences that are shown."""
        return compress(self.view.sentences(), self.keep(self.view))

    def probs(self) -> Iterator[tuple[str, Probs]]:
        """See `PoolView`."""
        return compress(self.view.probs(), self.keep(self.view))

    def unsure(self, measure: Measure) -> Iterator[tuple[str, float]]:
        """See `PoolView`."""
        return compress(self.view.unsure(measure), self.keep(self.view))

    def paths(self, legal: bool = True) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """See `PoolView`."""
        return compress(self.view.paths(legal), self.keep(self.view))

    def embeddings(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """See `PoolView`."""
        return compress(self.view.embeddings(), self.keep(self.view))

    def labeled_embeddings(self) -> NDArray[np.float32]:
        """See `PoolView`; this is about the whole pool."""
        return self.view.labeled_embeddings()

    def labeled_tags(self) -> Mapping[str, int]:
        """See `PoolView`; this is about the whole pool."""
        return self.view.labeled_tags()

    def votes(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """See `PoolView`."""
        return compress(self.view.votes(), self.keep(self.view))

    def dropped(self, passes: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """See `PoolView`."""
        return compress(self.view.dropped(passes), self.keep(self.view))

    def history(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """See `PoolView`; this is about the whole pool."""
        return self.view.history()
