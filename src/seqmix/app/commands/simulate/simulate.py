"""`seqmix simulate`: active learning against labeled data."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.config import Config, load_config, parse_changes, text_for
from seqmix.app.console import emit, err, say
from seqmix.app.options import settings_option
from seqmix.app.provenance import data_digests, environment, model_digests
from seqmix.app.reading.data import read_splits
from seqmix.app.tracking import tracker
from seqmix.data.samples import is_sample
from seqmix.errors import ConfigError, DataError
from seqmix.loop.events import PhaseStarted, Report, RoundFinished, RunEvent
from seqmix.loop.round_record import RoundRecord
from seqmix.query.policies import POLICIES

Data = Annotated[
    str,
    typer.Option(
        help="A folder with train, dev and test in any format read, or the sample gazette."
    ),
]
Out = Annotated[Path | None, typer.Option(help="Run directory. An interrupted run is resumed.")]
Preset = Annotated[
    str | None, typer.Option(help="conll03, ace05, genia, webpage, few-labels or demo.")
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", help="A TOML file on top of the preset.")
]
Change = Annotated[
    list[str] | None,
    settings_option("augment.rate=0.4 or query.policy=mnlp, on top of both; see docs/config.md"),
]
Seed = Annotated[int | None, typer.Option(help="Random seed: same seed, same bytes.")]
Track = Annotated[str, typer.Option(help="none, mlflow, tensorboard or wandb.")]
DryRun = Annotated[
    bool, typer.Option(help="Print the resolved config and the number of trainings, and stop.")
]


def simulate(
    data: Data,
    out: Out = None,
    preset: Preset = None,
    config_file: ConfigFile = None,
    change: Change = None,
    seed: Seed = None,
    track: Track = "none",
    dry_run: DryRun = False,
) -> None:
    """Run the whole loop on labeled data: query, label, augment, train, evaluate."""
    config = load_config(preset, config_file, parse_changes(change), seed)
    if dry_run:
        trainings = training_runs(config)
        emit(f"{config.toml()}\n# {trainings} training runs; config {config.digest}")
        return
    if out is None:
        raise ConfigError("say where the run should go: --out DIRECTORY")
    if not is_sample(data) and not Path(data).exists():
        raise DataError(
            "there is no such folder; --data must be a folder with files named "
            "train, dev and test, or the sample gazette",
            data,
        )
    from seqmix.app.plan import build_plan  # here, since it loads torch
    from seqmix.loop.run import run
    from seqmix.loop.run_inputs import start_files

    follow = tracker(track, out, config)
    splits = read_splits(data, config)
    plan = build_plan(config, splits, out / "encoder")
    digests = {**data_digests(splits), **model_digests(config)}
    if not start_files(out, text_for(out, config), environment(), digests):
        say(f"{out} has no digests of what it read: whether this is the same data is unknown")
    rounds = config.loop.rounds
    say(
        f"{config.arm}: {config.loop.seed_size} sentences, then {rounds} rounds; "
        f"{training_runs(config)} training runs"
    )
    last = run(plan, out, _reporter(rounds, follow))[-1]
    say(f"{last.stop}; {last.labeled} labeled sentences, {last.figures}; in {out}")


def training_runs(config: Config) -> int:
    """Count the trainings: the seed set, each round, teachers, committee and guard."""
    rounds, needs = config.loop.rounds, POLICIES[config.query.policy].needs
    student = 1 + config.self_training.teachers * config.self_training.generations
    members = 3 * rounds * student if "committee" in needs else 0
    guard = 2 * config.augment.guard * (rounds + 1) if config.augment.variant != "none" else 0
    table = config.augment.table == "trained" and config.augment.variant in (
        "whole",
        "sub",
        "label",
        "mention+sub",
    )
    return config.training.members * ((rounds + 1) * student + members + guard) + table


def _reporter(rounds: int, follow: Callable[[RoundRecord], None]) -> Report:
    """Return what shows round, phase, F1 and time left: on a terminal, or as plain lines."""
    start = time.monotonic()
    spinner = err.status("starting") if err.is_terminal else None
    if spinner is not None:
        spinner.start()
    first: list[int] = []

    def report(event: RunEvent) -> None:
        if isinstance(event, PhaseStarted):
            first.append(event.round)
            if spinner is not None:
                spinner.update(f"round {event.round} of {rounds}: {event.phase}")
        elif isinstance(event, RoundFinished):
            record = event.record
            follow(record)
            finished = record.number - first[0] + 1
            left = (time.monotonic() - start) / finished * (rounds - record.number)
            ahead = f", about {left:.0f} s left" if record.number < rounds else ""
            say(f"round {record.number} of {rounds}: {record.figures}{ahead}")
        elif spinner is not None:
            spinner.stop()

    return report
