"""Every generator that the loop and its drivers draw from, in one table."""

from __future__ import annotations

import numpy as np

_PHASES = {  # never renumber: the numbers are part of what a seed means
    "seed": 0,
    "query": 1,
    "augment": 2,
    "train": 3,
    "committee": 4,
    "stop": 5,
    "lessons": 6,
    "doubts": 7,
    "project": 77,
    "guard": 99,
}
_TABLE_ROUND = 98  # of the generator of tables that are trained before round 0


def generator(seed: int, round: int, phase: str) -> np.random.Generator:
    """Return the generator of one phase of one round.

    None depends on another, so a run can be resumed from any of them.
    """
    return np.random.default_rng([seed, round, _PHASES[phase]])


def table_generator(seed: int) -> np.random.Generator:
    """Return the generator of the table {W, E}; numpy pads seeds with zeros, so phase 0 is none."""
    return np.random.default_rng([seed, _TABLE_ROUND])
