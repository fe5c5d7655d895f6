"""Taggings of a sentence: from arrays of tag ids to tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.tagger.windows import chunks


@dataclass(frozen=True)
class Path:
    """One way to tag a sentence, and how probable the tagger finds it."""

    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...] = ()  # the probability of each token's tag, on request


def paths_of(
    best: NDArray[np.int64],
    probabilities: NDArray[np.float64],
    exists: NDArray[np.bool_],
    sentences: Sequence[Sentence],
    tag_set: TagSet,
    by_token: NDArray[np.floating] | None = None,
) -> list[list[Path]]:
    """Return the paths of each sentence, best first.

    Args:
        best: Tag ids [n_sentences, n, longest]; behind a sentence's end anything.
        probabilities: [n_sentences, n].
        exists: Which of the n there are.
        sentences: The sentences of the batch.
        tag_set: What the ids mean.
        by_token: p(tag | token) of all words, flat [n_words, n_tags].
    """
    rows: list[list[list[float]]] = [[] for _ in sentences]
    if by_token is not None:
        ends = np.cumsum([len(sentence) for sentence in sentences])[:-1]
        rows = [part.tolist() for part in np.split(by_token, ends)]
    lists = (array.tolist() for array in (best, probabilities, exists))
    return [
        [
            Path(
                tuple(tag_set.tags[i] for i in path[: len(sentence)]),
                probability,
                # Not strict, since a path is padded behind the sentence's end.
                tuple(row[i] for row, i in zip(by_word, path, strict=False)),
            )
            for path, probability, real in zip(*parts, strict=True)
            if real
        ]
        for sentence, by_word, *parts in zip(sentences, rows, *lists, strict=True)
    ]


def best_tagged(
    sentences: Iterable[Sentence], best_paths: Callable[[list[Sentence]], Iterable[list[Path]]]
) -> Iterator[Sentence]:
    """Yield the sentences with the tags of their best paths."""
    for chunk in chunks(sentences):
        for sentence, paths in zip(chunk, best_paths(chunk), strict=True):
            yield sentence.with_tags(paths[0].tags)
