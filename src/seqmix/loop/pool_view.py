"""What a policy sees of the pool: the tagger's opinions, streamed, each computed only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.pool import Pool
from seqmix.protocols import Measure, Probs, Tagger


class TaggerView:
    """A `PoolView` over a pool and a trained tagger. `committee` trains the members of the committee when votes are asked for."""

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
            raise ValueError("a view needs a tagger that knows its tag set")
        self.tag_set: TagSet = tagger.tag_set

    def sentences(self) -> Iterator[Sentence]:
        """The unlabeled sentences."""
        return iter(self._pool.unlabeled.values())

    def probs(self) -> Iterator[tuple[str, Probs]]:
        """p(tag | token)."""
        return zip(self._pool.unlabeled, self._tagger.probabilities(self.sentences()), strict=True)

    def unsure(self, measure: Measure) -> Iterator[tuple[str, float]]:
        """How unsure the tagger is."""
        return zip(
            self._pool.unlabeled, self._tagger.unsure(self.sentences(), measure), strict=True
        )

    def paths(self, legal: bool = True) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """The best path of each sentence with its probability."""
        for id, paths in zip(
            self._pool.unlabeled,
            self._tagger.best_paths(self.sentences(), legal=legal),
            strict=True,
        ):
            yield id, paths[0].tags, paths[0].probability

    def embeddings(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """The mean hidden state of each sentence."""
        for id, states in zip(
            self._pool.unlabeled, self._tagger.embeddings(self.sentences()), strict=True
        ):
            yield id, states.mean(axis=0)

    def labeled_embeddings(self) -> NDArray[np.float32]:
        """The same for what is labeled."""
        states = self._tagger.embeddings(s for s in self._pool.labeled.values() if len(s))
        return np.stack([own.mean(axis=0) for own in states])

    def votes(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """What each member of the committee says: its most probable tag of each token."""
        if self._members is None:
            self._members = self._committee()
        for id, *members in zip(
            self._pool.unlabeled,
            *(member.probabilities(self.sentences()) for member in self._members),
            strict=True,
        ):
            yield id, np.stack([probs.argmax(axis=1) for probs in members])

    def dropped(self, passes: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """p(tag | token) under dropout in the head."""
        return zip(
            self._pool.unlabeled,
            self._tagger.dropped(self.sentences(), passes, self.rng),
            strict=True,
        )

    def history(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """The best tags of earlier rounds."""
        return self._history
