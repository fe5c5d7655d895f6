"""`seqmix simulate`."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.config import Config, load_config, parse_changes, text_for
from seqmix.app.console import emit, err, say
from seqmix.app.provenance import data_digests, environment, model_digests
from seqmix.app.splits import read_splits
from seqmix.app.tracking import tracker
from seqmix.data.samples import is_sample
from seqmix.errors import ConfigError, DataError
from seqmix.query.policies import POLICIES


def simulate(
    data: Annotated[
        str,
        typer.Option(
            help="A folder with train, dev and test in any format read, or the sample gazette."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="The run directory; one that was broken off goes on.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="conll03, ace05, genia, webpage, few-labels or demo.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file on top of the preset.")] = None,
    change: Annotated[
        list[str] | None,
        typer.Option("--set", help="section.key=value on top of both, as often as needed."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same seed, same bytes.")] = None,
    track: Annotated[str, typer.Option(help="none, mlflow or tensorboard.")] = "none",
    dry_run: Annotated[
        bool,
        typer.Option(help="Print the resolved config and the number of training runs, and stop."),
    ] = False,
) -> None:
    """Run the whole loop on labeled data: query, label, augment, train, evaluate."""
    settings = load_config(preset, config, parse_changes(change), seed)
    if dry_run:
        emit(
            settings.toml()
            + f"\n# {training_runs(settings)} training runs; config {settings.digest}"
        )
        return
    if out is None:
        raise ConfigError("say where the run should go: --out DIRECTORY")
    if not is_sample(data) and not Path(data).exists():
        raise DataError(
            "there is no such folder; --data is a folder with files named train, dev and test, or the sample gazette",
            data,
        )
    from seqmix.app.plan import build_plan  # here, since it loads torch
    from seqmix.loop.run import run
    from seqmix.loop.run_inputs import start_files

    follow = tracker(track, out, settings)
    splits = read_splits(data, settings)
    plan = build_plan(settings, splits, out / "encoder")
    if not start_files(
        out,
        text_for(out, settings),
        environment(),
        {**data_digests(splits), **model_digests(settings)},
    ):
        say(
            f"{out} was started before runs kept digests of what they read: whether this is the same data is unknown"
        )
    say(
        f"{settings.arm}: {settings.loop.seed_size} sentences, then {settings.loop.rounds} rounds; {training_runs(settings)} training runs"
    )
    done = run(plan, out, _teller(settings.loop.rounds, follow))
    last = done[-1]
    figures = ", ".join(
        f"{name} F1 {100 * last[name]['f1']:.2f}" for name in ("dev", "test") if name in last
    )
    say(f"{last['stop']}; {last['labeled']} labeled sentences, {figures}; in {out}")


def training_runs(config: Config) -> int:
    """Count the trainings of a run: one for the seed set and one a round, plus teachers, committee and guard."""
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
    return (rounds + 1) * student + members + guard + table


def _teller(
    rounds: int, follow: Callable[[dict[str, Any]], None]
) -> Callable[[dict[str, Any]], None]:
    """Live progress: round, phase, F1 so far, time left; a status line on a terminal, plain lines elsewhere."""
    start = time.monotonic()
    spinner = err.status("starting") if err.is_terminal else None
    if spinner is not None:
        spinner.start()
    first: list[int] = []

    def tell(event: dict[str, Any]) -> None:
        number = event.get("round", 0)
        first.append(number)
        if event["phase"] == "round":
            follow(event["line"])
            finished = number - first[0] + 1
            left = (time.monotonic() - start) / finished * (rounds - number)
            figures = ", ".join(
                f"{name} F1 {100 * event[name]:.2f}" for name in ("dev", "test") if name in event
            )
            say(
                f"round {number} of {rounds}: {figures}"
                + (f", about {left:.0f} s left" if number < rounds else "")
            )
        elif event["phase"] == "done":
            if spinner is not None:
                spinner.stop()
        elif spinner is not None:
            spinner.update(f"round {number} of {rounds}: {event['phase']}")

    return tell
