"""Statistics over a few seeds: intervals, paired tests, areas, labels saved.

Pairs are runs with the same seed; with n pairs no sign-flip test can give p below 2 / 2ⁿ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import optimize, special, stats

EXACT = 2**14  # most sign combinations that are all tried
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """F1 (y) against cost (x), which never falls."""

    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Interval:
    """A mean and its bounds, which are NaN for a single value."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def known(self) -> bool:
        """Return whether there are bounds."""
        return math.isfinite(self.low) and math.isfinite(self.high)


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """Return the mean with Student's t interval."""
    sample = np.asarray(values, dtype=float)
    if sample.size == 0:
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(sample.mean())
    if sample.size == 1:
        return Interval(mean, math.nan, math.nan, 1)
    half = float(
        special.stdtrit(sample.size - 1, (1 + level) / 2)
        * sample.std(ddof=1)
        / math.sqrt(sample.size)
    )
    return Interval(mean, mean - half, mean + half, sample.size)


def paired_interval(
    first: Sequence[float], second: Sequence[float], level: float = 0.95
) -> Interval:
    """Return the mean of first − second with Student's t interval over the pairs."""
    return mean_interval(_differences(first, second).tolist(), level)


def paired_permutation(
    first: Sequence[float], second: Sequence[float], rng: Generator, draws: int = 10_000
) -> float:
    """Return the two-sided p of the mean difference under flipped signs.

    All combinations of signs are tried up to 2¹⁴; beyond that they are drawn.
    """
    differences = _differences(first, second)
    n = differences.size
    if n == 0:
        return math.nan
    exact = n <= math.log2(EXACT)
    flipped = (
        (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        if exact
        else rng.integers(2, size=(draws, n))
    )  # [combinations, pairs]
    signs = 1 - 2 * flipped
    observed = abs(float(differences.sum()))
    least = observed - 1e-12 * max(1.0, observed)  # ties must survive rounding
    as_far = int((np.abs(signs @ differences) >= least).sum())
    # the observed signs count as one more draw
    return as_far / len(signs) if exact else (as_far + 1) / (draws + 1)


def detectable_difference(n: int, sd: float, level: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest mean of n paired differences that a t-test shows with this power.

    >>> round(detectable_difference(10, 1.1), 1)
    1.1
    """
    if n < 2:
        return math.inf
    critical = float(stats.t.ppf(1 - level / 2, n - 1))

    def shown(difference: float) -> float:
        noncentrality = difference * math.sqrt(n) / sd
        return float(stats.nct.sf(critical, n - 1, noncentrality)) - power

    high = sd
    while shown(high) < 0:
        high *= 2
    return float(optimize.brentq(shown, 0, high))


def wilcoxon(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the two-sided p of the signed ranks, as in the paper.

    Pairs without a difference are left out; p is 1 when none is left.
    """
    differences = _differences(first, second)
    moved = differences[differences != 0]
    if moved.size == 0:
        return math.nan if differences.size == 0 else 1.0
    return float(stats.wilcoxon(moved).pvalue)


def area_under_curve(curve: Curve) -> float:
    """Return the mean height over the range of x, by trapezoids; without a range, the mean of y."""
    x, y = np.asarray(curve.x, dtype=float), np.asarray(curve.y, dtype=float)
    if x.size == 0:
        return math.nan
    width = float(x[-1] - x[0])
    return float(np.trapezoid(y, x) / width) if width > 0 else float(y.mean())


def labels_to_reach(curve: Curve, target: float) -> float | None:
    """Return the first x at which the curve reaches the target; None if it never does."""
    before: tuple[float, float] | None = None
    for x, y in zip(curve.x, curve.y, strict=True):
        if y >= target:
            if before is None:
                return float(x)
            return float(before[0] + (target - before[1]) / (y - before[1]) * (x - before[0]))
        before = (x, y)
    return None


def labels_saved(curve: Curve, baseline: Curve) -> float | None:
    """Return how many labels fewer than the baseline the curve needs for the baseline's final F1.

    subtle: both curves are read at their first crossing, or a plateau of the baseline would count
    as a saving.
    """
    target = baseline.y[-1]
    needed, usual = labels_to_reach(curve, target), labels_to_reach(baseline, target)
    return None if needed is None or usual is None else usual - needed


def _differences(first: Sequence[float], second: Sequence[float]) -> Floats:
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} values do not pair")
    return np.subtract(first, second, dtype=np.float64)
