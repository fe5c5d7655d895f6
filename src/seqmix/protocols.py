"""What each part asks of the next."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from seqmix.data.augmented import Augmentation
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet

Probs = NDArray[np.float32]  # [n_tokens, n_tags]
Measure = Literal["entropy", "least", "margin"]  # as `seqmix.query.uncertainty` defines them


class Path(Protocol):
    """One way to tag a sentence."""

    @property
    def tags(self) -> tuple[str, ...]: ...
    @property
    def probability(self) -> float: ...


class Tagger(Protocol):
    """A trained tagger; everything streams."""

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
    """What a policy may look at: unlabeled sentences, and what the tagger predicts for them.

    Everything streams and is computed when asked for; all pairs come for the same ids in one order.
    """

    tag_set: TagSet
    rng: np.random.Generator  # of this query

    def sentences(self) -> Iterator[Sentence]:
        """Yield the unlabeled sentences: duplicates once, no empty ones."""
        ...

    def probs(self) -> Iterator[tuple[str, Probs]]:
        """Yield p(tag | token) of each sentence [n_tokens, n_tags]."""
        ...

    def unsure(self, measure: Measure) -> Iterator[tuple[str, float]]:
        """Yield one number per sentence, so that scores and not probabilities leave the GPU."""
        ...

    def paths(self, legal: bool = True) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """Yield each sentence's most probable path, of BIO ones if `legal`, and its probability."""
        ...

    def embeddings(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield one vector per sentence [width]: the mean of its tokens' hidden states."""
        ...

    def labeled_embeddings(self) -> NDArray[np.float32]:
        """Return the same for the labeled sentences [n, width]."""
        ...

    def labeled_tags(self) -> Mapping[str, int]:
        """Return how many tokens of the labeled sentences have each tag."""
        ...

    def votes(self) -> Iterator[tuple[str, NDArray[np.int64]]]:
        """Yield the tag ids that the members of the committee predict [n_members, n_tokens]."""
        ...

    def dropped(self, passes: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield p(tag | token) under dropout masks in the head [passes, n_tokens, n_tags]."""
        ...

    def history(self) -> Mapping[str, Sequence[Sequence[str]]]:
        """Return the tags predicted in the last few rounds by sentence id, oldest first."""
        ...


Score = Callable[[PoolView], Iterator[tuple[str, float]]]  # higher is asked sooner
Selector = Callable[[PoolView, int, np.random.Generator], Mapping[str, float] | Sequence[str]]


class Augmenter(Protocol):
    """Generates labeled sentences from labeled ones; it never sees a tagger."""

    def augment(
        self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
    ) -> Augmentation:
        """Return up to n new sentences with their lineage; fewer come with a reason."""
        ...


class Discriminator(Protocol):
    """Scores sentences; a range of scores decides which are accepted."""

    base: Any

    def scores(
        self,
        sentences: Sequence[Sentence],
        parents: Sequence[str] | None = None,
        above: float | NDArray[np.float64] = ...,
    ) -> NDArray[np.float64]:
        """Return one number per sentence, or `inf` where it is sure to exceed `above`."""
        ...
