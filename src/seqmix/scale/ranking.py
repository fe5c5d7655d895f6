"""Score a block of sentences by a query policy, and keep the best of all blocks seen.

The policy is the loop's own, looking at a view of one block, so a pool of any size gets the scores a loop would give. That needs a policy
whose score of a sentence hangs on nothing but the sentence and the tagger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.protocols import Score, Tagger
from seqmix.query.spec import top
from seqmix.scale.shards import Unit
from seqmix.scale.sources import blocks


class Scored(NamedTuple):
    """A sentence and its score."""

    score: float
    id: str
    tokens: tuple[str, ...]


class Best:
    """The `top` highest scores so far, best first; ties go to the lower id, so the order they came in leaves no trace."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.kept: list[Scored] = []

    def take(self, new: Iterable[Scored]) -> list[Scored]:
        """Add what is good enough; those of the new that are kept, in order."""
        if len(self.kept) == self.top:
            last = _rank(self.kept[-1])
            new = [one for one in new if _rank(one) < last]
        else:
            new = list(new)
        if not new:
            return []
        self.kept = sorted(self.kept + new, key=_rank)[: self.top]
        last = _rank(self.kept[-1])
        return sorted((one for one in new if _rank(one) <= last), key=_rank)


def _rank(one: Scored) -> tuple[float, str]:
    return -one.score, one.id


@dataclass(frozen=True)
class Scorer:
    """What is asked of every sentence. `load` is called once in each worker: the tagger, or a committee, the first of which speaks."""

    score: Score
    load: Callable[[], Sequence[Tagger]]
    top: int
    seed: int = 0

    def scores(self, block: Sequence[Sentence], taggers: Sequence[Tagger]) -> list[Scored]:
        """One a sentence. subtle: generators start anew for each block, so that dropout masks and lots are the same in all of them."""
        pool = Pool({sentence.id: sentence for sentence in block})
        if len(pool.unlabeled) != len(block):
            raise DataError(
                "two sentences of one block have the same id; seqmix rank --pool FOLDER --read ids=content gives each its own"
            )
        view = TaggerView(pool, taggers[0], lambda: taggers, {}, np.random.default_rng(self.seed))
        scores = top(self.score(view), len(block), np.random.default_rng(self.seed))
        return [Scored(scores[sentence.id], sentence.id, sentence.tokens) for sentence in block]


@dataclass(frozen=True)
class Part:
    """What a worker gives for one unit: how many sentences it saw, and those that may be among the best."""

    seen: int
    best: tuple[Scored, ...]


class WorkerState:
    """One worker's place: the taggers, loaded once, and its own best so far.

    What it gives for a unit leaves out what is worse than the best it gave before, so little goes over the wire however large the pool.
    """

    def __init__(self, scorer: Scorer) -> None:
        self.scorer = scorer
        self._taggers = scorer.load()
        self._best = Best(scorer.top)

    def score(self, unit: Unit) -> Part:
        """The sentences of a unit, block by block."""
        seen, good = 0, Best(self.scorer.top)
        for block in blocks(unit):
            seen += len(block)
            good.take(self._best.take(self.scorer.scores(block, self._taggers)))
        return Part(seen, tuple(good.kept))


def score_unit(scorer: Scorer, unit: Unit, tell: Callable[[object], None]) -> Part:
    """What a worker process does; it has done nothing else before and is given one scorer only."""
    return _worker_state(scorer).score(unit)


@lru_cache(maxsize=1)
def _worker_state(scorer: Scorer) -> WorkerState:
    return WorkerState(scorer)


def from_folders(
    folders: Sequence[Path], device: str | None, int8: bool = False
) -> Callable[[], Sequence[Tagger]]:
    """A way to load taggers that can be sent to a worker."""
    return partial(_load, tuple(str(folder.absolute()) for folder in folders), device, int8)


def _load(folders: Sequence[str], device: str | None, int8: bool) -> list[Tagger]:
    from seqmix.tagger import Tagger as Trained  # here, since it loads torch

    taggers = [Trained.load(folder, device) for folder in folders]
    return [tagger.int8() for tagger in taggers] if int8 else list(taggers)
