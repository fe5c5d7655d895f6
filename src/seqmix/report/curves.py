"""Runs read back from their directories, grouped by arm, and drawn as learning curves with intervals over seeds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented
from seqmix.data.formats.base import at
from seqmix.data.formats.records import json_lines
from seqmix.errors import DataError
from seqmix.loop.round_record import RoundRecord
from seqmix.loop.rounds import read_rounds, read_timings
from seqmix.report.statistics import Curve, Interval, mean_interval

SPLITS = ("test", "dev")
_COMPUTED = tuple("=+-@\t\n")  # how a cell begins that spreadsheets take for a formula
COSTS = {"labeled": "labeled sentences", "tokens": "labeled tokens", "spans": "labeled spans"}


@dataclass(frozen=True)
class Run:
    """One run directory: one arm with one seed."""

    path: Path
    arm: str
    seed: int
    variant: str | None
    rounds: tuple[RoundRecord, ...]
    seconds: Mapping[int, Mapping[str, float]]  # by round and phase

    @property
    def augmented(self) -> bool:
        """Sentences were generated, or were meant to be."""
        return self.variant not in (None, "", "none") or any(
            round.generated for round in self.rounds
        )


@dataclass(frozen=True)
class Point:
    """One place on an arm's curve: mean cost, and F1 over the seeds."""

    x: float
    f1: Interval


def load_runs(paths: Iterable[Path]) -> list[Run]:
    """The runs in the order given; the same directory twice is read once, the same arm and seed in two directories is refused."""
    runs = [load_run(path) for path in {path.resolve(): path for path in paths}.values()]
    if not runs:
        raise DataError("expected at least one run directory")
    seen: dict[tuple[str, int], Path] = {}
    for run in runs:
        twin = seen.setdefault((run.arm, run.seed), run.path)
        if twin != run.path:
            raise DataError(
                f"arm {run.arm!r} with seed {run.seed} is also in {twin}; a repetition needs a seed of its own",
                run.path,
            )
    return runs


def load_run(path: Path) -> Run:
    """Return the run of a directory."""
    file, rounds = path / "rounds.jsonl", read_rounds(path)
    if not rounds:
        raise DataError("no round is finished yet; a report needs one", file)
    first = rounds[0]
    arm = first.names.get("arm")
    if not isinstance(arm, str):
        raise DataError("every line must name its arm", file, 1)
    for line, (before, record) in enumerate(pairwise([first, *rounds]), 1):
        if (record.names.get("arm"), record.seed) != (arm, first.seed):
            why = f"arm {arm!r} and seed {first.seed} as on the first line"
        elif record.labeled < before.labeled:
            why = f"at least the {before.labeled} labeled sentences of the round before"
        elif not record.results:
            why = '"dev" or "test" with an "f1"'
        else:
            continue
        raise DataError(f"expected {why}", file, line)
    return Run(path, arm, first.seed, first.names.get("variant"), tuple(rounds), read_timings(path))


def load_generated(run: Run) -> list[tuple[int, Augmented]]:
    """The generated sentences of a run, each with its round; none where the run made none."""
    file = run.path / "generated.jsonl"
    if not file.exists():
        return []
    found = []
    for number, record, text in json_lines(file):
        with at(file, number, text):
            found.append((_number(record), Augmented.from_record(record)))
    return found


def _number(record: Mapping[str, Any]) -> int:
    number = record.get("round", 0)
    if type(number) is not int:
        raise DataError('expected "round" to be a whole number')
    return number


def by_arm(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Repetitions together, by seed; arms in the order in which they came."""
    arms: dict[str, list[Run]] = {}
    for run in runs:
        arms.setdefault(run.arm, []).append(run)
    return {arm: sorted(own, key=lambda run: run.seed) for arm, own in arms.items()}


def baseline(arms: Mapping[str, Sequence[Run]]) -> str:
    """The arm named "none", else the first without augmentation, else the first."""
    if "none" in arms:
        return "none"
    return next(
        (arm for arm, runs in arms.items() if not any(run.augmented for run in runs)),
        next(iter(arms)),
    )


def shared_split(runs: Iterable[Run]) -> str:
    """Test where every round was scored on it, else dev."""
    rounds = [round for run in runs for round in run.rounds]
    for split in SPLITS:
        if all(split in round.results for round in rounds):
            return split
    raise DataError(
        "these runs were not all scored on the same split; report those with test scores and those with dev scores apart"
    )


def aligned(runs: Sequence[Run]) -> list[Run]:
    """The same runs cut to the numbers of labeled sentences that all of them reached, so that like is compared with like."""
    common = set.intersection(*({round.labeled for round in run.rounds} for run in runs))
    if not common:
        raise DataError(
            f"{', '.join(str(run.path) for run in runs)}: no number of labeled sentences is common to all; report them apart"
        )
    return [
        replace(
            run, rounds=tuple({r.labeled: r for r in run.rounds if r.labeled in common}.values())
        )
        for run in runs
    ]


def curve(run: Run, split: str, against: str = "labeled") -> Curve:
    """One run's F1 against labeled sentences, tokens or spans."""
    return Curve(
        tuple(float(getattr(r, against)) for r in run.rounds),
        tuple(r.f1(split) for r in run.rounds),
    )


def band(runs: Sequence[Run], split: str, against: str = "labeled") -> list[Point]:
    """The arm's mean curve with its interval at each number of labeled sentences; tokens and spans are averaged over the seeds."""
    each = [curve(run, split, against) for run in aligned(runs)]
    xs = zip(*(one.x for one in each), strict=True)
    ys = zip(*(one.y for one in each), strict=True)
    return [Point(sum(x) / len(x), mean_interval(y)) for x, y in zip(xs, ys, strict=True)]


def mean_curve(points: Sequence[Point]) -> Curve:
    """A band without its intervals."""
    return Curve(tuple(point.x for point in points), tuple(point.f1.mean for point in points))


def as_csv(runs: Iterable[Run]) -> str:
    """Every round of every run, one line a split."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    figures = ("f1", "precision", "recall", "macro_f1")
    writer.writerow(
        ["arm", "seed", "round", "labeled", "tokens", "spans", "generated", "split", *figures]
    )
    for run in runs:
        for r in run.rounds:
            for split in (split for split in SPLITS if split in r.results):
                start = [
                    run.arm,
                    run.seed,
                    r.number,
                    r.labeled,
                    r.tokens,
                    r.spans,
                    r.generated,
                    split,
                ]
                writer.writerow(
                    [
                        _inert(cell)
                        for cell in (
                            *start,
                            *(r.results[split].get(figure, "") for figure in figures),
                        )
                    ]
                )
    return out.getvalue()


def _inert(cell: Any) -> Any:
    """The cell, a text that a spreadsheet would compute behind an apostrophe: arms, and what stands for figures, may be a stranger's."""
    if cell is None or isinstance(cell, int | float):
        return cell
    text = str(cell).replace(
        "\r", " "
    )  # subtle: csv leaves a lone \r unquoted, and what follows it would begin a row
    return f"'{text}" if text[:1] in _COMPUTED else text
