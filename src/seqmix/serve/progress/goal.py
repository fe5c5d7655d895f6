"""How many answers to aim for now: what the forecast asks for, not the size of the pool.

first model    the answers that the first model needs
measure        those that an F1 and a forecast need
gain           those whose gain is forecast
enough         none: even the upper end of the forecast is next to nothing
all            the rest of the text, where that is less
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from seqmix.serve.progress.estimates import Progress
from seqmix.serve.progress.forecast import LEAST_MODELS
from seqmix.serve.progress.pace import Times
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.records import Counts


@dataclass(frozen=True)
class Goal:
    """How many answers there should be, why, and how long the rest takes."""

    why: str
    answers: int  # in all
    more: int
    minutes: float | None  # for these; None before there are answers to measure

    def to_json(self) -> dict[str, Any]:
        """Return the goal for JSON."""
        return asdict(self)


def goal_of(
    counts: Counts, progress: Progress, settings: ProjectSettings, missing: int, times: Times
) -> Goal:
    """Return the goal; `missing` is the number of answers until the next model."""
    why, more = _more(progress, settings, missing) if settings.audit_share else ("all", counts.left)
    if more >= counts.left and why != "enough":
        why, more = "all", counts.left
    each = times.next_seconds
    minutes = None if each is None else round(more * each / 60, 1)
    return Goal(why, counts.labeled + more, more, minutes)


def _more(progress: Progress, settings: ProjectSettings, missing: int) -> tuple[str, int]:
    """Return what the next answers are for, and how many that needs."""
    audit, learned = settings.audit_share, 1 - settings.audit_share
    if progress.forecast is not None:
        if progress.forecast.little:
            return "enough", 0
        return "gain", ceil(progress.forecast.labels / learned)
    if progress.models_lack >= LEAST_MODELS:
        return "first model", ceil(missing / learned)
    models = missing + (progress.models_lack - 1) * settings.batch if progress.models_lack else 0
    return "measure", max(ceil(models / learned), ceil(progress.forecast_lacks / audit), 1)
