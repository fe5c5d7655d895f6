"""Show plain training, the paper's SeqMix and the recipe few-labels on the sample corpus.

    python scripts/demo.py             # what make demo does
    python scripts/demo.py --seed 1    # with another seed

It takes minutes. It runs the arms of experiments/demo.toml side by side, one seed of each, and ends
with curves, a table, a report page and what results/demo.csv says of many seeds.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import stdev

from seqmix.app.config import Config
from seqmix.app.console import EVERY, emit, err, say
from seqmix.app.sweep.lengths import learned
from seqmix.app.sweep.spec import Experiment, Job, jobs, read_sweep
from seqmix.app.sweep.table import Row, read_results
from seqmix.app.sweep.worker import LocalPaths, StepProgress, finished, run_job
from seqmix.data.samples import sample
from seqmix.errors import RunError
from seqmix.loop.rounds import read_rounds
from seqmix.report.page import write_report
from seqmix.report.statistics import Interval, mean_interval, paired_interval
from seqmix.report.terminal import terminal_curve
from seqmix.scale.local_executor import JobEvent, cores, run_jobs

ROOT = Path(__file__).resolve().parents[1]
FILE, MEASURED = ROOT / "experiments" / "demo.toml", ROOT / "results" / "demo.csv"
PLAIN, SEQMIX, RECIPE = "plain training", "SeqMix", "few-labels"
_READING = 1.5  # seconds to read a batch of text, where a training step takes 1
Show = Callable[[str, float, float | None], None]  # what is done, the share of it, seconds left


class Work:
    """How much of the training is done, in training steps, and what is being done."""

    def __init__(self, arms: Sequence[Job]) -> None:
        self.parts = {job.arm.name: parts(job.config) for job in arms}
        self.done = dict.fromkeys(self.parts, 0.0)
        self.doing: dict[str, str] = {}
        self.start = time.monotonic()

    def on_event(self, event: JobEvent[Job]) -> None:
        """Take what a worker reports."""
        name, lengths = event.job.arm.name, self.parts[event.job.arm.name]
        if isinstance(event.value, StepProgress):
            step = event.value
            at = min(step.training, len(lengths)) - 1
            self.done[name] = sum(lengths[:at]) + lengths[at] * step.done / step.total
            rounds = event.job.config.loop.rounds
            of = f", {step.training} of {rounds + 1}" if rounds else ""
            self.doing[name] = f"{name}: {step.stage}{of}"
        elif event.kind == "done":
            self.done[name] = sum(lengths)
            self.doing.pop(name, None)

    @property
    def share(self) -> float:
        """The share of the work that is done."""
        return sum(self.done.values()) / sum(map(sum, self.parts.values()))

    @property
    def seconds_left(self) -> float | None:
        """How long the rest takes at the speed so far; None before that is known."""
        if self.share < 0.02:
            return None
        return (time.monotonic() - self.start) * (1 - self.share) / self.share


def parts(config: Config) -> list[float]:
    """The lengths of a run's trainings in their order, in training steps."""
    batch, steps = config.training.batch_size, config.training.steps_for
    lengths = [
        float(steps(learned(config, number)))
        for number in range(config.loop.rounds + 1)
        for _ in range(max(1, config.self_training.teachers))
    ]
    if config.self_training.teachers:
        lengths.append(float(config.self_training.steps or lengths[-1]))
    if config.adapt.epochs:
        text = len(sample("gazette:train"))
        lengths.insert(0, _READING * config.adapt.epochs * text / batch)
    return lengths


def run_arms(todo: Sequence[Job], out: Path) -> None:
    """Run the arms side by side, the longest first."""
    order = sorted(todo, key=lambda job: -sum(parts(job.config)))
    workers = max(1, min(len(order), cores()))
    paths = LocalPaths(out.absolute(), workers=workers)
    names = ", ".join(job.arm.name for job in order)
    say(f"training on {len(sample('gazette:train'))} sentences of the sample corpus: {names}")
    failed: list[str] = []
    with display() as show:
        work = Work(order)

        def on_event(event: JobEvent[Job]) -> None:
            work.on_event(event)
            if event.kind == "failed":
                failed.append(f"{event.job}: {event.value}")
            show("; ".join(work.doing.values()) or "starting", work.share, work.seconds_left)

        run_jobs(order, partial(run_job, paths, steps=True), workers, on_event)
    if failed:
        raise RunError("; ".join(failed))


@contextmanager
def display() -> Iterator[Show]:
    """A progress bar on a terminal, elsewhere a line every ten seconds."""
    if not err.is_terminal:
        yield lines()
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    text = TextColumn("{task.description}")
    with Progress(BarColumn(24), TaskProgressColumn(), text, console=err, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def show(what: str, share: float, left: float | None) -> None:
            bar.update(task, completed=share, description=what + ahead(left))

        yield show


def lines() -> Show:
    """What prints a line every ten seconds."""
    last = 0.0

    def show(what: str, share: float, left: float | None) -> None:
        nonlocal last
        if time.monotonic() - last >= EVERY:
            last = time.monotonic()
            say(f"{share:4.0%}  {what}{ahead(left)}")

    return show


def ahead(seconds: float | None) -> str:
    """How long it still takes, in words."""
    return "" if not seconds else f"; about {seconds:.0f} s left"


def last_f1(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """Test F1 in points at the last round, by arm and seed."""
    scores: dict[str, dict[int, float]] = {}
    for row in rows:  # in order of rounds
        scores.setdefault(str(row["arm"]), {})[int(row["seed"])] = 100 * float(row["test_f1"])
    return scores


def gain(scores: dict[str, dict[int, float]], arm: str) -> Interval:
    """The gain of an arm over plain training, paired by seed."""
    seeds = sorted(scores[arm].keys() & scores[PLAIN].keys())
    return paired_interval(
        [scores[arm][seed] for seed in seeds], [scores[PLAIN][seed] for seed in seeds]
    )


def measured(experiment: Experiment, table: Path = MEASURED) -> dict[str, dict[int, float]]:
    """Test F1 of many seeds by arm, or nothing where they were measured with other settings."""
    rows = read_results([table]) if table.exists() else []
    now = {(arm.name, arm.digest) for arm in experiment.arms}
    return last_f1(rows) if {(row["arm"], row["config"]) for row in rows} == now else {}


def verdict(scores: dict[str, dict[int, float]]) -> str:
    """What to make of one seed, given the scores of many."""
    if not scores:
        return (
            "This is one seed (seeds: 1), and says little: the spread over seeds has not been "
            "measured with these settings; seqmix sweep experiments/demo.toml measures it."
        )
    recipe, mixed = gain(scores, RECIPE), gain(scores, SEQMIX)
    above = sum(scores[RECIPE][seed] > scores[PLAIN][seed] for seed in scores[PLAIN])
    spread = stdev(scores[PLAIN].values())
    return (
        f"This is one seed (seeds: 1), and plain training alone varies by {spread:.1f} points "
        f"between seeds (standard deviation); over {recipe.n} seeds few-labels ends "
        f"{words(recipe)} above plain training, and above it in {above} of {recipe.n}, "
        f"while SeqMix differs from it by {words(mixed)}."
    )


def words(interval: Interval) -> str:
    """A mean and its interval: `4.1 points (95 % interval 3.0 to 5.2)`."""
    low, high = (f"{bound:.1f}".replace("-", "−") for bound in (interval.low, interval.high))
    mean = f"{interval.mean:.1f}".replace("-", "−")
    return f"{mean} points (95 % interval {low} to {high})"


def table(arms: Sequence[Job], out: Path, scores: dict[str, dict[int, float]]) -> str:
    """F1 at the last point of each arm, and the mean of many seeds where there is one."""
    count = len(scores.get(PLAIN, {}))
    head = f"{'':16}{'labeled':>8}{'this seed':>11}" + (
        f"{f'mean of {count}':>12}" if count else ""
    )
    rows = [head]
    for job in arms:
        last = read_rounds(out / job.folder)[-1]
        row = f"{job.arm.name:16}{last.labeled:>8}{100 * last.f1('test'):>11.1f}"
        if count:
            row += f"{mean_interval(list(scores[job.arm.name].values())).mean:>12.1f}"
        rows.append(row)
    return "\n".join(rows)


def runs_of(experiment: Experiment, seed: int, out: Path) -> list[Job]:
    """The runs of the demo, plain training first; what other settings left behind is removed."""
    names = (PLAIN, SEQMIX, RECIPE)
    arms = {job.arm.name: job for job in jobs(experiment, experiment.arms, [seed])}
    for job in arms.values():
        folder = out / job.folder
        if finished(folder) and read_rounds(folder)[0].names["config"] != job.arm.digest:
            shutil.rmtree(folder)
    return [arms[name] for name in names]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo, or show what it left."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    given = parser.parse_args(arguments)
    start = time.monotonic()
    experiment = read_sweep(FILE)
    arms = runs_of(experiment, given.seed, given.out)
    todo = [job for job in arms if not finished(given.out / job.folder)]
    if todo:
        run_arms(todo, given.out)
    folders = [given.out / job.folder for job in arms]
    page = given.out / "report.html"
    write_report(folders, page, sentences=sample("gazette:train"))
    scores = measured(experiment)
    emit(terminal_curve(folders))
    emit(f"\nTest F1\n{table(arms, given.out, scores)}\n\n{verdict(scores)}")
    emit(f"\nreport: {page}    ({time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        say("interrupted; make demo starts what was not finished again")
        sys.exit(130)
