"""`seqmix sweep`: the runs of a sweep file, several at a time."""

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
from seqmix.app.options import Engine
from seqmix.app.sweep.spec import Arm, Experiment, jobs, parse_seeds, read_sweep
from seqmix.app.sweep.worker import Here, inputs_of, run_job
from seqmix.data.files import clear_leftovers
from seqmix.data.locks import locked
from seqmix.errors import ConfigError
from seqmix.scale.executors import executor_of

if TYPE_CHECKING:
    from seqmix.app.sweep.state import Board


def sweep(
    file: Annotated[Path, typer.Argument(help="A sweep file, such as experiments/smoke.toml.")],
    out: Annotated[
        Path | None, typer.Option(help="The sweep's directory; one that was broken off goes on.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="The folder that holds the sweep's data folder; the sample gazette needs none."
        ),
    ] = None,
    models: Annotated[
        Path | None, typer.Option(help="The folder that holds what the sweep calls models/NAME.")
    ] = None,
    workers: Annotated[
        int, typer.Option(min=1, help="Runs at a time, each in a process of its own.")
    ] = 1,
    seeds: Annotated[
        str | None, typer.Option(help="Other seeds than the file's: 10 (0 to 9), 5-9 or 2,4.")
    ] = None,
    arms: Annotated[str | None, typer.Option(help="Only these arms: a,b.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu or cuda.")] = None,
    engine: Engine = "local",
    gpus: Annotated[
        float,
        typer.Option(
            min=0, help="Ray: the share of a GPU that each worker asks for; 0 is the CPU."
        ),
    ] = 0.0,
    limit_minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Start no run after so many minutes; finish those begun."),
    ] = None,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(
            help="Another sweep's results.csv: runs with the same config, data and seed are taken from it."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(help="Print the arms and how many runs and trainings they are, and stop."),
    ] = False,
) -> None:
    """Run the arms of an experiment with several seeds into one table of results."""
    from seqmix.app.sweep.state import Board  # here, since it loads scipy

    start = time.monotonic()
    experiment = read_sweep(file)
    chosen = experiment.chosen(arms)
    wanted = parse_seeds(seeds) if seeds is not None else experiment.seeds
    if dry_run:
        emit(
            _described(
                experiment,
                chosen,
                wanted,
                Board(experiment, out, reuse or ()) if out is not None else None,
            )
        )
        return
    if out is None:
        raise ConfigError("say where the sweep should go: --out DIRECTORY")
    run_jobs = executor_of(engine, gpus)
    for arm in chosen:
        Here(out, data, models, device).check(arm)
    inputs = inputs_of(Here(out, data, models, device), experiment.arms, chosen)
    with locked(out):
        clear_leftovers(out)
        board = Board(experiment, out, reuse or (), inputs)
        everything = jobs(experiment, chosen, wanted)
        todo = [job for job in everything if not board.has(job)]
        workers = max(1, min(workers, len(todo)))
        board.begin(everything, todo, workers)
        data, models = (
            place and place.absolute() for place in (data, models)
        )  # workers on other nodes start elsewhere
        work = partial(run_job, Here(out.absolute(), data, models, device, workers))
        try:
            with _ended_like_ctrl_c():
                left = run_jobs(
                    todo,
                    work,
                    workers,
                    board.hear,
                    lambda: limit_minutes is None or _minutes(start) < limit_minutes,
                )
        except KeyboardInterrupt:
            say(
                f"broken off with {board.before + board.done} of {len(everything)} runs finished; the same command goes on"
            )
            raise typer.Exit(130) from None
        finally:
            board.end()
        say(
            f"{board.before + board.done} of {len(everything)} runs are in {out / 'results.csv'}, {_minutes(start):.1f} min"
        )
        if left:
            say(
                f"the limit of {limit_minutes:g} minutes is reached, {len(left)} runs are left; the same command goes on with them"
            )
        if board.failed:
            say(
                f"{board.failed} runs failed, see {out / 'failed.csv'} and sweep.log beside it; the same command runs them again"
            )
            raise typer.Exit(1)


def _described(
    experiment: Experiment, arms: Sequence[Arm], seeds: Sequence[int], board: Board | None
) -> str:
    """A line an arm; runs that two arms share are counted with the first."""
    wanted = jobs(experiment, arms, seeds)
    width = max(len(arm.name) for arm in arms)
    lines = [
        f"{experiment.title}\n{'arm':<{width}}  config        runs  trainings"
        + ("" if board is None else "  finished")
    ]
    runs = trainings = there = 0
    for arm in arms:
        own = [job for job in wanted if job.arm is arm]
        trained = len(own) * training_runs(arm.config)
        ready = sum(board.has(job) for job in own) if board is not None else 0
        note = (
            ""
            if own
            else f"  shares the runs of {next(other.name for other in arms if other.home == arm.home)}"
        )
        lines.append(
            f"{arm.name:<{width}}  {arm.digest}  {len(own):>4}  {trained:>9}"
            + ("" if board is None else f"  {ready:>8}")
            + note
        )
        runs, trainings, there = runs + len(own), trainings + trained, there + ready
    total = f"{len(arms)} arms, {len(seeds)} seeds: {runs} runs, {trainings} trainings"
    return "\n".join([*lines, total + ("" if board is None else f"; {there} runs finished")])


def _minutes(start: float) -> float:
    return (time.monotonic() - start) / 60


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """A polite kill (as from `timeout` or a scheduler) ends the workers as Ctrl-C does, instead of leaving that to them."""
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
