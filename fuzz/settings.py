"""Targets: what a person writes to settle things, and what a run leaves for the next command.

The former are configs, sweeps and projects.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

from fuzz.target import BETWEEN, Finding, Target, put
from seqmix.app.config import PRESETS, Config, load_config, parse_changes
from seqmix.app.sweep.spec import jobs, parse_seeds, read_sweep
from seqmix.app.sweep.table import COLUMNS, read_results
from seqmix.errors import SeqMixError
from seqmix.report.curves import band, by_arm, load_generated, load_run, shared_split

_RUN = ("rounds.jsonl", "timings.jsonl", "generated.jsonl", "config.toml")
_SWEEP = b"""title = "Rates"
data = "gazette"
preset = "demo"
seeds = 3
[set]
"augment.rate" = 0.4
[arms.none]
"augment.variant" = "none"
[arms."sub"]
query.size = [10, 20]
[grid]
"augment.alpha" = [0.5, 2, 8]
"""
_PROJECT = b"""format_version = 1
name = "people"
tags = ["PER", "LOC"]
policy = "nte"
audit_share = 0.1
overlap_share = 0.0
batch = 10
direction = "auto"
encoder = "starter"
head = "linear"
augment = "sub"
rate = 0.2
seed = 0
"""


def targets() -> list[Target]:
    """Settings and run directories."""
    return [
        Target(
            "config",
            _config,
            lambda: [path.read_bytes() for path in sorted(PRESETS.glob("*.toml"))],
            2.0,
        ),
        Target("set", _set, _set_seeds, 2.0),
        Target("sweep", _sweep, lambda: [_SWEEP], 0.5),
        Target("seeds", _seeds, lambda: [b"10", b"5-9", b"2,4"], 0.3),
        Target("project", _project, lambda: [_PROJECT], 2.0),
        Target("run", _run, _run_seeds, 0.5),
        Target("results", _results, _result_seeds, 2.0),
    ]


def _config(data: bytes, folder: Path) -> None:
    path = folder / "config.toml"
    path.write_bytes(data)
    _same_again(load_config(None, path), folder)


def _set(data: bytes, folder: Path) -> None:
    """A change a line, on top of the demo."""
    changes = data.decode("utf-8", "surrogateescape").split("\n")[
        :20
    ]  # as Python gives the bytes of a command line
    _same_again(load_config("demo", changes=parse_changes(changes)), folder)


def _same_again(config: Config, folder: Path) -> None:
    """The resolved config is written into the run and read back: it must stay what it was."""
    path = folder / "resolved.toml"
    path.write_text(config.toml(), encoding="utf-8")
    if load_config(None, path) != config:
        raise Finding("a config is another one after it was written and read")
    if load_config(None, path).digest != config.digest:
        raise Finding("a config has another hash after it was written and read")


def _sweep(data: bytes, folder: Path) -> None:
    path = folder / "sweep.toml"
    path.write_bytes(data)
    experiment = read_sweep(path)
    for job in islice(jobs(experiment, experiment.arms, experiment.seeds), 50):
        if ".." in job.folder.parts or job.folder.is_absolute():
            raise Finding(f"a run outside the sweep's directory: {job.folder}")


def _seeds(data: bytes, folder: Path) -> None:
    if len(parse_seeds(data.decode("utf-8", "surrogateescape"))) > 10_000:
        raise Finding("more seeds than anybody runs")


def _project(data: bytes, folder: Path) -> None:
    from seqmix.serve.settings import SETTINGS, read_settings

    (folder / SETTINGS).write_bytes(data)
    settings = read_settings(folder)
    (folder / SETTINGS).write_text(settings.toml(), encoding="utf-8")
    if read_settings(folder) != settings:
        raise Finding("a project's settings are others after they were written and read")


def _run(data: bytes, folder: Path) -> None:
    """What `info` and `report` do with a run directory; a report's figures are too slow."""
    from seqmix.app.commands.files.info import info

    put(data, folder, _RUN)
    if (folder / "rounds.jsonl").exists():
        _each([lambda: _quietly(info, str(folder)), lambda: _report(folder)])


def _report(folder: Path) -> None:
    found = load_run(folder)
    load_generated(found)
    arms = by_arm([found])
    for round in found.rounds:
        _ = round.acceptance
    band(arms[found.arm], shared_split([found]))


def _results(data: bytes, folder: Path) -> None:
    path = folder / "results.csv"
    path.write_bytes(data)
    read_results([path])


def _each(actions: Iterable[Any]) -> None:
    """All of them, though one refuses the input; the first refusal is told."""
    refusals: list[SeqMixError] = []
    for action in actions:
        try:
            action()
        except SeqMixError as error:
            refusals.append(error)
    if refusals:
        raise refusals[0]


def _quietly(command: Any, *arguments: Any) -> None:
    with _silence():
        command(*arguments)


@contextmanager
def _silence() -> Iterator[None]:
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        yield
    said.getvalue().encode(sys.__stdout__.encoding if sys.__stdout__ else "utf-8")


def _set_seeds() -> list[bytes]:
    return [
        b"augment.rate=0.4\nquery.size=[10, 20]",
        b"tagger.encoder=bert\nseed=3",
        b'augment.score_range="5%,95%"',
        b"loop.warm=true",
    ]


@cache
def _run_seeds() -> tuple[bytes, ...]:
    scores = {"f1": 0.5, "precision": 0.5, "recall": 0.5, "by_type": {"PER": {"f1": 0.5}}}
    about = {
        "format_version": 1,
        "seed": 0,
        "arm": "nte+sub",
        "policy": "nte",
        "variant": "sub",
        "config": "0",
        "steps": 10,
    }
    counts = {
        "asked": 4,
        "generated": 4,
        "reason": None,
        "counts": {"scored": 8, "out of range": 2},
        "largest_share": 0.5,
        "skewness": 1.0,
    }
    rounds = [
        {**about, "round": n, "labeled": 20 + 10 * n, "tokens": 300, "spans": 30, "generated": 4,
         "chosen": ["a"], "scores": [0.5], "augmentation": counts, "agreement": None,
         "guard": None, "dev": scores, "test": scores,
         "forecast": {"gain": 0.01, "low": 0.0, "high": 0.02} if n == 0 else None,
         "stop": None if n == 0 else "all 1 rounds are done"}
        for n in (0, 1)
    ]  # fmt: skip
    timings = [{"round": n, "seconds": {"train": 1.0, "query": 0.5}} for n in (0, 1)]
    lineage = {
        "method": "sub",
        "parents": ["a", "b"],
        "windows": [[0, 2], [1, 3]],
        "into": 0,
        "weight": 0.4,
        "score": 90.0,
        "base": "e",
        "distances": [1.0],
    }
    generated = [
        {
            "round": 0,
            "id": "r0/1",
            "tokens": ["a", "b"],
            "ner_tags": ["O", {"B-X": 0.4, "O": 0.6}],
            "lineage": lineage,
        }
    ]
    files = [
        b"\n".join(json.dumps(line).encode() for line in lines) + b"\n"
        for lines in (rounds, timings, generated)
    ]
    return (BETWEEN.join([*files, b"seed = 0\n"]), BETWEEN.join([files[0], b"", b"", b""]))


def _result_seeds() -> list[bytes]:
    row = dict.fromkeys(COLUMNS, "1")
    return [f"{','.join(COLUMNS)}\n{','.join(row.values())}\n".encode()]
