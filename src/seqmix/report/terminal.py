"""Learning curves in plain text, for the end of a run in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqmix.report.curves import Run, band, by_arm, load_runs, mean_curve, shared_split
from seqmix.report.statistics import Curve

_MARKS = "●○▲△■□◆◇"
_SHARED = "✱"


def terminal_curve(runs: Sequence[Path | Run], width: int = 80, height: int = 12) -> str:
    """F1 against labeled sentences, one mark an arm, at most `width` columns wide; the split is named."""
    loaded = [run for run in runs if isinstance(run, Run)] or load_runs(
        [Path(str(path)) for path in runs]
    )
    arms = by_arm(loaded)
    split = shared_split(loaded)
    curves = {arm: mean_curve(band(own, split)) for arm, own in arms.items()}
    x = [value for curve in curves.values() for value in curve.x]
    y = [value for curve in curves.values() for value in curve.y]
    low, high = min(y), max(y)
    if high - low < 0.01:
        low, high = low - 0.005, high + 0.005
    columns = min(width, 80) - 8
    cells = np.full((height, columns), " ")
    for line in ("·", ""):  # subtle: lines first, so that no line hides a point
        for mark, curve in zip(
            _MARKS * (len(curves) // len(_MARKS) + 1), curves.values(), strict=False
        ):
            _draw(cells, curve, line or mark, (min(x), max(x)), (low, high), between=bool(line))
    rows = []
    for row in range(height):
        value = high - (high - low) * row / (height - 1)
        rows.append(f"{value:6.3f}┤" if row % 3 == 0 or row == height - 1 else "      │")
        rows[-1] = (rows[-1] + "".join(cells[row])).rstrip()
    first, last = f"{min(x):.0f}", f"{max(x):.0f}"
    middle = "labeled sentences"
    rows.append("      └" + "─" * columns)
    rows.append("       " + first + middle.center(columns - len(first) - len(last)) + last)
    seeds = {arm: len(own) for arm, own in arms.items()}
    named = max(len(arm) for arm in arms)
    for mark, (arm, curve) in zip(
        _MARKS * (len(curves) // len(_MARKS) + 1), curves.items(), strict=False
    ):
        told = f" {mark} {arm:{named}}  {curve.y[0]:.3f} → {curve.y[-1]:.3f} at {curve.x[-1]:.0f}"
        rows.append(told + (f", mean of {seeds[arm]} seeds" if seeds[arm] > 1 else ""))
    if (cells == _SHARED).any():
        rows.append(f" {_SHARED} more than one")
    return "\n".join([f"F1 on {split}", *rows])


def _draw(
    cells: np.ndarray,
    curve: Curve,
    mark: str,
    across: tuple[float, float],
    up: tuple[float, float],
    between: bool,
) -> None:
    height, columns = cells.shape
    wide = across[1] - across[0]
    places = [0 if wide == 0 else round((x - across[0]) / wide * (columns - 1)) for x in curve.x]
    ats = range(places[0], places[-1] + 1) if between else places
    for at in ats:
        y = np.interp(at, places, curve.y) if between else curve.y[places.index(at)]
        row = height - 1 - round(float((y - up[0]) / (up[1] - up[0])) * (height - 1))
        taken = cells[row, at] not in " ·" and not between
        cells[row, at] = _SHARED if taken else mark
