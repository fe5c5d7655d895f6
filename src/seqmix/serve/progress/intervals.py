"""F1 on some audit sentences, with an interval for the F1 on all of the text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

LEVEL = 0.95
LEAST = 3  # sentences with a gold or predicted span that an F1 needs
_PSEUDO = 0.5  # spans in each of two added sentences, one all right and one all wrong
_SHIFT = 0.15  # between Clopper and Pearson's bounds (0) and Jeffreys's (0.5)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class F1:
    """Micro F1 on exact spans with its interval."""

    f1: float
    low: float
    high: float
    n: int  # sentences
    level: float = LEVEL


def with_interval(counts: Floats) -> F1 | None:
    """Return F1 over sentences [n, 3] of gold, predicted and right spans; None for too few."""
    return intervals(counts[:, :, None])[0]


def intervals(counts: Floats) -> list[F1 | None]:
    """Return the F1 of several models on the same sentences [n, 3, models].

    It is Korn and Graubard's interval: that of a share, with the effective number of spans, since
    spans come in sentences. The variance is that of a ratio, with two small sentences added, all
    right and all wrong, so that it is never 0; Student's t corrects for few sentences.
    """
    gold, predicted, right = counts[:, 0], counts[:, 1], 2 * counts[:, 2]  # [n, models]
    weight, n = gold + predicted, len(counts)
    with_spans = (weight > 0).sum(axis=0)
    total, hits = weight.sum(axis=0), right.sum(axis=0)
    size = np.maximum(total, 1.0)
    f1, near = hits / size, (hits + _PSEUDO) / (total + 2 * _PSEUDO)
    off = ((right - near * weight) ** 2).sum(axis=0) + _PSEUDO**2 * ((1 - near) ** 2 + near**2)
    free = np.maximum(with_spans - 1, 1)
    variance = off * (free + 1) / free / (total + 2 * _PSEUDO) ** 2
    tail = (1 + LEVEL) / 2
    spans = np.minimum(
        near * (1 - near) / variance * (special.ndtri(tail) / special.stdtrit(free, tail)) ** 2,
        size / 2,
    )
    yes, no = f1 * spans, (1 - f1) * spans
    low = np.where(f1 > 0, special.betaincinv(yes + _SHIFT, no + 1 - _SHIFT, 1 - tail), 0.0)
    high = np.where(f1 < 1, special.betaincinv(yes + 1 - _SHIFT, no + _SHIFT, tail), 1.0)
    return [
        F1(float(value), float(min(lower, value)), float(max(upper, value)), n)
        if enough >= LEAST
        else None
        for value, lower, upper, enough in zip(f1, low, high, with_spans, strict=True)
    ]
