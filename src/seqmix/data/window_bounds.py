"""Which words each window of a long sentence shows, and in which of them a word is read.

This file needs numpy only: it travels with taggers that are exported for spaCy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def window_bounds(edges: Ints, room: int, overlap: int) -> list[tuple[int, int]]:
    """Return the first and one-past-last word of each window."""
    n = len(edges) - 1
    bounds, first = [], 0
    while True:
        last = int(np.searchsorted(edges, edges[first] + room, side="right")) - 1
        bounds.append((first, last))
        if last >= n:
            return bounds
        first = max(first + 1, int(np.searchsorted(edges, edges[last] - overlap, side="left")))


def window_owners(edges: Ints, bounds: list[tuple[int, int]]) -> Ints:
    """Return the window that reads each word; an overlap is halved between its two windows."""
    owner = np.zeros(len(edges) - 1, dtype=np.int64)
    for number in range(1, len(bounds)):
        middle = (edges[bounds[number][0]] + edges[bounds[number - 1][1]]) / 2
        first = max(int(np.searchsorted(edges[:-1], middle)), bounds[number][0])
        owner[min(first, bounds[number - 1][1]) : bounds[number][1]] = number
    return owner
