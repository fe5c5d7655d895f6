"""How long the phases of a training take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Report = Callable[[str], None]


@dataclass
class Clock:
    """Reports each phase when it begins, and keeps how long it took."""

    report: Report
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report a phase, and note its seconds when it ends."""
        self.report(name)
        start = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - start, 3)
