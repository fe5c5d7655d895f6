"""What the sweeps measured, as numbers: the runs of each arm by seed, paired differences with their tests, and how they are written.

F1 is in percent. A difference is taken seed by seed, over the seeds that both arms have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median

import numpy as np

from seqmix.app.sweep.spec import Arm, Experiment, read_sweep
from seqmix.app.sweep.table import Row, Runs, read_results
from seqmix.errors import DataError
from seqmix.report.statistics import (
    Curve,
    Interval,
    area_under_curve,
    holm,
    mean_interval,
    paired_permutation,
    wilcoxon,
)

LEVEL = 0.05
MARGIN = 1.0  # F1 points; less is called negligible
BENCH = "bench.csv"  # among the results, but of no sweep
Rounds = Mapping[int, Row]  # of one run, by number of labeled sentences
Measure = Callable[
    [Rounds], float | None
]  # one number of a run; None where the run does not have it


@dataclass(frozen=True)
class Series:
    """The runs of one arm, by seed."""

    runs: Mapping[int, Rounds] = field(default_factory=dict)

    def values(self, measure: Measure) -> dict[int, float]:
        """One number a seed."""
        found = {seed: measure(rounds) for seed, rounds in sorted(self.runs.items())}
        return {seed: value for seed, value in found.items() if value is not None}

    def interval(self, measure: Measure) -> Interval:
        """Mean and Student's t interval over the seeds."""
        return mean_interval(list(self.values(measure).values()))

    def only(self, seeds: Iterable[int]) -> Series:
        """The runs with these seeds."""
        return Series({seed: self.runs[seed] for seed in seeds if seed in self.runs})


def f1_at(size: int, split: str = "test") -> Measure:
    """F1 with that many labeled sentences."""
    return lambda rounds: (
        None
        if size not in rounds or rounds[size][f"{split}_f1"] is None
        else 100 * float(rounds[size][f"{split}_f1"])
    )


def area(sizes: Sequence[int], split: str = "test") -> Measure:
    """The mean height of the curve over these sizes, by trapezoids."""

    def measured(rounds: Rounds) -> float | None:
        heights = [f1_at(size, split)(rounds) for size in sizes]
        known = [height for height in heights if height is not None]
        return (
            area_under_curve(Curve(tuple(sizes), tuple(known)))
            if len(known) == len(sizes)
            else None
        )

    return measured


def mean_of(sizes: Sequence[int], split: str = "test") -> Measure:
    """The plain mean of the points at these sizes, which is how the paper averages a curve."""

    def measured(rounds: Rounds) -> float | None:
        heights = [height for size in sizes if (height := f1_at(size, split)(rounds)) is not None]
        return fmean(heights) if len(heights) == len(sizes) else None

    return measured


def by_tokens(arms: Iterable[Series]) -> tuple[tuple[int, int], Measure]:
    """The range of labeled tokens that all these runs pass through, and the mean height of the curve over it."""
    runs = [rounds for series in arms for rounds in series.runs.values()]
    low, high = (
        one(int(rounds[end(rounds)]["tokens"]) for rounds in runs)
        for one, end in ((max, min), (min, max))
    )

    def measured(rounds: Rounds) -> float | None:
        x = [int(rounds[size]["tokens"]) for size in sorted(rounds)]
        y = [f1_at(size)(rounds) for size in sorted(rounds)]
        if None in y or low >= high:
            return None
        inside = [low, *(at for at in x if low < at < high), high]
        return area_under_curve(Curve(tuple(inside), tuple(np.interp(inside, x, y).tolist())))

    return (low, high), measured


@dataclass(frozen=True)
class Difference:
    """First − second by seed, with its tests."""

    by_seed: Mapping[int, float]
    interval: Interval  # Student's t, 95 %
    wilcoxon: float
    permutation: float
    holm: tuple[float, float] = (
        math.nan,
        math.nan,
    )  # both p corrected for the other arms of the experiment
    of: int = 1  # comparisons that are corrected together

    @property
    def n(self) -> int:
        """Pairs."""
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        """Of the differences."""
        return self.interval.mean

    @property
    def won(self) -> int:
        """Seeds in which the first is higher."""
        return sum(value > 0 for value in self.by_seed.values())

    @property
    def least_p(self) -> float:
        """What no sign-flip test over so many pairs can go below, before correction."""
        return 2.0 ** (1 - self.n) if self.n else math.nan

    @property
    def could_show(self) -> bool:
        """There are pairs enough for a corrected p under the level."""
        return self.least_p * self.of < LEVEL  # NaN is not

    @property
    def negligible(self) -> bool:
        """The 90 % interval lies within the margin: two one-sided tests at 5 % both reject a larger difference."""
        interval = mean_interval(list(self.by_seed.values()), 1 - 2 * LEVEL)
        return interval.low > -MARGIN and interval.high < MARGIN  # NaN is not

    @property
    def in_every_seed(self) -> bool:
        """Each seed says the same of it."""
        return self.n > 2 and (
            self.won == self.n or all(value < 0 for value in self.by_seed.values())
        )

    @property
    def shown(self) -> bool:
        """Both tests say so after Holm's correction."""
        return all(p < LEVEL for p in self.holm)  # NaN is not

    @property
    def one_seed(self) -> int | None:
        """The seed that makes more than half of the mean, if one does."""
        total = sum(self.by_seed.values())
        most = max(self.by_seed, key=lambda seed: abs(self.by_seed[seed]), default=None)
        return (
            most
            if most is not None and self.n > 2 and self.by_seed[most] * total > total * total / 2
            else None
        )


Family = Mapping[str, Difference]  # arms that are corrected together, by name


def compare(first: Series, second: Series, measure: Measure) -> Difference:
    """First − second over the seeds that both have."""
    one, two = first.values(measure), second.values(measure)
    return judged({seed: one[seed] - two[seed] for seed in one if seed in two})


def judged(by_seed: Mapping[int, float]) -> Difference:
    """Differences with their interval and tests; the generator starts anew each time, so that a page comes out the same."""
    values, zeros = list(by_seed.values()), [0.0] * len(by_seed)
    return Difference(
        by_seed,
        mean_interval(values),
        wilcoxon(values, zeros),
        paired_permutation(values, zeros, np.random.default_rng(0)),
    )


def corrected(family: Family) -> dict[str, Difference]:
    """The same with Holm's p over the whole family."""
    ranks, flips = (
        holm([d.wilcoxon for d in family.values()]),
        holm([d.permutation for d in family.values()]),
    )
    pairs = zip(family.items(), ranks, flips, strict=True)
    return {name: replace(d, holm=(rank, flip), of=len(family)) for (name, d), rank, flip in pairs}


_LEAST = 3  # seeds


@dataclass(frozen=True)
class Measured:
    """An experiment and what there is of it."""

    experiment: Experiment
    arms: Mapping[str, Series]  # those with at least one run, in the order of the file
    borrowed: Mapping[str, str]  # arm → the experiment whose runs, of the same config, it takes
    stale: int  # runs that were made with another config than the file has now
    made: bool  # there are runs of its own

    @property
    def sizes(self) -> list[int]:
        """Numbers of labeled sentences, rising."""
        return sorted(
            {
                size
                for series in self.arms.values()
                for rounds in series.runs.values()
                for size in rounds
            }
        )

    @property
    def data(self) -> str:
        """The data set of the first arm; most experiments have one only."""
        return self.experiment.arms[0].data

    @property
    def begun(self) -> bool:
        """Most arms have too few seeds for an interval, so nothing is to be concluded."""
        return self.made and median(len(series.runs) for series in self.arms.values()) < _LEAST

    @property
    def missing(self) -> list[str]:
        """Arms without a run."""
        return [arm.name for arm in self.experiment.arms if arm.name not in self.arms]

    def arm(self, name: str) -> Arm:
        """What the file says of an arm."""
        return next(arm for arm in self.experiment.arms if arm.name == name)


def measure_all(experiments: Path, results: Path) -> dict[str, Measured]:
    """Every sweep file but the smoke test, by name, with its runs."""
    runs = read_tables(results)
    sweeps = [
        read_sweep(path) for path in sorted(experiments.glob("*.toml")) if path.stem != "smoke"
    ]
    return {experiment.name: gather(experiment, runs) for experiment in sweeps}


def read_tables(results: Path) -> Runs:
    """The runs of all the sweeps' tables in a folder; beside those there are others, as that of the fuzzer."""
    runs: Runs = {}
    tables = [
        path
        for path in sorted(results.glob("*.csv"))
        if path.read_text(encoding="utf-8").startswith("experiment,")
    ]
    for row in read_results(tables):
        runs.setdefault((row["experiment"], row["arm"], row["seed"]), []).append(row)
    return runs


def gather(experiment: Experiment, runs: Runs) -> Measured:
    """The runs of an experiment; an arm or seed that only another table has, with the same config and data, is taken from there."""
    last = sorted(
        runs.items(), key=lambda run: run[0][0].endswith("-main")
    )  # where several have it, a main experiment is named
    same = {
        (rows[0]["data"], rows[0]["config"], seed): (name, rows) for (name, _, seed), rows in last
    }
    seeds = sorted(
        {*experiment.seeds, *(seed for name, _, seed in runs if name == experiment.name)}
    )
    arms: dict[str, Series] = {}
    borrowed: dict[str, str] = {}
    stale = 0
    digests: dict[tuple[str, str], str] = {}
    for arm in experiment.arms:
        own: dict[int, Rounds] = {}
        for seed in seeds:
            source, rows = experiment.name, runs.get((experiment.name, arm.name, seed))
            if rows is None:
                source, rows = same.get((arm.data, arm.digest, seed), (source, None))
            if rows is not None:
                own[seed] = {int(row["labeled"]): row for row in rows}
                _refuse_two_corpora(digests, arm, rows[0])
                stale += rows[0]["config"] != arm.digest
                if source != experiment.name:
                    borrowed[arm.name] = source
        if own:
            arms[arm.name] = Series(own)
    made = any(name == experiment.name and arm in arms for name, arm, _ in runs)
    return Measured(experiment, arms, borrowed, stale, made)


def unknown_data(runs: Runs) -> int:
    """How many runs do not say which data they read: those of tables that were written before digests were kept."""
    return sum(rows[0]["data_digest"] is None for rows in runs.values())


def _refuse_two_corpora(digests: dict[tuple[str, str], str], arm: Arm, row: Row) -> None:
    """Refuse runs of one experiment that read different data under one name; what is unknown is let through."""
    now, key = row["data_digest"], (arm.data, arm.config.data.model_dump_json())
    if now is not None and digests.setdefault(key, now) != now:
        raise DataError(
            f"{arm.name}, seed {row['seed']} read other data called {arm.data} than another run: {now}, not {digests[key]}"
        )


def same_sentences(first: Series, second: Series, size: int) -> Series:
    """Those runs of the second that started from the sentences the first has: as many tokens and spans at that size."""

    def like(series: Series, seed: int) -> tuple[object, ...]:
        row = series.runs.get(seed, {}).get(size)
        return (seed,) if row is None else (row["tokens"], row["spans"])

    return second.only([seed for seed in second.runs if like(first, seed) == like(second, seed)])


def seen(sentences: int, steps: int, batch: int) -> int:
    """Sentences that go through so many steps: the last batch of an epoch is what is left over, so equal steps are not equal sentences."""
    epochs, more = divmod(steps, math.ceil(sentences / batch))
    return epochs * sentences + min(more * batch, sentences)
