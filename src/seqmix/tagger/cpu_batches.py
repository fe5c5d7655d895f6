"""Batches side by side on the CPU: one thread each, instead of all threads on one batch.

Small matrix products waste time waiting for each other when split over cores. A batch to a core does not, and its result no longer
depends on how many cores there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

A = TypeVar("A")
B = TypeVar("B")


def side_by_side(function: Callable[[A], B], items: Sequence[A], device: torch.device) -> list[B]:
    """`[function(item) for item in items]`, on as many threads as torch would use."""
    workers = torch.get_num_threads()
    if device.type != "cpu":
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(workers)
