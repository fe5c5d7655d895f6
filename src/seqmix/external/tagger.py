"""What the taggers of other libraries have in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import tee
from typing import NoReturn, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from seqmix.data.inputs import Text, as_sentences, entities_in
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Entity
from seqmix.data.tagset import TagSet
from seqmix.errors import ModelError, TagError
from seqmix.external.names import ExternalName
from seqmix.protocols import Measure, Probs
from seqmix.query.uncertainty import least_confidence_sum, margin, token_entropy

_MEASURES = {"entropy": token_entropy, "least": least_confidence_sum, "margin": margin}


@dataclass(frozen=True)
class ExternalPath:
    """The tags of a sentence, their joint probability, and that of each."""

    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...] = ()


class Reader(Protocol):
    """A model that reads sentences."""

    tag_set: TagSet
    counts: Counter[str]  # what did not fit

    def read(self, sentences: Iterable[Sentence]) -> Iterator[tuple[tuple[str, ...], Probs]]:
        """Yield the tags of each sentence and p(tag | token) [n_tokens, n_tags]."""
        ...


class ExternalTagger:
    """A tagger that asks a model from another library; it cannot be trained or saved."""

    def __init__(self, name: ExternalName, reader: Reader) -> None:
        self.name, self._reader = name, reader
        self.tag_set: TagSet | None = reader.tag_set

    def __repr__(self) -> str:
        return f"ExternalTagger({self.name}: {', '.join(self.labels)})"

    @overload
    def __call__(self, text: str | Sentence) -> list[Entity]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, text: Iterable[Text]) -> list[list[Entity]]: ...
    def __call__(self, text: str | Sentence | Iterable[Text]) -> list[Entity] | list[list[Entity]]:
        """Return the entities of a text, or of each of many, with offsets and probabilities."""
        return entities_in(text, self.best_paths)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its entities."""
        return self._reader.tag_set.types

    @property
    def counts(self) -> Counter[str]:
        """How many of the model's spans did not fit, by reason."""
        return self._reader.counts

    def probabilities(self, sentences: Iterable[Text]) -> Iterator[Probs]:
        """Yield p(tag | token) for each sentence [n_tokens, n_tags]."""
        return (probs for _, probs in self._reader.read(as_sentences(sentences)))

    def unsure(self, sentences: Iterable[Text], measure: Measure) -> Iterator[float]:
        """Yield how unsure the model is of each sentence."""
        for probs in self.probabilities(sentences):
            yield _MEASURES[measure](probs) if len(probs) else 0.0

    def best_paths(
        self, sentences: Iterable[Text], n: int = 1, legal: bool = True, by_token: bool = False
    ) -> Iterator[list[ExternalPath]]:
        """Yield the tags that the model gives each sentence: one path, whatever `n` is."""
        ids = {tag: i for i, tag in enumerate(self._reader.tag_set.tags)}
        for tags, probs in self._reader.read(as_sentences(sentences)):
            each = tuple(float(probs[at, ids[tag]]) for at, tag in enumerate(tags))
            yield [ExternalPath(tags, math.prod(each), each if by_token else ())]

    def predict(self, sentences: Iterable[Text]) -> Iterator[Sentence]:
        """Yield the sentences with the model's tags."""
        ahead, behind = tee(as_sentences(sentences))
        for sentence, (tags, _) in zip(behind, self._reader.read(ahead), strict=True):
            yield sentence.with_tags(tags)

    def embeddings(self, sentences: Iterable[Sentence]) -> NoReturn:
        """Refuse: other libraries do not show what their models compute inside."""
        raise ModelError(f"{self.name} has no embeddings for this policy; choose nte, mnlp or lc")

    def dropped(
        self, sentences: Iterable[Sentence], passes: int, rng: np.random.Generator
    ) -> Iterator[NDArray[np.float32]]:
        """Refuse, for the same reason."""
        self.embeddings(sentences)

    def save(self, folder: object) -> None:
        """Refuse: the model stays where it is."""
        raise ModelError(f"{self.name} is another library's model and cannot be saved; name it")


def bio_tags(name: ExternalName, types: Iterable[str]) -> TagSet:
    """Return the tag set of the model's types under the project's names."""
    renamed = {ours for theirs in types if (ours := name.renamed(theirs)) is not None}
    if not renamed:
        raise TagError(
            f"{name} has none of the types that it maps; its types are "
            f"{', '.join(sorted(set(types))) or 'none'}"
        )
    return TagSet.of_types(renamed)
