"""What each part asks of the next, on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seqmix.data.augmented import Augmentation
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet

Probs = NDArray[np.float32]  # [n_tokens, n_tags]
Measure = Literal[
    "entropy", "least", "margin"
]  # how unsure of a sentence, as `seqmix.query.uncertainty` defines them


class Path(Protocol):
    """One way to tag a sentence."""

    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def probability(self) -> float: ...


class Tagger(Protocol):
    """What the loop asks of a trained tagger; everything streams."""

    tag_set: TagSet | None

    def probabilities(self, sentences: Iterable[Sentence]) -> Iterator[Probs]: ...
    def unsure(self, sentences: Iterable[Sentence], measure: Measure) -> Iterator[float]: ...
    def best_paths(
        self, sentences: Iterable[Sentence], n: int = 1, legal: bool = True
    ) -> Iterator[Sequence[Path]]: ...
    def predict(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]: ...
    def embeddings(self, sentences: Iterable[Sentence]) -> Iterator[NDArray[np.float32]]: ...
    def dropped(
        self, sentences: Iterable[Sentence], passes: int, rng: np.random.Generator
    ) -> Iterator[NDArray[np.float32]]: ...
    def save(self, folder: Any) -> None: ...


@runtime_checkable
class Trainable(Protocol):
    """A tagger that can be copied and trained."""

    tag_set: TagSet | None

    def twin(self) -> Trainable: ...
    def fit(
        self,
        sentences: Sequence[Sentence],
        rng: np.random.Generator,
        tag_set: TagSet | None = None,
        warm: bool = False,
    ) -> Tagger: ...


class PoolView(Protocol):
    """What a policy may look at: unlabeled sentences by id, and what the tagger makes of them, computed lazily and in a stream.

    Every method that gives pairs gives them for the same ids in the same order; nothing is held but what the caller holds.
    """

    tag_set: TagSet
    rng: np.random.Generator  # of this query

    def sentences(self) -> Iterator[Sentence]:
        """The unlabeled sentences: duplicates once, no empty ones."""
        ...

    def probs(self) -> Iterator[tuple[str, Probs]]:
        """p(tag | token) of each sentence."""
        ...

    def unsure(self, measure: Measure) -> Iterator[tuple[str, float]]:
        """One number a sentence made of its p(tag | token), so that a pool's scores leave the GPU and not its probabilities."""
        ...

    def paths(self, legal: bool = True) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """The most probable tags of each sentence and the probability of the whole path; `legal`: of those that are BIO."""
        ...

    def embeddings(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """One vector a sentence [width]: the mean of its tokens' hidden states."""
        ...

    def labeled_embeddings(self) -> NDArray[np.float32]:
        """The same for the sentences already labeled [n, width]."""
        ...

    def votes(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """The tag ids each member of the committee gives [n_members, n_tokens]."""
        ...

    def dropped(self, passes: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """p(tag | token) under several dropout masks in the head [passes, n_tokens, n_tags]."""
        ...

    def history(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """The best tags of earlier rounds by sentence id, oldest first; at most the last few are kept."""
        ...


Score = Callable[[PoolView], Iterator[tuple[str, float]]]  # higher is asked sooner
Selector = Callable[[PoolView, int, np.random.Generator], Mapping[str, float] | Sequence[str]]


class Augmenter(Protocol):
    """Makes up to n new labeled sentences from labeled ones, each with its lineage. It never sees a tagger."""

    def augment(
        self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
    ) -> Augmentation:
        """Fewer than n come only with a reason."""
        ...


class Discriminator(Protocol):
    """Scores sentences; accepting is a range test beside it."""

    base: Any

    def scores(
        self,
        sentences: Sequence[Sentence],
        parents: Sequence[str] | None = None,
        above: float | NDArray[np.float64] = ...,
    ) -> NDArray[np.float64]:
        """One number a sentence; `inf` for one that is proven to lie above `above`: one number for all, or one for each."""
        ...
