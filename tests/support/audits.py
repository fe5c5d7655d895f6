"""Invented audits: what models find in random sentences, with the truth known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def population(f1: float, empty: float, spread: float, size: int = 20_000) -> tuple[Floats, float]:
    """Counts [sentences, gold, found, right] of a model of about this F1, and its exact F1.

    `empty` is the share of sentences without a span; a small `spread` means that a sentence is
    either easy or hard as a whole.
    """
    gold = np.where(
        np.random.default_rng(1).random(size) < empty,
        0,
        1 + np.random.default_rng(2).poisson(1.0, size),
    )
    low, high = 1e-4, 0.9
    for _ in range(30):
        error = (low + high) / 2
        hard = np.random.default_rng(3).beta(error * spread, (1 - error) * spread, size)
        rng = np.random.default_rng(4)
        right = rng.binomial(gold, 1 - hard)
        counts = np.stack(
            [gold, right + rng.binomial(gold - right, 0.6) + rng.poisson(hard / 2), right], axis=1
        ).astype(np.float64)
        true = 2 * counts[:, 2].sum() / counts[:, :2].sum()
        low, high = (error, high) if true > f1 else (low, error)
    return counts, float(true)


def power_law(rng: np.random.Generator, first: float) -> Callable[[Floats], Floats]:
    """A curve that rises ever more slowly, from `first` labels on."""
    top, bend, start = rng.uniform(0.7, 0.98), rng.choice([0.3, 0.6, 1.0]), rng.uniform(0.05, 0.5)
    return lambda n: top - (top - start) * (n / first) ** -bend


def late_riser(rng: np.random.Generator, first: float) -> Callable[[Floats], Floats]:
    """A curve that stays low at first, then climbs."""
    top, middle = rng.uniform(0.8, 0.97), rng.uniform(2, 9) * first
    width = rng.uniform(0.2, 0.5) * middle
    return lambda n: top / (1 + np.exp(-(n - middle) / width))


def audited(f1: Floats, sentences: int, rng: np.random.Generator) -> Floats:
    """Counts [sentences, 3, models] of models of these F1 on the same sentences.

    What one model finds, a better one mostly finds.
    """
    gold = np.where(rng.random(sentences) < 0.2, 0, 1 + rng.poisson(1.5, sentences))
    of = np.repeat(np.arange(sentences), gold)
    hard = np.where(rng.random(of.size) < 0.5, rng.random(sentences)[of], rng.random(of.size))
    counts = np.zeros((sentences, 3, f1.size))
    for model, share in enumerate(np.clip(f1 + rng.normal(0, 0.015, f1.size), 0, 1)):
        right = np.where(rng.random(of.size) < 0.05, rng.random(of.size), hard) < share
        counts[:, 2, model] = np.bincount(of, right, sentences)
        counts[:, 1, model] = counts[:, 2, model] + rng.poisson(
            (1 - share) * 0.8 * np.maximum(gold, 0.3)
        )
        counts[:, 0, model] = gold
    return counts
