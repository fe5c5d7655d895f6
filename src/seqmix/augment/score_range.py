"""The range of discriminator scores in which a generated sentence is kept (Eqs. 9–10)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqmix.errors import ConfigError


@dataclass(frozen=True)
class ScoreRange:
    """[low, high] in scores, in quantiles of the real sentences' scores, or in factors per word.

    A factor is how many times less probable each new word alone makes its parent.

    >>> str(ScoreRange(0, 400, relative=True)), ScoreRange(0, 500).holds(620.0)
    ('0x,400x', False)

    Args:
        low: The lowest score that is kept.
        high: The highest.
        quantiles: Whether both are quantiles of the scores of the real sentences, 0 to 1.
        relative: Whether both are factors in place of scores.
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

    def __str__(self) -> str:
        unit, factor = ("%", 100) if self.quantiles else ("x" if self.relative else "", 1)
        return ",".join(f"{factor * limit:.15g}{unit}" for limit in (self.low, self.high))

    def holds(self, score: float) -> bool:
        """Return whether a score lies in the range."""
        return self.low <= score <= self.high


def parse_score_range(text: str) -> ScoreRange | None:
    """Return the range that a setting means; None for `off`.

    >>> parse_score_range("5%,95%")
    ScoreRange(low=0.05, high=0.95, quantiles=True, relative=False)
    """
    if text == "off":
        return None
    low, _, high = text.partition(",")
    unit = next((unit for unit in ("%", "x") if low.endswith(unit) and high.endswith(unit)), "")
    try:
        first, second = (
            float(part.removesuffix(unit)) / (100 if unit == "%" else 1) for part in (low, high)
        )
    except ValueError:
        raise ConfigError(
            f"a score range must look like 0x,400x, 0,500, 5%,95% or off; got {text[:80]!r}"
        ) from None
    return ScoreRange(first, second, quantiles=unit == "%", relative=unit == "x")
