"""Waiting for what happens in another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 240.0  # seconds, on a machine with other work; only a test that fails takes them


def until(condition: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Wait for something to become true, and give it."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"it did not happen within {seconds:g} s"
        time.sleep(0.05)
    return found
