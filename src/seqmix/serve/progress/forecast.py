"""The gain in F1 that more labels should bring.

The interval includes what the audit does not know, so a few answers never say that it is time to
stop.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqmix.loop.stopping import EXPONENTS, Forecast

LEVEL = 0.9
LEAST_ANSWERS, LEAST_MODELS = 10, 5  # below, nothing is forecast
LITTLE = 0.01  # F1; a gain that is certainly smaller is not worth the labels
_DRAWS = 200
_PSEUDO = 0.5
_TRAINING = 0.01  # F1 by which two trainings on the same labels differ at least
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AuditForecast(Forecast):
    """The gain that a number of further labels should bring, judged by the audit answers."""

    labels: int
    level: float = LEVEL

    @property
    def little(self) -> bool:
        """Whether even the upper end is next to nothing."""
        return self.high < LITTLE

    def as_dict(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {**asdict(self), "little": self.little}


def forecast(labeled: Floats, counts: Floats) -> AuditForecast:
    """Fit F1 = a − b · n^(−c) to models and extrapolate to half as many labels again.

    `counts` [sentences, 3, models] are gold, predicted and right spans on the audit. Each bootstrap
    draw reweights the sentences, for all models alike, and adds the noise between trainings.
    """
    rng, (sentences, _, models) = np.random.default_rng(0), counts.shape
    more = max(1, round(labeled[-1] / 2), round(labeled[-1] - labeled[-2]))
    weights = rng.standard_exponential((_DRAWS, sentences))
    weights *= sentences / weights.sum(axis=1, keepdims=True)
    drawn = (weights @ counts.reshape(sentences, -1)).reshape(_DRAWS, 3, models)
    curves = (2 * drawn[:, 2] + _PSEUDO) / (drawn[:, 0] + drawn[:, 1] + 2 * _PSEUDO)
    whole = counts.sum(axis=0)
    seen = 2 * whole[2] / np.maximum(whole[0] + whole[1], 1.0)
    gain, fitted = _gains(labeled, seen[None], labeled[-1] + more)
    noise = max(_TRAINING, float(np.sqrt(((seen - fitted[0]) ** 2).sum() / max(1, models - 3))))
    gains, _ = _gains(labeled, curves + rng.normal(0, noise, curves.shape), labeled[-1] + more)
    low, high = np.quantile(gains, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return AuditForecast(float(gain[0]), float(min(low, gain[0])), float(max(high, gain[0])), more)


def _gains(labeled: Floats, curves: Floats, following: float) -> tuple[Floats, Floats]:
    """Return the gain after the last point by the best power law of each curve, and its fit."""
    least, gains, fitted = (
        np.full(len(curves), np.inf),
        np.zeros(len(curves)),
        np.zeros_like(curves),
    )
    mean = curves.mean(axis=1)
    for exponent in EXPONENTS:
        shape = -(labeled**-exponent)
        apart = shape - shape.mean()
        steep = np.maximum(0.0, (curves - mean[:, None]) @ apart / (apart @ apart))
        law = mean[:, None] + steep[:, None] * apart
        error = ((law - curves) ** 2).sum(axis=1)
        better = error < least - 1e-15
        least[better], fitted[better] = error[better], law[better]
        gains[better] = (steep * (-(following**-exponent) - shape[-1]))[better]
    return gains, fitted
