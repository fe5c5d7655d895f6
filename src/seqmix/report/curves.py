"""Runs read back from their directories, grouped by arm, and drawn as learning curves with intervals over seeds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented
from seqmix.data.formats.base import at
from seqmix.data.formats.records import json_lines
from seqmix.errors import DataError
from seqmix.report.statistics import Curve, Interval, mean_interval

FORMAT_VERSION = 1
SPLITS = ("test", "dev")
_WHOLE = ("seed", "round", "labeled", "tokens", "spans")
_COMPUTED = tuple("=+-@\t\n")  # how a cell begins that spreadsheets take for a formula
COSTS = {"labeled": "labeled sentences", "tokens": "labeled tokens", "spans": "labeled spans"}


@dataclass(frozen=True)
class Round:
    """What one finished round cost and gave."""

    number: int
    labeled: int
    tokens: int
    spans: int
    generated: int
    scores: Mapping[str, Mapping[str, Any]]  # by split
    augmentation: Mapping[str, Any]
    seconds: Mapping[str, float]
    stop: str | None = None
    guard: Any = None

    def f1(self, split: str) -> float:
        """F1 on that split."""
        return float(self.scores[split]["f1"])

    @property
    def acceptance(self) -> float | None:
        """The share of scored sentences inside the discriminator's range; None when none was scored."""
        counts = self.augmentation.get("counts") or {}
        scored = counts.get("scored", 0)
        return 1 - counts.get("out of range", 0) / scored if scored else None


@dataclass(frozen=True)
class Run:
    """One run directory: one arm with one seed."""

    path: Path
    arm: str
    seed: int
    variant: str | None
    rounds: tuple[Round, ...]

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
    """One run directory."""
    file = path / "rounds.jsonl"
    rounds: list[Round] = []
    first: dict[str, Any] = {}
    timings = _timings(path / "timings.jsonl")
    for number, record, text in json_lines(file):
        with at(file, number, text):
            rounds.append(_round({"seconds": timings.get(_number(record)), **record}))
            first = first or record
            if (record["arm"], record["seed"]) != (first["arm"], first["seed"]):
                raise DataError(
                    f"expected arm {first['arm']!r} and seed {first['seed']} as on the first line"
                )
            if len(rounds) > 1 and rounds[-1].labeled < rounds[-2].labeled:
                raise DataError(
                    f"expected at least the {rounds[-2].labeled} labeled sentences of the round before"
                )
    if not rounds:
        raise DataError("no round is finished yet; a report needs one", file)
    return Run(path, first["arm"], first["seed"], first.get("variant"), tuple(rounds))


def _timings(file: Path) -> dict[Any, Any]:
    """Seconds by phase of each round; they stand apart, so that rounds.jsonl has the same bytes on every machine."""
    known = (
        ((record.get("round"), record.get("seconds")) for _, record, _ in json_lines(file))
        if file.exists()
        else ()
    )
    return {round: seconds for round, seconds in known if isinstance(round, int)}


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
        if all(split in round.scores for round in rounds):
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
            for split in (split for split in SPLITS if split in r.scores):
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
                            *(r.scores[split].get(figure, "") for figure in figures),
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


def _round(record: Mapping[str, Any]) -> Round:
    version = record.get("format_version")
    if version != FORMAT_VERSION:
        raise DataError(
            f"expected format_version {FORMAT_VERSION}, found {version!r}; use the seqmix that made this run, or run it again"
        )
    missing = [key for key in ("arm", *_WHOLE) if record.get(key) is None]
    if missing:
        raise DataError(f"expected a finished round with {', '.join(missing)}")
    if not isinstance(record["arm"], str) or any(type(record[key]) is not int for key in _WHOLE):
        raise DataError(
            f"expected numbers as {', '.join(_WHOLE)} of a round, whole ones, and a name as its arm"
        )
    scores = {split: record[split] for split in SPLITS if record.get(split)}
    if not scores or not all(
        isinstance(score, dict) and isinstance(score.get("f1"), int | float)
        for score in scores.values()
    ):
        raise DataError('expected "dev" or "test" with an "f1"')
    try:
        return Round(
            number=record["round"],
            labeled=record["labeled"],
            tokens=record["tokens"],
            spans=record["spans"],
            generated=int(record.get("generated") or 0),
            scores=scores,
            augmentation=_counted(record.get("augmentation") or {}),
            seconds={phase: float(spent) for phase, spent in (record.get("seconds") or {}).items()},
            stop=record.get("stop"),
            guard=record.get("guard"),
        )
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError("expected numbers where a round has numbers", text=str(error)) from error


def _counted(augmentation: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the augmentation, its counts numbers."""
    counts = {name: int(number) for name, number in (augmentation.get("counts") or {}).items()}
    return {**augmentation, "counts": counts}
