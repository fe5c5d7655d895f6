"""Learning curves in plain text, for the end of a run in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seqmix.report.curves import Run, band, by_arm, load_runs, mean_curve, shared_split
from seqmix.report.statistics import Curve

_MARKS = "●○▲△■□◆◇"
_SHARED = "✱"
Cells = NDArray[np.str_]  # [height, columns], a character each
Bounds = tuple[float, float]


def terminal_curve(runs: Sequence[Path | Run], width: int = 80, height: int = 12) -> str:
    """Return F1 against labeled sentences as text, at most `width` columns wide."""
    loaded = [run for run in runs if isinstance(run, Run)] or load_runs(
        [Path(str(path)) for path in runs]
    )
    arms = by_arm(loaded)
    split = shared_split(loaded)
    curves = {arm: mean_curve(band(repeats, split)) for arm, repeats in arms.items()}
    columns = min(width, 80) - 8
    x = [value for curve in curves.values() for value in curve.x]
    y = [value for curve in curves.values() for value in curve.y]
    across, up = (min(x), max(x)), (min(y), max(y))
    if up[1] - up[0] < 0.01:
        up = up[0] - 0.005, up[1] + 0.005
    cells = np.full((height, columns), " ")
    for curve in curves.values():  # lines first, so that no line hides a point
        _draw_line(cells, curve, across, up)
    for mark, curve in zip(cycle(_MARKS), curves.values(), strict=False):
        _draw_points(cells, curve, mark, across, up)
    rows = [f"F1 on {split}", *_framed(cells, across, up), *_legend(curves, arms)]
    if (cells == _SHARED).any():
        rows.append(f" {_SHARED} more than one")
    return "\n".join(rows)


def _draw_line(cells: Cells, curve: Curve, across: Bounds, up: Bounds) -> None:
    places = _places(cells, curve, across)
    for column in range(places[0], places[-1] + 1):
        cells[_row(cells, float(np.interp(column, places, curve.y)), up), column] = "·"


def _draw_points(cells: Cells, curve: Curve, mark: str, across: Bounds, up: Bounds) -> None:
    places = _places(cells, curve, across)
    for column in places:
        row = _row(cells, curve.y[places.index(column)], up)
        cells[row, column] = mark if cells[row, column] in " ·" else _SHARED


def _places(cells: Cells, curve: Curve, across: Bounds) -> list[int]:
    """Return the column of each point of the curve."""
    left, right = across
    last = cells.shape[1] - 1
    return [0 if right == left else round((x - left) / (right - left) * last) for x in curve.x]


def _row(cells: Cells, y: float, up: Bounds) -> int:
    last = len(cells) - 1
    return last - round((y - up[0]) / (up[1] - up[0]) * last)


def _framed(cells: Cells, across: Bounds, up: Bounds) -> list[str]:
    """Return the rows with both axes."""
    rows = []
    last, columns = len(cells) - 1, cells.shape[1]
    for row, characters in enumerate(cells):
        value = up[1] - (up[1] - up[0]) * row / last
        edge = f"{value:6.3f}┤" if row % 3 == 0 or row == last else "      │"
        rows.append((edge + "".join(characters)).rstrip())
    left, right = f"{across[0]:.0f}", f"{across[1]:.0f}"
    title = "labeled sentences".center(columns - len(left) - len(right))
    return [*rows, "      └" + "─" * columns, f"       {left}{title}{right}"]


def _legend(curves: Mapping[str, Curve], arms: Mapping[str, Sequence[Run]]) -> list[str]:
    width = max(map(len, arms))
    rows = []
    for mark, (arm, curve) in zip(cycle(_MARKS), curves.items(), strict=False):
        gain = f"{curve.y[0]:.3f} → {curve.y[-1]:.3f} at {curve.x[-1]:.0f}"
        seeds = f", mean of {len(arms[arm])} seeds" if len(arms[arm]) > 1 else ""
        rows.append(f" {mark} {arm:{width}}  {gain}{seeds}")
    return rows
