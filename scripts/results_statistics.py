"""Statistics for the results alone: many comparisons at once, and effects too small to matter."""

from __future__ import annotations

import math
from collections.abc import Sequence

from seqmix.report.statistics import mean_interval


def is_negligible(values: Sequence[float], margin: float, level: float = 0.05) -> bool:
    """Whether two one-sided tests at this level both reject a mean beyond ±margin (TOST)."""
    interval = mean_interval(values, 1 - 2 * level)
    return interval.low > -margin and interval.high < margin  # NaN is not


def holm(ps: Sequence[float]) -> list[float]:
    """Correct each p for the others (Holm, step-down); NaNs stay and do not count."""
    ranked = sorted((p, at) for at, p in enumerate(ps) if not math.isnan(p))
    corrected = [math.nan] * len(ps)
    largest = 0.0
    for rank, (p, at) in enumerate(ranked):
        largest = max(largest, min(1.0, (len(ranked) - rank) * p))  # never below a smaller p's
        corrected[at] = largest
    return corrected
