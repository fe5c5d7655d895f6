"""Runs read from their directories, by arm, and their learning curves with intervals over seeds."""

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
_COMPUTED = tuple("=+-@\t\n")  # what spreadsheets take for the start of a formula
COSTS = {
    "labeled": "labeled sentences",
    "tokens": "labeled tokens",
    "spans": "labeled spans",
    "minutes": "minutes of a person (0.33 s a token, 4.5 s a span)",
}


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
        """Whether sentences were generated or meant to be."""
        return self.variant not in (None, "", "none") or any(
            round.generated for round in self.rounds
        )


@dataclass(frozen=True)
class CurvePoint:
    """A point of an arm's curve: mean cost, and F1 over the seeds."""

    x: float
    f1: Interval


def load_runs(paths: Iterable[Path]) -> list[Run]:
    """Read runs in order, each directory once; refuse two with the same arm and seed."""
    runs = [load_run(path) for path in {path.resolve(): path for path in paths}.values()]
    if not runs:
        raise DataError("expected at least one run directory")
    seen: dict[tuple[str, int], Path] = {}
    for run in runs:
        twin = seen.setdefault((run.arm, run.seed), run.path)
        if twin != run.path:
            raise DataError(
                f"arm {run.arm!r} with seed {run.seed} is also in {twin}; "
                "a repetition needs another seed",
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
    """Return the generated sentences of a run, each with its round."""
    file = run.path / "generated.jsonl"
    if not file.exists():
        return []
    generated = []
    for number, record, text in json_lines(file):
        with at(file, number, text):
            generated.append((_number(record), Augmented.from_record(record)))
    return generated


def _number(record: Mapping[str, Any]) -> int:
    number = record.get("round", 0)
    if type(number) is not int:
        raise DataError('expected "round" to be a whole number')
    return number


def by_arm(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Group runs by arm, each group in order of seeds."""
    arms: dict[str, list[Run]] = {}
    for run in runs:
        arms.setdefault(run.arm, []).append(run)
    return {arm: sorted(group, key=lambda run: run.seed) for arm, group in arms.items()}


def baseline(arms: Mapping[str, Sequence[Run]]) -> str:
    """Return the arm named "none", else the first without augmentation, else the first."""
    if "none" in arms:
        return "none"
    return next(
        (arm for arm, runs in arms.items() if not any(run.augmented for run in runs)),
        next(iter(arms)),
    )


def shared_split(runs: Iterable[Run]) -> str:
    """Return test if every round was scored on it, else dev."""
    rounds = [round for run in runs for round in run.rounds]
    for split in SPLITS:
        if all(split in round.results for round in rounds):
            return split
    raise DataError(
        "these runs were not all scored on the same split; "
        "report those with test scores and those with dev scores separately"
    )


def aligned(runs: Sequence[Run]) -> list[Run]:
    """Cut the runs to the numbers of labeled sentences that all of them reached."""
    common = set.intersection(*({round.labeled for round in run.rounds} for run in runs))
    if not common:
        paths = ", ".join(str(run.path) for run in runs)
        raise DataError(
            f"{paths}: no number of labeled sentences is common to all; report them separately"
        )
    return [
        replace(
            run, rounds=tuple({r.labeled: r for r in run.rounds if r.labeled in common}.values())
        )
        for run in runs
    ]


def curve(run: Run, split: str, against: str = "labeled") -> Curve:
    """Return the F1 of a run against labeled sentences, tokens, spans or minutes."""
    return Curve(
        tuple(float(getattr(r, against)) for r in run.rounds),
        tuple(r.f1(split) for r in run.rounds),
    )


def band(runs: Sequence[Run], split: str, against: str = "labeled") -> list[CurvePoint]:
    """Return the mean F1 of an arm with its interval at each number of labeled sentences.

    Tokens, spans and minutes are averaged over the seeds.
    """
    curves = [curve(run, split, against) for run in aligned(runs)]
    xs = zip(*(line.x for line in curves), strict=True)
    ys = zip(*(line.y for line in curves), strict=True)
    return [CurvePoint(sum(x) / len(x), mean_interval(y)) for x, y in zip(xs, ys, strict=True)]


def mean_curve(points: Sequence[CurvePoint]) -> Curve:
    """Return a band without its intervals."""
    return Curve(tuple(point.x for point in points), tuple(point.f1.mean for point in points))


def as_csv(runs: Iterable[Run]) -> str:
    """Return all rounds of all runs as CSV, one line per split."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    figures = ("f1", "precision", "recall", "macro_f1")
    writer.writerow(
        ["arm", "seed", "round", "labeled", "tokens", "spans", "generated", "split", *figures]
    )
    for run in runs:
        for r in run.rounds:
            for split in (split for split in SPLITS if split in r.results):
                costs = (r.number, r.labeled, r.tokens, r.spans, r.generated)
                values = (r.results[split].get(figure, "") for figure in figures)
                writer.writerow(map(_inert, (run.arm, run.seed, *costs, split, *values)))
    return out.getvalue()


def _inert(cell: Any) -> Any:
    """Return a cell with an apostrophe before text that a spreadsheet would compute."""
    if cell is None or isinstance(cell, int | float):
        return cell
    # csv leaves a lone \r unquoted, and what follows it would begin a row
    text = str(cell).replace("\r", " ")
    return f"'{text}" if text[:1] in _COMPUTED else text
