"""Which stretches of which sentences are mixed (the pairing function ζ).

Two eligible windows of one group may pair: those of the same length (`whole`, `sub`) or with the
same tags (`label`). Pairs are drawn in random order without replacement and never listed: a keyed
permutation of the pair numbers 0 … n(n−1)/2 − 1 takes no memory.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqmix.augment.settings import Mixing
from seqmix.data.sentence import Row, Sentence, heaviest
from seqmix.data.spans import OUTSIDE, spans


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens `start` up to but not including `end` of the sentence with number `parent`."""

    parent: int
    start: int
    end: int


Pair = tuple[Stretch, Stretch]


@dataclass(frozen=True)
class Pairing:
    """The pairing rule of some settings.

    A window, and for `whole` a sentence of any length, needs at least η0 · s valid tags.
    """

    settings: Mixing
    neighbors: int = 10  # `similar`: a window's partner is drawn from this many nearest ones

    @property
    def candidates(self) -> int:
        """How many sentences a pair gives: the parents of `whole` would become the same one."""
        return 1 if self.settings.variant == "whole" else 2

    def groups(self, sentences: Sequence[Sentence]) -> list[list[Stretch]]:
        """Return the windows that may pair with each other, in groups that have a pair."""
        rule = self.settings
        groups: dict[object, list[Stretch]] = defaultdict(list)
        for parent, sentence in enumerate(sentences):
            tags = [_hard(row) for row in sentence.tags]
            for start, end in self._windows(tags):
                window = tags[start:end]
                size = rule.window if rule.variant == "whole" else end - start
                if (
                    None not in window
                    and sum(tag != OUTSIDE for tag in window) >= rule.density * size - 1e-9
                ):
                    key = tuple(window) if rule.variant == "label" else end - start
                    groups[key].append(Stretch(parent, start, end))
        return [
            group for group in groups.values() if len({stretch.parent for stretch in group}) > 1
        ]

    def _windows(self, tags: Sequence[str | None]) -> Iterable[tuple[int, int]]:
        if self.settings.variant == "whole":
            return [(0, len(tags))] if tags else []
        if self.settings.windows == "spans":
            return [(span.start, span.end) for span in spans([tag or OUTSIDE for tag in tags])]
        return (
            (start, start + self.settings.window)
            for start in range(len(tags) - self.settings.window + 1)
        )

    def pairs(
        self,
        sentences: Sequence[Sentence],
        free: Callable[[int], bool],
        drawn: set[Pair],
        rng: np.random.Generator,
        vector: Callable[[str], NDArray[np.float64]],
    ) -> Iterator[Pair]:
        """Yield pairs of free parents in random order, none twice and none in `drawn`.

        Sentences with the same tokens do not pair. Ends when no group has two free parents.
        """
        groups = self.groups(sentences)
        draw = _similar_pairs if self.settings.partners == "similar" else _random_pairs
        while groups:
            misses = served = 0
            for first, second in draw(groups, sentences, vector, self.neighbors, rng):
                if not (free(first.parent) and free(second.parent)):
                    misses += 1
                    if misses > 64 and misses > 8 * served:
                        break  # most parents are used up: continue with those that are left
                elif (
                    sentences[first.parent].tokens != sentences[second.parent].tokens
                    and (first, second) not in drawn
                ):
                    drawn.add((first, second))
                    served += 1
                    yield first, second
            else:
                return
            left = [[stretch for stretch in group if free(stretch.parent)] for group in groups]
            groups = [group for group in left if len({stretch.parent for stretch in group}) > 1]


def _random_pairs(
    groups: list[list[Stretch]], _: object, __: object, ___: object, rng: np.random.Generator
) -> Iterator[Pair]:
    """Yield all pairs within groups in the order of a keyed permutation of their numbers."""
    edges = np.cumsum([0, *(len(group) * (len(group) - 1) // 2 for group in groups)])
    for number in shuffled(int(edges[-1]), rng):
        at = int(np.searchsorted(edges, number, side="right")) - 1
        low, high = _unrank(number - int(edges[at]))
        first, second = groups[at][low], groups[at][high]
        yield (first, second) if (number ^ low) & 1 else (second, first)


def _similar_pairs(
    groups: list[list[Stretch]],
    sentences: Sequence[Sentence],
    vector: Callable[[str], NDArray[np.float64]],
    neighbors: int,
    rng: np.random.Generator,
) -> Iterator[Pair]:
    """Yield each window with its nearest ones (cosine of mean embeddings), both in random order."""

    def unit(stretch: Stretch) -> NDArray[np.float64]:
        words = sentences[stretch.parent].tokens[stretch.start : stretch.end]
        mean = np.mean([vector(word) for word in words], axis=0)
        return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-30))

    units = [np.stack([unit(stretch) for stretch in group]) for group in groups]
    owners = [np.array([stretch.parent for stretch in group]) for group in groups]
    order = [(g, i) for g, group in enumerate(groups) for i in range(len(group))]
    seed = int(rng.integers(2**62))
    for rank in range(neighbors):  # every window with one neighbor, then every one with another
        for at in rng.permutation(len(order)):
            g, i = order[at]
            alike = np.where(owners[g] == owners[g][i], -np.inf, units[g] @ units[g][i])
            nearest = np.argsort(-alike, kind="stable")[:neighbors]
            nearest = np.random.default_rng([seed, at]).permutation(
                nearest[np.isfinite(alike[nearest])]
            )
            if rank < len(nearest):
                yield groups[g][i], groups[g][int(nearest[rank])]


def shuffled(n: int, rng: np.random.Generator) -> Iterator[int]:
    """Yield the numbers below n once each in random order, in constant memory.

    This is a four-round Feistel network with cycle walking.
    """
    bits = max(2, math.ceil(max(n - 1, 1).bit_length() / 2) * 2)
    half, mask = bits // 2, (1 << bits // 2) - 1
    keys = [int(key) for key in rng.integers(1, 2**31, size=4)]
    for number in range(1 << bits):
        left, right = number >> half, number & mask
        for key in keys:
            left, right = (
                right,
                left ^ (((right + key) * 0x9E3779B97F4A7C15 ^ key << 17) >> 23 & mask),
            )
        value = left << half | right
        if value < n:
            yield value


def _unrank(number: int) -> tuple[int, int]:
    """Return a pair of low < high by number: 0 is (0, 1), 1 is (0, 2), 2 is (1, 2), 3 is (0, 3)."""
    high = (1 + math.isqrt(1 + 8 * number)) // 2
    return number - high * (high - 1) // 2, high


def _hard(row: Row) -> str | None:
    return heaviest(row) if isinstance(row, Mapping) else row


def default_cap(asked: int, groups: Sequence[Sequence[Stretch]]) -> int:
    """Return how often a parent may be used: twice an even share, and at least 3 times."""
    parents = len({stretch.parent for group in groups for stretch in group})
    return max(3, math.ceil(4 * asked / max(parents, 1)))
