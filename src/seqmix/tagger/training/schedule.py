"""What each step of a training sees: which sentences, at which learning rate, mixed with what.

A sentence's place in an epoch depends on the seed, the epoch and its text only.
Trainings that share sentences see them in the same order, however many generated ones lie between.
So the arms of a comparison differ by what they add, not by luck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import count

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Sentence
from seqmix.tagger.settings import Settings
from seqmix.tagger.windows import Window

Rows = NDArray[np.float32]  # [n_words, n_tags]


@dataclass(frozen=True)
class TrainingSet:
    """Sentences as windows, with their tag rows, and with their ids for messages."""

    windows: Sequence[Sequence[Window]]
    rows: Sequence[Rows]
    ids: Sequence[str] = ()
    weights: NDArray[np.float32] | None = None  # of sentences; None: all count the same

    def labeled_words(self, chosen: Sequence[int]) -> float:
        """Return what the loss of these sentences is divided by: their labeled words, weighted."""
        counts = [int((~np.isnan(self.rows[i][:, 0])).sum()) for i in chosen]
        if self.weights is None:
            return max(1, sum(counts))
        return float(self.weights[list(chosen)] @ np.array(counts)) or 1.0


def weights_of(sentences: Sequence[Sentence]) -> NDArray[np.float32] | None:
    """Return the weights of sentences, or None if all count the same."""
    weights = np.array([sentence.weight for sentence in sentences], dtype=np.float32)
    return None if (weights == 1).all() else weights


@dataclass(frozen=True)
class WordPairs:
    """For each word of a batch, the place of its partner and the weight of the word itself."""

    partners: NDArray[np.int64]
    weights: NDArray[np.float32]
    layer: int = 0  # before which they are mixed


@dataclass(frozen=True)
class Step:
    """The learning rate and the sentences of one optimizer step."""

    rate: float
    chosen: Sequence[int]
    mixup: WordPairs | None = None


def plan_steps(
    data: TrainingSet, settings: Settings, lr: float, seed: int, rng: np.random.Generator
) -> list[Step]:
    """Return all steps of a training."""
    total = settings.total_steps(len(data.windows))
    batches = draw_batches(data.windows, settings.batch_size, total, seed)
    return [
        Step(rate, chosen, draw_mixup([data.rows[i] for i in chosen], settings, rng))
        for rate, chosen in zip(rates(lr, settings.warmup, total), batches, strict=True)
    ]


def rates(lr: float, warmup: float, total: int) -> Iterator[float]:
    """Yield the learning rate of each step: linear warm-up, then linear decay."""
    warm = max(1, round(warmup * total))
    for step in range(total):
        yield lr * min((step + 1) / warm, (total - step) / max(1, total - warm))


def draw_batches(
    windows: Sequence[Sequence[Window]], size: int, total: int, seed: int
) -> Iterator[list[int]]:
    """Yield `total` batches of equal size; one may span the end of an epoch."""
    texts, size = _digests(windows), min(size, len(windows))
    waiting: list[int] = []
    epochs = count()
    for _ in range(total):
        while len(waiting) < size:
            waiting += np.argsort(_keys(texts, seed, next(epochs)), kind="stable").tolist()
        yield waiting[:size]
        del waiting[:size]


def draw_mixup(
    rows: Sequence[Rows], settings: Settings, rng: np.random.Generator
) -> WordPairs | None:
    """Pair each word of a batch with another, where the settings ask for mixup.

    Each sentence has one λ ≥ ½, so that it stays itself.
    """
    alpha = settings.mixup
    if not alpha:
        return None
    lengths = [len(sentence) for sentence in rows]
    order = rng.permutation(len(rows))
    lambdas = np.array([rng.beta(alpha, alpha) for _ in rows], dtype=np.float32)
    weights = np.maximum(lambdas, 1 - lambdas).repeat(lengths)
    if settings.mixup_partners == "tag":
        return WordPairs(_same_tag(np.concatenate(rows), rng), weights, settings.mixup_layer)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    # word by word; the shorter sentence repeats
    partners = [
        starts[partner] + np.arange(lengths[sentence]) % lengths[partner]
        for sentence, partner in enumerate(order)
    ]
    return WordPairs(np.concatenate(partners), weights, settings.mixup_layer)


def _same_tag(rows: Rows, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for each word a random one whose heaviest tag is the same."""
    tags = np.nan_to_num(rows, nan=-1.0).argmax(axis=1)
    partners = np.arange(len(rows))
    for tag in np.unique(tags):
        places = np.flatnonzero(tags == tag)
        partners[places] = rng.permutation(places)
    return partners


def _digests(windows: Sequence[Sequence[Window]]) -> NDArray[np.uint64]:
    """Return a number for each sentence's text; the copies of a text have different ones."""
    copies: Counter[bytes] = Counter()
    digests = []
    for sentence in windows:
        text = b"".join(window.ids.tobytes() for window in sentence)
        digests.append(blake2b(text + copies[text].to_bytes(4, "little"), digest_size=8).digest())
        copies[text] += 1
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _keys(texts: NDArray[np.uint64], seed: int, epoch: int) -> NDArray[np.uint64]:
    """Return a random number for each text in this epoch (SplitMix64's finalizer, which wraps)."""
    start = np.random.default_rng([seed, epoch]).integers(2**64, dtype=np.uint64)
    mixed = texts ^ start
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
