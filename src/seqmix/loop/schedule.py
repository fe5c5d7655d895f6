"""Values that may differ by round: one number for all, or a list whose last value stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T", int, float)


def at(schedule: T | Sequence[T], round: int) -> T:
    """Return the value for a round, counted from 0.

    >>> at([1000, 2000, 2000, 4000], 5)
    4000
    """
    if isinstance(schedule, int | float):
        return schedule
    return schedule[min(round, len(schedule) - 1)]
