"""A value that is computed at most every few seconds, however many ask for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Throttled(Generic[T]):
    """Computes a value when asked for it, at most once in `every` seconds: `Throttled(f, 5.0)()`.

    Whoever asks while it is being computed waits for it.
    """

    def __init__(self, compute: Callable[[], T], every: float) -> None:
        self._compute, self._every, self._lock = compute, every, threading.Lock()
        self._last: tuple[float, T] | None = None  # when it was computed, and what came out

    def __call__(self) -> T:
        """Return the value, as it was computed not long ago or is now."""
        with self._lock:
            if self._last is None or time.monotonic() - self._last[0] >= self._every:
                value = self._compute()
                self._last = time.monotonic(), value
            return self._last[1]

    def forget(self) -> None:
        """Compute again when asked next."""
        with self._lock:
            self._last = None
