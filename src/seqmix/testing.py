"""A tagger for testing code that drives taggers: it needs no torch and trains in no time."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqmix.data.scheme import legal_moves
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import DataError, ModelError
from seqmix.protocols import Measure, Probs
from seqmix.query.uncertainty import least_confidence_sum, margin, token_entropy

Counts = Mapping[str, Mapping[str, float]]  # by word, then by tag
_FILE = "words.json"
_MEASURES: dict[Measure, Callable[[Probs], float]] = {
    "entropy": token_entropy,
    "least": least_confidence_sum,
    "margin": margin,
}


@dataclass(frozen=True)
class WordPath:
    """One way to tag a sentence: its tags, its probability and, on request, that of each tag."""

    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...] = ()


class WordTagger:
    """A tagger that counts which tags each word has, whatever its context.

    p(tag | word) is proportional to 1 + `weight` * count(word, tag); override `odds` to change it.

    >>> tagger = WordTagger().fit([Sentence("1", ("Lena", "left"), ("B-PER", "O"))])
    >>> next(tagger.predict([Sentence("2", ("Lena", "left", "Oslo"))])).tags
    ('B-PER', 'O', 'O')
    """

    def __init__(
        self, tag_set: TagSet | None = None, counts: Counts | None = None, weight: float = 9.0
    ) -> None:
        self.tag_set = tag_set
        self.counts = {word: dict(tags) for word, tags in (counts or {}).items()}
        self.weight = weight
        self.draw = 0  # one number from the generator of the last fit: other seeds, other files

    def fit(
        self,
        sentences: Iterable[Sentence],
        rng: np.random.Generator | None = None,
        tag_set: TagSet | None = None,
        warm: bool = False,
    ) -> WordTagger:
        """Count the tags of labeled sentences, on top of what is counted already if `warm`."""
        labeled = [sentence for sentence in sentences if sentence.labeled]
        if not labeled:
            raise DataError("there is no labeled sentence to train on")
        self.tag_set = tag_set or self.tag_set or TagSet.of(labeled)
        counts = {word: Counter(tags) for word, tags in self.counts.items()} if warm else {}
        for sentence in labeled:
            for word, row in zip(sentence.tokens, sentence.tags, strict=True):
                weights = {row: 1.0} if isinstance(row, str) else dict(row or {})
                counts.setdefault(word, Counter()).update(weights)
        self.counts = {word: dict(tags) for word, tags in counts.items()}
        self.draw = 0 if rng is None else int(rng.integers(1000))
        return self

    def start(self, tag_set: TagSet, rng: np.random.Generator | None = None) -> WordTagger:
        """Forget every word and know only which tags there are."""
        self.tag_set, self.counts = tag_set, {}
        return self

    def twin(self) -> WordTagger:
        """Return a copy whose training leaves this tagger as it is."""
        return copy(self)  # fit replaces the counts and never changes them in place

    def odds(self, word: str) -> Sequence[float]:
        """Return one positive number per tag, proportional to p(tag | word)."""
        counts = self.counts.get(word, {})
        return [1 + self.weight * counts.get(tag, 0.0) for tag in self._known().tags]

    def probabilities(self, sentences: Iterable[Sentence]) -> Iterator[Probs]:
        """Yield p(tag | token) of each sentence [n_tokens, n_tags]."""
        n_tags = len(self._known())
        for sentence in sentences:
            rows = np.array([self.odds(word) for word in sentence.tokens], dtype=np.float64)
            rows = rows.reshape(-1, n_tags)
            yield (rows / rows.sum(axis=1, keepdims=True)).astype(np.float32)

    def unsure(self, sentences: Iterable[Sentence], measure: Measure) -> Iterator[float]:
        """Yield one number per sentence, higher where the tagger is less sure."""
        for probs in self.probabilities(sentences):
            yield _MEASURES[measure](probs) if len(probs) else 0.0

    def best_paths(
        self, sentences: Iterable[Sentence], n: int = 1, legal: bool = True, by_token: bool = False
    ) -> Iterator[list[WordPath]]:
        """Yield the n most probable ways to tag each sentence, only BIO ones if `legal`."""
        tag_set = self._known()
        start, moves, end = (mask | (not legal) for mask in legal_moves(tag_set))
        for probs in self.probabilities(sentences):
            paths = []
            for probability, ids in _best(probs, n, start, moves, end):
                each = tuple(float(probs[at, id]) for at, id in enumerate(ids)) if by_token else ()
                paths.append(WordPath(tuple(tag_set.tags[id] for id in ids), probability, each))
            yield paths

    def predict(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield the sentences with their most probable legal tags."""
        for sentence in sentences:
            yield sentence.with_tags(next(self.best_paths([sentence]))[0].tags)

    def embeddings(self, sentences: Iterable[Sentence]) -> Iterator[NDArray[np.float32]]:
        """Yield two numbers per token, computed from its letters [n_tokens, 2]."""
        for sentence in sentences:
            rows = [[len(word), sum(map(ord, word)) % 17] for word in sentence.tokens]
            yield np.array(rows, dtype=np.float32).reshape(-1, 2)

    def dropped(
        self, sentences: Iterable[Sentence], passes: int, rng: np.random.Generator
    ) -> Iterator[NDArray[np.float32]]:
        """Yield p(tag | token) made flatter or steeper at random [passes, n_tokens, n_tags]."""
        powers = rng.uniform(0.5, 1.5, size=(passes, 1, 1))
        for probs in self.probabilities(sentences):
            odds = probs[None] ** powers
            yield (odds / odds.sum(axis=2, keepdims=True)).astype(np.float32)

    def save(self, folder: FilePath | str) -> None:
        """Write the tags and counts as one JSON file."""
        FilePath(folder).mkdir(parents=True, exist_ok=True)
        state = {"tags": self._known().tags, "counts": self.counts, "weight": self.weight}
        text = json.dumps({**state, "draw": self.draw}, ensure_ascii=False)
        (FilePath(folder) / _FILE).write_text(text, encoding="utf-8")

    @classmethod
    def load(cls, folder: FilePath | str) -> WordTagger:
        """Return a tagger that `save` wrote."""
        state: dict[str, Any] = json.loads((FilePath(folder) / _FILE).read_text(encoding="utf-8"))
        tagger = cls(TagSet(tuple(state["tags"])), state["counts"], state["weight"])
        tagger.draw = state["draw"]
        return tagger

    def _known(self) -> TagSet:
        if self.tag_set is None:
            raise ModelError("this tagger is not trained yet; call fit first, or load one")
        return self.tag_set


def _best(
    probs: Probs,
    n: int,
    start: NDArray[np.bool_],
    moves: NDArray[np.bool_],
    end: NDArray[np.bool_],
) -> list[tuple[float, list[int]]]:
    """Return the n most probable allowed paths as (probability, tag ids); ties go to lower ids."""
    ids = probs.argmax(axis=1)
    allowed = not len(ids) or (start[ids[0]] and moves[ids[:-1], ids[1:]].all() and end[ids[-1]])
    if n == 1 and allowed:
        return [(float(probs.max(axis=1).prod()), ids.tolist())]
    paths: list[tuple[float, list[int]]] = [(0.0, [])]  # with -log p, so that the best sort first
    for row in probs.tolist():
        by_last: dict[int, list[tuple[float, list[int]]]] = {}
        for cost, path in paths:
            follows = moves[path[-1]] if path else start
            for id, p in enumerate(row):
                if p > 0 and follows[id]:
                    by_last.setdefault(id, []).append((cost - math.log(p), [*path, id]))
        paths = [path for same in by_last.values() for path in sorted(same)[:n]]
    complete = [(cost, path) for cost, path in paths if not path or end[path[-1]]]
    return [(math.exp(-cost), path) for cost, path in sorted(complete)[:n]]
