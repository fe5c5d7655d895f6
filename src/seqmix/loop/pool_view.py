"""What a policy sees of a pool: the tagger's predictions, computed when asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.pool import Pool
from seqmix.protocols import Measure, Probs, Tagger


class TaggerView:
    """A `PoolView` of a pool and a trained tagger; `committee` trains its members when asked."""

    def __init__(
        self,
        pool: Pool,
        tagger: Tagger,
        committee: Callable[[], Sequence[Tagger]],
        history: Mapping[str, Sequence[Sequence[str]]],
        rng: np.random.Generator,
    ) -> None:
        self._pool, self._tagger, self._committee = pool, tagger, committee
        self._history, self.rng = history, rng
        self._members: Sequence[Tagger] | None = None
        if tagger.tag_set is None:
            raise ValueError("the tagger must be trained, so that it has a tag set")
        self.tag_set: TagSet = tagger.tag_set

    def among(self, ids: Iterable[str]) -> TaggerView:
        """Return the same view of these sentences only."""
        some = Pool({s.id: s for s in self._pool.take(list(ids))}, self._pool.labeled)
        return TaggerView(some, self._tagger, self._committee, self._history, self.rng)

    def sentences(self) -> Iterator[Sentence]:
        """Yield the unlabeled sentences."""
        return iter(self._pool.unlabeled.values())

    def probs(self) -> Iterator[tuple[str, Probs]]:
        """Yield p(tag | token)."""
        return zip(self._pool.unlabeled, self._tagger.probabilities(self.sentences()), strict=True)

    def unsure(self, measure: Measure) -> Iterator[tuple[str, float]]:
        """Yield how unsure the tagger is of each sentence."""
        return zip(
            self._pool.unlabeled, self._tagger.unsure(self.sentences(), measure), strict=True
        )

    def paths(self, legal: bool = True) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Yield the best path of each sentence with its probability."""
        for id, paths in zip(
            self._pool.unlabeled,
            self._tagger.best_paths(self.sentences(), legal=legal),
            strict=True,
        ):
            yield id, paths[0].tags, paths[0].probability

    def embeddings(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield the mean hidden state of each sentence."""
        for id, states in zip(
            self._pool.unlabeled, self._tagger.embeddings(self.sentences()), strict=True
        ):
            yield id, states.mean(axis=0)

    def labeled_embeddings(self) -> NDArray[np.float32]:
        """Return the same for the labeled sentences."""
        states = self._tagger.embeddings(s for s in self._pool.labeled.values() if len(s))
        return np.stack([vectors.mean(axis=0) for vectors in states])

    def labeled_tags(self) -> Mapping[str, int]:
        """Return how many tokens have each tag; soft rows count for their heaviest."""
        rows = (row for s in self._pool.labeled.values() for row in s.hardened().tags)
        return Counter(str(row) for row in rows if row is not None)

    def votes(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield the most probable tag of each token by each member of the committee."""
        if self._members is None:
            self._members = self._committee()
        for id, *members in zip(
            self._pool.unlabeled,
            *(member.probabilities(self.sentences()) for member in self._members),
            strict=True,
        ):
            yield id, np.stack([probs.argmax(axis=1) for probs in members])

    def dropped(self, passes: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield p(tag | token) under dropout in the head."""
        return zip(
            self._pool.unlabeled,
            self._tagger.dropped(self.sentences(), passes, self.rng),
            strict=True,
        )

    def history(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """Return the tags predicted in earlier rounds."""
        return self._history
