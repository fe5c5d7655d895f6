"""The order in which a training sees its sentences.

A sentence's place in an epoch hangs on the seed, the epoch and its own text, on nothing else: where two trainings share sentences, these
come in the same order, however many generated ones lie in between. So arms of a comparison differ by what they add, not by luck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import count

import numpy as np
from numpy.typing import NDArray

from seqmix.tagger.pieces import Window


def draw_batches(
    windows: Sequence[Sequence[Window]], size: int, total: int, seed: int
) -> Iterator[list[int]]:
    """`total` batches of equal size. Epochs follow without a gap: a batch may hold the end of one and the start of the next."""
    texts, size = _digests(windows), min(size, len(windows))
    waiting: list[int] = []
    epochs = count()
    for _ in range(total):
        while len(waiting) < size:
            waiting += np.argsort(_keys(texts, seed, next(epochs)), kind="stable").tolist()
        yield waiting[:size]
        del waiting[:size]


def _digests(windows: Sequence[Sequence[Window]]) -> NDArray[np.uint64]:
    """A number for each sentence's text; the second copy of a text has another one than the first."""
    copies: Counter[bytes] = Counter()
    digests = []
    for sentence in windows:
        text = b"".join(window.ids.tobytes() for window in sentence)
        digests.append(blake2b(text + copies[text].to_bytes(4, "little"), digest_size=8).digest())
        copies[text] += 1
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _keys(texts: NDArray[np.uint64], seed: int, epoch: int) -> NDArray[np.uint64]:
    """A random number for each text in this epoch (the finalizer of SplitMix64, which wraps around on purpose)."""
    start = np.random.default_rng([seed, epoch]).integers(2**64, dtype=np.uint64)
    mixed = texts ^ start
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
