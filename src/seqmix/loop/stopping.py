"""When to stop and what the next round should bring, without looking at the test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EXPONENTS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0)  # of the power laws for curves


@dataclass(frozen=True)
class Stopping:
    """Rules that end a run besides its number of rounds; None turns one off."""

    sentences: int | None = None  # a budget of labeled sentences
    tokens: int | None = None  # a budget of labeled tokens
    agreement: float | None = None  # Cohen's kappa of the predictions of two rounds in a row
    patience: int = 2  # rounds in a row that must agree
    uncertainty: float | None = None  # least mean token entropy of the most uncertain sentence

    def reason(
        self, sentences: int, tokens: int, agreements: Sequence[float], uncertainty: float | None
    ) -> str | None:
        """Return why to stop now; None to continue."""
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


def kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Return Cohen's kappa of two tag sequences: agreement beyond chance.

    >>> kappa(["O", "O", "B", "B"], ["O", "O", "B", "O"])
    0.5
    """
    if not first:
        return 1.0
    tags = sorted({*first, *second})
    ids = {tag: i for i, tag in enumerate(tags)}
    a, b = (np.array([ids[tag] for tag in sequence]) for sequence in (first, second))
    observed = float((a == b).mean())
    shares = [np.bincount(sequence, minlength=len(tags)) / len(sequence) for sequence in (a, b)]
    chance = float(shares[0] @ shares[1])
    return 1.0 if chance >= 1 - 1e-12 else (observed - chance) / (1 - chance)


@dataclass(frozen=True)
class Forecast:
    """The gain in F1 that more labels should bring, with a 90 % interval."""

    gain: float
    low: float
    high: float


def forecast(
    labeled: Sequence[int], f1: Sequence[float], following: int, rng: np.random.Generator
) -> Forecast | None:
    """Fit F1 = a − b · n^(−c) to at least three points of the curve and read off the next one.

    The interval comes from 200 refits with resampled residuals.
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
    """Return the best power law over a grid of exponents; b is not negative: labels do not hurt."""
    best = None
    for c in EXPONENTS:
        basis = np.stack([np.ones_like(x), -(x**-c)], axis=1)
        a, b = np.linalg.lstsq(basis, y, rcond=None)[0]
        if b < 0:
            a, b = float(y.mean()), 0.0
        error = float(((basis @ np.array([a, b]) - y) ** 2).sum())
        if best is None or error < best[0] - 1e-15:
            best = (error, float(a), float(b), c)
    _, a, b, c = best  # type: ignore[misc]
    return lambda n: a - b * n**-c
