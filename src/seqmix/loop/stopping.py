"""When to stop, and what the next round would bring: from predictions and the curve so far, never from the test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Stopping:
    """Ends of a run besides its number of rounds; 0 or None turns a rule off."""

    sentences: int | None = None  # a budget of labeled sentences
    tokens: int | None = None  # a budget of labeled tokens
    agreement: float | None = (
        None  # predictions on a fixed part of the pool agree this much with the last round's (Cohen's kappa)
    )
    patience: int = 2  # … for so many rounds in a row
    uncertainty: float | None = (
        None  # the most uncertain sentence left has less mean token entropy than this
    )

    def reason(
        self, sentences: int, tokens: int, agreements: Sequence[float], uncertainty: float | None
    ) -> str | None:
        """Why to stop now, in words; None to go on."""
        if self.sentences is not None and sentences >= self.sentences:
            return f"the budget of {self.sentences} sentences is used"
        if self.tokens is not None and tokens >= self.tokens:
            return f"the budget of {self.tokens} tokens is used"
        recent = agreements[-self.patience :]
        if (
            self.agreement is not None
            and len(recent) == self.patience
            and min(recent) >= self.agreement
        ):
            return (
                f"predictions have settled: agreement {min(recent):.3f} over {self.patience} rounds"
            )
        if (
            self.uncertainty is not None
            and uncertainty is not None
            and uncertainty < self.uncertainty
        ):
            return f"no uncertain sentence is left: the highest token entropy is {uncertainty:.3f}"
        return None


def kappa(one: Sequence[str], other: Sequence[str]) -> float:
    """Cohen's kappa of two tag sequences: agreement beyond chance, 1 when both are constant and equal."""
    if not one:
        return 1.0
    tags = sorted({*one, *other})
    ids = {tag: i for i, tag in enumerate(tags)}
    a, b = (np.array([ids[tag] for tag in own]) for own in (one, other))
    observed = float((a == b).mean())
    shares = [np.bincount(own, minlength=len(tags)) / len(own) for own in (a, b)]
    chance = float(shares[0] @ shares[1])
    return 1.0 if chance >= 1 - 1e-12 else (observed - chance) / (1 - chance)


@dataclass(frozen=True)
class Forecast:
    """The gain in F1 that the next labels should bring, with a 90 % interval."""

    gain: float
    low: float
    high: float


def forecast(
    labeled: Sequence[int], f1: Sequence[float], following: int, rng: np.random.Generator
) -> Forecast | None:
    """Fit F1 = a − b · n^(−c) to the curve so far and read off the next point; three points are needed.

    The interval comes from refitting to the curve with its residuals drawn anew (200 times).
    """
    if len(labeled) < 3:
        return None
    x, y = np.asarray(labeled, dtype=float), np.asarray(f1, dtype=float)
    fitted = _fit(x, y)
    gain = float(fitted(np.array([following]))[0] - fitted(x[-1:])[0])
    residuals = y - fitted(x)
    gains = []
    for _ in range(200):
        again = _fit(x, fitted(x) + rng.choice(residuals, size=len(x)))
        gains.append(float(again(np.array([following]))[0] - again(x[-1:])[0]))
    low, high = np.quantile(gains, [0.05, 0.95])
    return Forecast(gain, float(min(low, gain)), float(max(high, gain)))


def _fit(x: NDArray[np.float64], y: NDArray[np.float64]):  # type: ignore[no-untyped-def]
    """The best power law over a grid of exponents; a and b by least squares, b never negative: labels do not hurt."""
    best = None
    for c in (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0):
        basis = np.stack([np.ones_like(x), -(x**-c)], axis=1)
        a, b = np.linalg.lstsq(basis, y, rcond=None)[0]
        if b < 0:
            a, b = float(y.mean()), 0.0
        error = float(((basis @ np.array([a, b]) - y) ** 2).sum())
        if best is None or error < best[0] - 1e-15:
            best = (error, float(a), float(b), c)
    _, a, b, c = best  # type: ignore[misc]
    return lambda n: a - b * n**-c
