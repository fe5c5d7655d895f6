"""`seqmix sweep`: run the arms of an experiment, several at a time."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from seqmix.app.commands.simulate.simulate import training_runs
from seqmix.app.console import emit, say
from seqmix.app.options import Device, Engine
from seqmix.app.sweep.spec import Arm, Experiment, jobs, parse_seeds, read_sweep
from seqmix.app.sweep.worker import LocalPaths, inputs_of, run_job
from seqmix.data.files import clear_leftovers, locked
from seqmix.errors import ConfigError
from seqmix.scale.executors import executor_of

if TYPE_CHECKING:
    from seqmix.app.sweep.state import SweepState

USUAL_SD = (0.8, 2.0)  # of paired differences in F1, as measured at 200 sentences (docs/results.md)


File = Annotated[Path, typer.Argument(help="A sweep file, such as experiments/smoke.toml.")]
Out = Annotated[
    Path | None, typer.Option(help="The sweep's directory; an interrupted sweep is resumed.")
]
DataRoot = Annotated[
    Path | None,
    typer.Option(help="Folder that holds the sweep's data folder; the sample gazette needs none."),
]
Models = Annotated[
    Path | None, typer.Option(help="Folder that holds what the sweep calls models/NAME.")
]
Workers = Annotated[
    int, typer.Option(min=1, help="Number of runs at a time, each in its own process.")
]
Seeds = Annotated[
    str | None,
    typer.Option(help="Seeds to run instead of the file's: 10 (0 to 9), 5-9 or 2,4."),
]
Arms = Annotated[str | None, typer.Option(help="Run these arms only: a,b.")]
Gpus = Annotated[
    float,
    typer.Option(min=0, help="Ray: share of a GPU per worker; 0 is the CPU."),
]
LimitMinutes = Annotated[
    float | None,
    typer.Option(min=0, help="Start no run after this many minutes; finish the running ones."),
]
Reuse = Annotated[
    list[Path] | None,
    typer.Option(
        help="Another sweep's results.csv; runs with the same config, data and seed are "
        "taken from it."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        help="Print the arms, the number of runs and trainings, and the effect the seeds can show."
    ),
]


def sweep(
    file: File,
    out: Out = None,
    data: DataRoot = None,
    models: Models = None,
    workers: Workers = 1,
    seeds: Seeds = None,
    arms: Arms = None,
    device: Device = None,
    engine: Engine = "local",
    gpus: Gpus = 0.0,
    limit_minutes: LimitMinutes = None,
    reuse: Reuse = None,
    dry_run: DryRun = False,
) -> None:
    """Run the arms of an experiment with several seeds into one table of results."""
    from seqmix.app.sweep.state import SweepState

    experiment = read_sweep(file)
    selected = experiment.chosen(arms)
    seed_list = parse_seeds(seeds) if seeds is not None else experiment.seeds
    if dry_run:
        state = SweepState(experiment, out, reuse or ()) if out is not None else None
        emit(_describe(experiment, selected, seed_list, state))
        return
    if out is None:
        raise ConfigError("say where the sweep should go: --out DIRECTORY")
    start = time.monotonic()
    run_jobs = executor_of(engine, gpus)
    paths = LocalPaths(out, data, models, device)
    for arm in selected:
        paths.check(arm)
    inputs = inputs_of(paths, experiment.arms, selected)
    with locked(out):
        clear_leftovers(out)
        state = SweepState(experiment, out, reuse or (), inputs)
        all_jobs = jobs(experiment, selected, seed_list)
        todo = [job for job in all_jobs if not state.has(job)]
        workers = max(1, min(workers, len(todo)))
        # absolute, since workers on other nodes start elsewhere
        data, models = (folder and folder.absolute() for folder in (data, models))
        work = partial(run_job, LocalPaths(out.absolute(), data, models, device, workers))
        state.begin(all_jobs, todo, workers)
        with _interruptible(state, len(all_jobs)):
            may_start = partial(_in_time, start, limit_minutes)
            left = run_jobs(todo, work, workers, state.on_event, may_start)
        _report(state, len(all_jobs), len(left), out, limit_minutes, start)


def _in_time(start: float, limit_minutes: float | None) -> bool:
    return limit_minutes is None or _minutes(start) < limit_minutes


@contextmanager
def _interruptible(state: SweepState, total: int) -> Iterator[None]:
    """End the state whatever happens; an interrupted sweep says how to resume it."""
    try:
        with _stop_on_sigterm():
            yield
    except KeyboardInterrupt:
        say(
            f"interrupted with {state.before + state.done} of {total} runs finished; "
            "the same command resumes"
        )
        raise typer.Exit(130) from None
    finally:
        state.end()


def _report(
    state: SweepState, total: int, left: int, out: Path, limit_minutes: float | None, start: float
) -> None:
    """Print what is finished, what is left and what failed."""
    finished = state.before + state.done
    say(f"{finished} of {total} runs are in {out / 'results.csv'}, {_minutes(start):.1f} min")
    if left:
        say(
            f"the limit of {limit_minutes:g} minutes is reached with {left} runs left; "
            "the same command resumes"
        )
    if state.failed:
        say(
            f"{state.failed} runs failed, see {out / 'failed.csv'} and sweep.log beside it; "
            "the same command runs them again"
        )
        raise typer.Exit(1)


def _describe(
    experiment: Experiment, arms: Sequence[Arm], seeds: Sequence[int], state: SweepState | None
) -> str:
    """Return one line per arm, the totals, and the effect that this number of seeds can show."""
    all_jobs = jobs(experiment, arms, seeds)
    width = max(len(arm.name) for arm in arms)
    header = f"{'arm':<{width}}  config        runs  trainings" + ("  finished" if state else "")
    lines = [experiment.title, header]
    runs = trainings = finished = 0
    for arm in arms:
        arm_jobs = [job for job in all_jobs if job.arm is arm]
        arm_trainings = len(arm_jobs) * training_runs(arm.config)
        line = f"{arm.name:<{width}}  {arm.digest}  {len(arm_jobs):>4}  {arm_trainings:>9}"
        if state is not None:
            ready = sum(state.has(job) for job in arm_jobs)
            line += f"  {ready:>8}"
            finished += ready
        if not arm_jobs:
            line += f"  shares the runs of {next(a.name for a in arms if a.home == arm.home)}"
        lines.append(line)
        runs, trainings = runs + len(arm_jobs), trainings + arm_trainings
    total = f"{len(arms)} arms, {len(seeds)} seeds: {runs} runs, {trainings} trainings"
    if state is not None:
        total += f"; {finished} runs finished"
    return "\n".join([*lines, total, _power(len(seeds))])


def _power(seeds: int) -> str:
    """Return what differences between two arms this number of seeds can show."""
    from seqmix.report.statistics import detectable_difference

    if seeds < 2:
        return "one seed shows no difference between arms"
    low, high = (detectable_difference(seeds, sd) for sd in USUAL_SD)
    text = (
        f"{seeds} seeds show a difference between two arms with 80 % power if it is at least "
        f"{low:.1f} to {high:.1f} F1 "
        f"(standard deviation of differences {USUAL_SD[0]} to {USUAL_SD[1]})"
    )
    if seeds < 6:
        text += "; with fewer than 6 pairs Wilcoxon's test cannot be significant"
    return text


def _minutes(start: float) -> float:
    return (time.monotonic() - start) / 60


@contextmanager
def _stop_on_sigterm() -> Iterator[None]:
    """Let SIGTERM, as from `timeout` or a scheduler, stop the workers as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, old)
