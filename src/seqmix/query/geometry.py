"""Distances, k-means++ and k-center on rows of vectors, in bounded memory.

Distances are squared Euclidean ones unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Matrix = NDArray[np.float32]  # [n_rows, width]
Distances = NDArray[np.float64]  # [n_rows], squared


def plus_plus(away: Callable[[int], Distances], first: int, n: int, rng: Generator) -> list[int]:
    """Draw n rows as k-means++ does: weighted by the squared distance to those drawn before."""
    drawn, least = [first], away(first)
    while len(drawn) < n:
        least[drawn] = 0
        if not least.any():  # only copies are left
            least = np.ones_like(least)
            least[drawn] = 0
        drawn.append(int(rng.choice(len(least), p=least / least.sum())))
        least = np.minimum(least, away(drawn[-1]))
    return drawn


def farthest(
    rows: Matrix, away: Distances, n: int, taken: tuple[int, ...] = ()
) -> list[tuple[int, float]]:
    """Pick n rows as k-center greedy does, with their distances when they were picked."""
    picked: list[tuple[int, float]] = []
    away = away.copy()
    away[list(taken)] = -1
    while len(picked) < n:
        i = int(away.argmax())
        picked.append((i, float(away[i] ** 0.5)))
        away = np.minimum(away, squared(rows, rows[i]))
        away[i] = -1
    return picked


def squared(rows: Matrix, center: NDArray[np.float32]) -> Distances:
    """Return the squared distance of each row to a center, or to the center in the same row."""
    apart = rows - center
    return np.asarray(np.einsum("ij,ij->i", apart, apart), dtype=np.float64)


def nearest(rows: Matrix, centers: Matrix) -> tuple[NDArray[np.int64], Distances]:
    """Return the nearest center of each row and the squared distance to it."""
    at, away = np.empty(len(rows), np.int64), np.empty(len(rows))
    lengths = (centers**2).sum(axis=1)
    for start in range(0, len(rows), 1024):
        part = slice(start, start + 1024)
        at[part] = (lengths - 2 * rows[part] @ centers.T).argmin(axis=1)
        away[part] = squared(rows[part], centers[at[part]])
    return at, away


def means(rows: Matrix, of: NDArray[np.int64], centers: Matrix) -> Matrix:
    """Return the mean of each cluster; an empty cluster keeps its center."""
    from scipy.sparse import csr_array  # naming a policy needs no scipy

    sizes = np.bincount(of, minlength=len(centers))
    member = csr_array(
        (np.ones(len(rows), np.float32), of, np.arange(len(rows) + 1)),
        shape=(len(rows), len(centers)),
    )
    return np.where(
        sizes[:, None] > 0, (member.T @ rows) / np.maximum(sizes, 1)[:, None], centers
    ).astype(np.float32)
