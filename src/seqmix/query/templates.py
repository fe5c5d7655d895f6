"""Sentences of one template, kept apart: an answer to the first mostly answers the others.

"Heat the oven to 350 F" and "Heat the oven to 180 C" are of one template: at least half of their
tokens are the same, where digits do not count and capitals are small letters.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import chain

import numpy as np
from numpy.random import Generator

from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.errors import ConfigError
from seqmix.protocols import PoolView
from seqmix.query.spec import PolicySpec

_ALIKE = 0.5  # of the tokens of both
COMPARED = 2000  # sentences; the work grows with the square of them
_NUMBER = re.compile(r"\d+")


def templates(sentences: Sequence[Sentence]) -> dict[str, int]:
    """Return the template of each sentence by id, as the place of the first sentence of it.

    >>> templates([Sentence.from_text(text, text) for text in ("Go to Oslo", "Go to Rome")])
    {'Go to Oslo': 0, 'Go to Rome': 0}
    """
    from scipy.sparse import csr_array  # naming a policy needs no scipy

    places: dict[tuple[str, int], int] = {}
    rows = [[places.setdefault(key, len(places)) for key in _keys(s)] for s in sentences]
    lengths = np.array([len(row) for row in rows])
    columns = np.fromiter(chain.from_iterable(rows), np.int64, count=int(lengths.sum()))
    ends = np.concatenate([[0], lengths.cumsum()])
    table = csr_array(
        (np.ones(len(columns), np.float32), columns, ends), shape=(len(rows), len(places))
    )
    of = np.full(len(rows), -1)
    for at, row in enumerate(table):
        if of[at] < 0:
            shared = (table @ row.toarray().reshape(-1)).astype(np.int64)
            alike = shared >= _ALIKE * np.maximum(lengths + lengths[at] - shared, 1)
            of[alike & (of < 0)] = at
            of[at] = at  # nothing is like an empty sentence
    return {sentence.id: int(first) for sentence, first in zip(sentences, of, strict=True)}


def masked(sentence: Sentence, tags: Sequence[str]) -> Sentence:
    """Return a sentence with each span of these tags as one token, its type.

    Add two red onions -> Add <Amount> <Ingredient>
    """
    tokens = list(sentence.tokens)
    for span in reversed(spans(tags)):
        tokens[span.start : span.end] = [f"<{span.type}>"]
    return Sentence(sentence.id, tuple(tokens))


def apart(
    order: Sequence[str], template: Mapping[str, int], gap: int, before: Sequence[str] = ()
) -> list[str]:
    """Return an order in which a template is at most once among any `gap` sentences in a row.

    The order changes no more than needed, and where there are too few templates, the template
    that waited longest comes next. `before` are the sentences asked last.
    """
    waiting: dict[int, deque[int]] = {}
    for place, id in enumerate(order):
        waiting.setdefault(template[id], deque()).append(place)
    asked = {template[id]: at for at, id in enumerate(before, -len(before)) if id in template}
    resting = deque(sorted((at, key) for key, at in asked.items() if key in waiting))
    ready = [(places[0], key) for key, places in waiting.items() if key not in asked]
    heapify(ready)
    placed: list[str] = []
    while len(placed) < len(order):
        while resting and (not ready or len(placed) - resting[0][0] >= gap):
            key = resting.popleft()[1]
            heappush(ready, (waiting[key][0], key))
        place, key = heappop(ready)
        waiting[key].popleft()
        if waiting[key]:
            resting.append((len(placed), key))
        placed.append(order[place])
    return placed


@dataclass(frozen=True)
class Apart:
    """Select the best n of a policy with a template at most once among any `gap` in a row."""

    policy: PolicySpec
    gap: int
    factor: int = 4  # times n sentences are looked at

    def __post_init__(self) -> None:
        if self.gap < 2:
            raise ConfigError(f"a gap must be at least 2 sentences; got {self.gap}")

    def __call__(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Return the policy's scores of n ids, best first."""
        scores = self.policy.choose(view, max(n, min(self.factor * n, COMPARED)), rng)
        best = list(scores)[:COMPARED]
        sentences = {s.id: s for s in view.sentences() if s.id in scores}
        order = apart(best, templates([sentences[id] for id in best]), self.gap)
        chosen = {*order[:n], *list(scores)[COMPARED:n]}
        return {id: score for id, score in scores.items() if id in chosen}


def _keys(sentence: Sentence) -> Iterator[tuple[str, int]]:
    """Yield each token with how often it came before, so that sets compare like lists."""
    seen: Counter[str] = Counter()
    for token in sentence.tokens:
        word = _NUMBER.sub("0", token.lower())
        yield word, seen[word]
        seen[word] += 1
