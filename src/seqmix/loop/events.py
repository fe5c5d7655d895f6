"""What a run reports while it works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def timed(seconds: dict[str, float], number: int, report: Report, phase: str) -> Iterator[None]:
    """Report that a phase of a round begins, and note how long it took."""
    report(PhaseStarted(number, phase))
    start = time.monotonic()
    yield
    seconds[phase] = time.monotonic() - start
