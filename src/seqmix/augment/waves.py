"""Pairs to mix, a wave at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from seqmix.augment.pairing import Pair, Pairing
from seqmix.augment.table import Table
from seqmix.data.sentence import Sentence


class Waves:
    """Draws pairs; a parent in a wave counts as used until the wave is judged.

    When all pairs were drawn they are drawn again, until there were `most` draws.
    """

    def __init__(
        self,
        rule: Pairing,
        sentences: Sequence[Sentence],
        uses: Counter[int],
        cap: int,
        rng: np.random.Generator,
        table: Table,
        most: int,
    ) -> None:
        self.visit = 0  # how often all pairs were drawn before
        self._rule, self._sentences, self._rng, self._table = rule, sentences, rng, table
        self._uses, self._cap, self._most = uses, cap, most
        self._candidates = rule.candidates  # of one pair
        self._draws = 0
        self._held: Counter[int] = Counter()
        self._drawn: set[Pair] = set()
        self._source = self._start()

    def draw(self, size: int) -> list[Pair]:
        """Return up to `size` pairs that were not drawn on this visit."""
        self._held.clear()
        wave = self._take(size)
        if not wave:  # parents held back by the last wave are free again
            self._source = self._start()
            wave = self._take(size)
        if not wave and self._draws < self._most:
            self.visit += 1
            self._drawn.clear()
            self._source = self._start()
            wave = self._take(size)
        return wave

    def _start(self) -> Iterator[Pair]:
        return self._rule.pairs(
            self._sentences, self._free, self._drawn, self._rng, self._table.vector
        )

    def _take(self, size: int) -> list[Pair]:
        wave = []
        room = max(0, self._most - self._draws) if self.visit else size
        for pair in islice(self._source, min(size, room)):
            self._held.update({stretch.parent: self._candidates for stretch in pair})
            wave.append(pair)
        self._draws += len(wave)
        return wave

    def _free(self, parent: int) -> bool:
        return self._uses[parent] + self._held[parent] < self._cap


def wave_size(missing: int, accepted: int, scored: int) -> int:
    """Return how many pairs to mix next, by the acceptance rate so far.

    Few candidates are then scored for nothing.
    """
    rate = (accepted + 1) / (scored + 2)
    return max(1, min(4096, math.ceil(missing / max(rate, 0.02) / 2)))
