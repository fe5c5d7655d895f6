"""The range of discriminator scores in which a generated sentence is kept (Eqs. 9–10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqmix.errors import ConfigError


@dataclass(frozen=True)
class ScoreRange:
    """[low, high] in scores, in quantiles of the real sentences' scores, or in factors per new word.

    A factor is how many times less probable each new word alone makes its parent.
    """

    low: float = 0.0
    high: float = 500.0
    quantiles: bool = False
    relative: bool = False

    def __post_init__(self) -> None:
        top = 1.0 if self.quantiles else math.inf
        if not 0 <= self.low < self.high <= top:
            kind = "quantiles between 0 and 1" if self.quantiles else "scores of 0 or more"
            raise ConfigError(
                f"a score range must be two {kind}, the lower first; "
                f"got {self.low:g},{self.high:g}, which is empty or out of bounds"
            )
        if self.quantiles and self.relative:
            raise ConfigError("a score range is in quantiles or relative to the parent, not both")

    def in_scores(self, real: Sequence[float]) -> ScoreRange:
        """Return the range in scores, given the scores of the real sentences."""
        if not self.quantiles:
            return self
        low, high = np.quantile(np.asarray(real, dtype=float), [self.low, self.high])
        return ScoreRange(
            float(low), float(np.nextafter(high, math.inf)) if high > low else float(low) + 1e-9
        )

    def holds(self, score: float) -> bool:
        """Return whether a score lies in the range."""
        return self.low <= score <= self.high


DEFAULT_RANGE = ScoreRange(0, 400, relative=True)
