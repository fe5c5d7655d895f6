"""What a run reports while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seqmix.loop.round_record import RoundRecord


@dataclass(frozen=True)
class PhaseStarted:
    """A phase of a round has begun: query, annotate, augment, train or evaluate."""

    round: int
    phase: str


@dataclass(frozen=True)
class RoundFinished:
    """A round is written down."""

    record: RoundRecord


@dataclass(frozen=True)
class RunFinished:
    """No round is left."""

    reason: str


RunEvent = PhaseStarted | RoundFinished | RunFinished
Report = Callable[[RunEvent], None]
