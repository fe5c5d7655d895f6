"""Score blocks of sentences by a query policy, and keep the best of all blocks.

Scores are those a loop would compute. The policy must score each sentence by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.protocols import Score, Tagger
from seqmix.query.spec import top
from seqmix.scale.local_executor import Emit
from seqmix.scale.shards import Unit
from seqmix.scale.sources import blocks


class Scored(NamedTuple):
    """A sentence and its score."""

    score: float
    id: str
    tokens: tuple[str, ...]


class Best:
    """The `top` highest scores so far, best first; ties go to the lower id."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.kept: list[Scored] = []

    def take(self, new: Iterable[Scored]) -> list[Scored]:
        """Add new sentences and return those of them that are kept, in order."""
        if len(self.kept) == self.top:
            last = _rank(self.kept[-1])
            new = [scored for scored in new if _rank(scored) < last]
        else:
            new = list(new)
        if not new:
            return []
        self.kept = sorted(self.kept + new, key=_rank)[: self.top]
        last = _rank(self.kept[-1])
        return sorted((scored for scored in new if _rank(scored) <= last), key=_rank)


def _rank(scored: Scored) -> tuple[float, str]:
    return -scored.score, scored.id


@dataclass(frozen=True)
class Scorer:
    """How to score sentences; `load` returns the tagger, or a committee, once per worker."""

    score: Score
    load: Callable[[], Sequence[Tagger]]
    top: int
    seed: int = 0

    def scores(self, block: Sequence[Sentence], taggers: Sequence[Tagger]) -> list[Scored]:
        """Score each sentence of a block.

        Generators start again with each block, so that scores do not depend on the order in which
        a worker comes to its blocks.
        """
        pool = Pool({sentence.id: sentence for sentence in block})
        if len(pool.unlabeled) != len(block):
            raise DataError(
                "two sentences of one block have the same id; "
                "seqmix rank --pool FOLDER --read ids=content uses digests as ids"
            )
        view = TaggerView(pool, taggers[0], lambda: taggers, {}, np.random.default_rng(self.seed))
        scores = top(self.score(view), len(block), np.random.default_rng(self.seed))
        return [Scored(scores[sentence.id], sentence.id, sentence.tokens) for sentence in block]


@dataclass(frozen=True)
class UnitResult:
    """The result of one unit: how many sentences it has, and those that may be among the best."""

    seen: int
    best: tuple[Scored, ...]


class WorkerState:
    """The taggers of a worker, loaded once, and its best so far.

    Results leave out what is worse than the best it returned before, so they stay small.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._taggers = scorer.load()
        self._best = Best(scorer.top)

    def score(self, unit: Unit) -> UnitResult:
        """Score the sentences of a unit, block by block."""
        seen, best = 0, Best(self.scorer.top)
        for block in blocks(unit):
            seen += len(block)
            best.take(self._best.take(self.scorer.scores(block, self._taggers)))
        return UnitResult(seen, tuple(best.kept))


def score_unit(scorer: Scorer, unit: Unit, emit: Emit) -> UnitResult:
    """Score a unit in a worker process, which has one scorer only."""
    return _worker_state(scorer).score(unit)


@lru_cache(maxsize=1)
def _worker_state(scorer: Scorer) -> WorkerState:
    return WorkerState(scorer)
