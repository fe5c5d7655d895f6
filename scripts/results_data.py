"""Read the runs of sweeps from results/*.csv and compare arms seed by seed."""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from results_statistics import holm, is_negligible
from seqmix.query.answer_time import minutes
from seqmix.report.statistics import (
    Curve,
    Interval,
    area_under_curve,
    mean_interval,
    paired_permutation,
    wilcoxon,
)

MARGIN = 1.0  # F1 points: an effect inside ±MARGIN is called negligible
COMPILED = "2026-11-16T02"  # when runs of genia-main ended that used a compiled step; left out
CORPORA = {
    "conll03": "CoNLL-03",
    "webpage": "WebPage",
    "wnut17": "WNUT-17",
    "genia2011": "GENIA",
    "btc": "BTC",
    "wikigold": "Wikigold",
    "m2e2": "M2E2",
    "gazette": "gazette",
}
# SeqMix against plain training with as many optimizer steps: arms of a sweep, and the arm each is
# compared with, in the same sweep unless another is named before a colon.
CONTROLS = (
    ("conll03-main", r"sub|label|whole", "none"),
    ("webpage-main", r"sub|label|whole", "none"),
    ("genia-main", r"sub|label", "none"),  # `whole` generated nothing there
    ("rate", r"sub (rate=.*)", r"none \1"),
    ("score-range", r".*", "conll03-main:none"),
    ("window", r".*", "conll03-main:none"),
    ("alpha", r".*", "conll03-main:none"),
    ("table", r"sub .*", "none"),
    ("larger-lm", r".*", "conll03-main:none"),
    ("larger-encoder", r"sub", "none"),
    ("policies-slice", r"(.*) variant=sub", r"\1 variant=none"),
    ("policies-pool", r"(.*) variant=sub", r"\1 variant=none"),
    ("levers", r"sub.*", "none"),
    ("defaults", r"(.*) sub", r"\1 plain"),
    ("defaults", r"(.* mention) and sub", r"\1"),
)
RECIPE = "adapted + self-training + mention"
LADDER = {  # the recipe part by part, arms of results/defaults/defaults.csv
    "plain, linear head": "plain linear",
    "+ CRF": "plain",
    "+ an encoder adapted to the text": "adapted",
    "+ self-training": "adapted + self-training",
    "+ replaced mentions: `few-labels`": RECIPE,
    "+ SeqMix on spans": "adapted + self-training + mention and sub",
}
Row = dict[str, str]
Table = dict[str, dict[int, dict[int, Row]]]  # arm -> seed -> labeled sentences -> row


@dataclass(frozen=True)
class Comparison:
    """The difference between two arms of a sweep, paired by seed."""

    sweep: str
    arm: str
    control: str
    data: str
    measure: str  # "start" or "curve"
    differences: tuple[float, ...]
    corrected: float = math.nan  # p after Holm over all comparisons of the page

    @property
    def interval(self) -> Interval:
        """Mean and 95 % t-interval."""
        return mean_interval(self.differences)

    @property
    def p(self) -> float:
        """The larger p of Wilcoxon's test and a permutation of signs."""
        zeros = [0.0] * len(self.differences)
        flips = paired_permutation(self.differences, zeros, np.random.default_rng(0))
        return max(wilcoxon(self.differences, zeros), flips)

    @property
    def negligible(self) -> bool:
        """Two one-sided tests at 5 % both reject a difference beyond the margin."""
        return is_negligible(self.differences, MARGIN)


def read_tables(folder: Path) -> dict[str, Table]:
    """Read the runs of every sweep in a folder and in its folder `defaults`."""
    tables: dict[str, Table] = {}
    for path in sorted([*folder.glob("*.csv"), *folder.glob("defaults/*.csv")]):
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        if not rows or "experiment" not in rows[0]:
            continue
        table: Table = defaultdict(lambda: defaultdict(dict))
        for row in rows:
            if path.stem != "genia-main" or not row["finished"].startswith(COMPILED):
                table[row["arm"]][int(row["seed"])][int(row["labeled"])] = row
        tables[path.stem] = table
    return tables


def curve_of(rows: Mapping[int, Row], split: str, axis: str = "labeled") -> Curve | None:
    """Return the F1 of a run against what it cost; None where a point has none."""
    points = [(cost_of(row, axis), row[f"{split}_f1"]) for _, row in sorted(rows.items())]
    if any(f1 == "" for _, f1 in points):
        return None
    return Curve(tuple(x for x, _ in points), tuple(100 * float(f1) for _, f1 in points))


def cost_of(row: Row, axis: str) -> float:
    """Return a round's labeled sentences or tokens, or the minutes a person needs for them."""
    if axis == "minutes":
        return minutes(*(float(row[unit]) for unit in ("labeled", "tokens", "spans")))
    return float(row[axis])


def compare(
    first: Mapping[int, Mapping[int, Row]], second: Mapping[int, Mapping[int, Row]], measure: str
) -> tuple[float, ...]:
    """Return first − second in test F1 for each seed where both have the same sizes and steps."""
    differences = []
    for seed in sorted(first.keys() & second.keys()):
        pair = first[seed], second[seed]
        if pair[0].keys() != pair[1].keys() or any(
            pair[0][size]["steps"] != pair[1][size]["steps"] for size in pair[0]
        ):
            continue
        differences.append(height_of(pair[0], measure) - height_of(pair[1], measure))
    return tuple(differences)


def seqmix_comparisons(tables: Mapping[str, Table]) -> list[Comparison]:
    """Compare SeqMix with plain training in every setting that was run, corrected together."""
    comparisons = []
    for sweep, pattern, template in CONTROLS:
        for arm, runs in tables.get(sweep, {}).items():
            match = re.fullmatch(pattern, arm)
            if not match or not generated_enough(runs):
                continue
            source, _, name = match.expand(template).rpartition(":")
            control = tables[source or sweep].get(name)
            if control is None:
                continue
            first = next(iter(next(iter(runs.values())).values()))
            points = max(len(rows) for rows in runs.values())
            for measure in ("start", "curve") if points > 1 else ("start",):
                differences = compare(runs, control, measure)
                if len(differences) > 1:
                    comparisons.append(
                        Comparison(sweep, arm, name, first["data"], measure, differences)
                    )
    testable = [i for i, c in enumerate(comparisons) if len(c.differences) >= 6]
    for i, p in zip(testable, holm([comparisons[i].p for i in testable]), strict=True):
        comparisons[i] = replace(comparisons[i], corrected=p)
    return comparisons


def generated_enough(runs: Mapping[int, Mapping[int, Row]]) -> bool:
    """Whether an arm generated at least a tenth of what was asked; else it is plain training."""
    rows = [row for points in runs.values() for row in points.values()]
    return sum(int(row["generated"]) for row in rows) * 10 >= sum(int(row["asked"]) for row in rows)


def height_of(rows: Mapping[int, Row], measure: str) -> float:
    """Test F1 at a run's first point, or the mean height of its whole curve."""
    curve = curve_of(rows, "test")
    if curve is None:
        return math.nan
    return curve.y[0] if measure == "start" else area_under_curve(curve)


def scores_of(
    runs: Mapping[int, Mapping[int, Row]], size: int, split: str = "test"
) -> dict[int, float]:
    """F1 by seed with that many labeled sentences."""
    return {
        seed: 100 * float(points[size][f"{split}_f1"])
        for seed, points in runs.items()
        if size in points
    }
