"""Select sentences that differ: from each other, and from those already labeled.

Clustering needs vectors in memory, so of a pool of more than `sample` sentences a random sample of
that many is used. Rows are put in random order first, so the order of the pool changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import nsmallest

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from seqmix.errors import ConfigError
from seqmix.protocols import PoolView
from seqmix.query.geometry import Distances, Matrix, farthest, means, nearest, plus_plus, squared
from seqmix.query.spec import PolicySpec, lots

Vectors = Iterator[tuple[str, NDArray[np.float32]]]
SAMPLE = 20_000


def random_scores(view: PoolView) -> Iterator[tuple[str, float]]:
    """Score at random, so that every sentence is as likely as the next: the baseline."""
    lot = lots(view.rng)  # drawn now and not by the first sentence: `top` draws from it as well
    return ((sentence.id, lot(sentence.id)) for sentence in view.sentences())


@dataclass(frozen=True)
class KMeans:
    """Cluster the pool into n and select the sentence nearest to each center.

    The score is the cluster's share of the pool.
    """

    sample: int = SAMPLE
    steps: int = 20

    def __call__(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Start with k-means++ and take Lloyd's steps until no sentence changes its cluster."""
        ids, rows = _gathered(view.embeddings(), max(self.sample, n), rng)
        n = min(n, len(ids))
        if n <= 0:
            return {}
        centers = rows[
            plus_plus(lambda i: squared(rows, rows[i]), int(rng.integers(len(rows))), n, rng)
        ]
        of = nearest(rows, centers)[0]
        for _ in range(self.steps):
            centers, before = means(rows, of, centers), of
            of = nearest(rows, centers)[0]
            if np.array_equal(of, before):
                break
        sizes = np.bincount(of, minlength=n)
        chosen: dict[int, float] = {}
        for cluster in np.argsort(-sizes, kind="stable"):
            away = squared(rows, centers[cluster])
            away[list(chosen)] = np.inf  # two centers may share their nearest sentence
            chosen[int(away.argmin())] = float(sizes[cluster] / len(rows))
        return {ids[i]: share for i, share in chosen.items()}


@dataclass(frozen=True)
class CoreSet:
    """Select the sentence farthest from all labeled and selected ones, n times.

    This is k-center greedy (Sener and Savarese 2018). The score is that distance. With nothing
    labeled it starts from the mean of the pool.
    """

    sample: int = SAMPLE

    def __call__(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Return the scores of n ids, best first."""
        ids, rows = _gathered(view.embeddings(), max(self.sample, n), rng)
        if not ids:
            return {}
        labeled = view.labeled_embeddings()
        away = nearest(rows, labeled if len(labeled) else rows.mean(axis=0, keepdims=True))[1]
        return {ids[i]: distance for i, distance in farthest(rows, away, min(n, len(ids)))}


@dataclass(frozen=True)
class Badge:
    """Select sentences whose gradients are long and differ (BADGE, Ash et al. 2020).

    The gradient of the last layer, were the predicted tags right, is the sum over tokens of
    (p - onehot(argmax p)) ⊗ hidden. The view has no hidden states by token, so this takes
    mean(p - onehot) ⊗ (mean hidden). The score is the gradient's length.
    """

    sample: int = SAMPLE

    def __call__(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Return the scores of n ids, best first."""
        pairs = zip(view.embeddings(), view.probs(), strict=True)
        joined = (
            (id, np.concatenate([vector, _error(probs)])) for (id, vector), (_, probs) in pairs
        )
        ids, rows = _gathered(joined, max(self.sample, n), rng)
        n = min(n, len(ids))
        if n <= 0:
            return {}
        hidden, error = (
            rows[:, : -len(view.tag_set)].astype(np.float64),
            rows[:, -len(view.tag_set) :].astype(np.float64),
        )
        length = (hidden**2).sum(axis=1) * (error**2).sum(axis=1)

        def away(i: int) -> Distances:
            # <a ⊗ b, c ⊗ d> = <a, c> <b, d>, so the products need not be built
            return np.asarray(
                np.maximum(length + length[i] - 2 * (hidden @ hidden[i]) * (error @ error[i]), 0)
            )

        drawn = plus_plus(away, int(length.argmax()), n, rng)
        order = sorted(drawn, key=lambda i: (-length[i], i))
        return {ids[i]: float(length[i] ** 0.5) for i in order}


@dataclass(frozen=True)
class Diverse:
    """Select the n farthest apart of the factor · n best of a policy, its very best included."""

    policy: PolicySpec
    factor: int = 4

    def __post_init__(self) -> None:
        if self.factor < 1:
            raise ConfigError(f"factor must be at least 1 (4 is usual); got {self.factor}")

    def __call__(self, view: PoolView, n: int, rng: Generator) -> dict[str, float]:
        """Return the policy's scores of n ids, best first."""
        candidates = self.policy.choose(view, self.factor * n, rng)
        if len(candidates) <= n:
            return candidates
        vectors = {id: vector.copy() for id, vector in view.embeddings() if id in candidates}
        ids = list(candidates)
        rows = np.stack([vectors[id] for id in ids])
        rest = farthest(rows, squared(rows, rows[0]), n - 1, taken=(0,))
        return {ids[i]: candidates[ids[i]] for i in sorted([0, *(i for i, _ in rest)])}


def _gathered(vectors: Vectors, size: int, rng: Generator) -> tuple[list[str], Matrix]:
    """Return a random sample of at most `size` rows in random order, however they come."""
    lot = lots(rng)
    drawn = nsmallest(
        size, ((lot(id), id, np.array(vector, dtype=np.float32)) for id, vector in vectors)
    )
    return [id for _, id, _ in drawn], np.stack(
        [vector for *_, vector in drawn]
    ) if drawn else np.empty((0, 0), np.float32)


def _error(probs: NDArray[np.float32]) -> NDArray[np.float32]:
    """mean over tokens of p - onehot(argmax p) [n_tags]"""
    best = np.eye(probs.shape[1], dtype=np.float32)[probs.argmax(axis=1)]
    return np.asarray((probs - best).mean(axis=0))
