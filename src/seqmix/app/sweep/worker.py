"""The work of a sweep: one simulated run after another, with data and models read once."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from seqmix.app.config import Config, text_for
from seqmix.app.provenance import data_digests, model_digests
from seqmix.app.reading.data import read_splits
from seqmix.app.sections import Data
from seqmix.app.stages.names import Stages, Watch
from seqmix.app.sweep.spec import Arm, Job
from seqmix.data.samples import is_sample
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, RunError, SeqMixError
from seqmix.loop.events import RoundFinished, RunEvent
from seqmix.loop.rounds import read_rounds
from seqmix.scale.local_executor import Emit

if TYPE_CHECKING:
    from seqmix.tagger.training.loop import Progress

_MODELS = "models/"
_EVERY = 0.5  # seconds between two messages about a training


@dataclass(frozen=True)
class LocalPaths:
    """Where data and models are on this machine, and its device: no part of a config's digest."""

    out: Path
    data: Path | None = None
    models: Path | None = None
    device: str | None = None
    workers: int = 1

    def folder(self, data: str) -> str:
        """Return the folder of a data set, or the name of a sample."""
        if is_sample(data) and not (self.data is not None and (self.data / data).is_dir()):
            return data
        if self.data is None or not (self.data / data).is_dir():
            where = (
                "say where the data is"
                if self.data is None
                else f"there is no folder {self.data / data}"
            )
            raise ConfigError(
                f"{where}: --data ROOT, a folder in which {data} holds train, dev and test"
            )
        return str(self.data / data)

    def local(self, config: Config) -> Config:
        """Return the config with the device and the model folders of this machine."""
        tagger = replace(
            config.tagger,
            encoder=self._model(config.tagger.encoder),
            device=self.device or config.tagger.device,
        )
        augment = replace(config.augment, lm=self._model(config.augment.lm))
        return config.model_copy(update={"tagger": tagger, "augment": augment})

    def check(self, arm: Arm) -> None:
        """Refuse an arm whose data or models are not paths."""
        self.folder(arm.data)
        self.local(arm.config)

    def _model(self, name: str) -> str:
        """Return the folder of models/NAME in --models; other names stay as they are."""
        if not name.startswith(_MODELS) or (self.models is None and Path(name).is_dir()):
            return name
        place = None if self.models is None else self.models / name.removeprefix(_MODELS)
        if place is None or not place.is_dir():
            where = "say where the models are" if place is None else f"there is no folder {place}"
            raise ConfigError(
                f"{where}: --models ROOT, a folder that holds {name.removeprefix(_MODELS)}"
            )
        return str(place)


def inputs_of(
    paths: LocalPaths, arms: Sequence[Arm], chosen: Sequence[Arm]
) -> dict[str, dict[str, str]]:
    """Return the digests of what each arm reads here; arms that are not chosen may lack data."""
    data: dict[tuple[str, Data], dict[str, str]] = {}
    models: dict[tuple[str, ...], dict[str, str]] = {}
    inputs = {}
    for arm in arms:
        try:
            folder, config = paths.folder(arm.data), paths.local(arm.config)
            key = (folder, config.data)
            names = (config.tagger.encoder, config.augment.lm)
            if key not in data:
                data[key] = data_digests(read_splits(folder, config))
            if names not in models:
                models[names] = model_digests(config)
        except SeqMixError:
            if arm in chosen:
                raise
            continue
        inputs[arm.name] = {**data[key], **models[names]}
    return inputs


@dataclass(frozen=True)
class StepProgress:
    """How far a run's training is."""

    training: int  # 1, 2, … in this run; the reading of the text counts as one
    stage: str
    done: int
    total: int


def run_job(paths: LocalPaths, job: Job, emit: Emit, steps: bool = False) -> None:
    """Run a job in its folder; models are not kept, so an interrupted run starts over.

    It emits the record of each round and, if asked, how each training proceeds.
    """
    from seqmix.app.plan import build_plan  # here, since it loads torch
    from seqmix.app.provenance import environment
    from seqmix.loop.run import run
    from seqmix.loop.run_inputs import start_files

    folder, config = paths.out / job.folder, paths.local(job.config)
    clear_run(folder)
    splits, digests = _read(paths.folder(job.arm.data), config.data)
    stages = Stages(config.self_training.teachers, _watch(emit) if steps else None)
    encoders = paths.out / "encoders"
    plan = build_plan(config, splits, encoders, stages.reading, stages.training)
    names = {**plan.names, "arm": job.arm.name, "config": job.arm.digest, "data": job.arm.data}
    plan = replace(plan, names=names, save_models=False)
    about = environment()
    device = config.tagger.device or about["device"]
    about |= {"device": device if device == "cpu" else about["device"], "workers": paths.workers}
    start_files(folder, text_for(folder, job.config), about, {**digests, **model_digests(config)})

    def report(event: RunEvent) -> None:
        if isinstance(event, RoundFinished):
            emit(event.record)

    run(plan, folder, report)


def _watch(emit: Emit) -> Watch:
    """Return what emits twice a second how far a training is, and its end."""
    numbers = count(1)
    last = 0.0

    def watch(stage: str) -> Progress:
        number = next(numbers)

        def progress(done: int, total: int, loss: float) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= _EVERY or done == total:
                last = now
                emit(StepProgress(number, stage, done, total))

        return progress

    return watch


def finished(folder: Path) -> bool:
    """Return whether a run has ended."""
    try:
        rounds = read_rounds(folder)
    except RunError:
        return False
    return bool(rounds) and rounds[-1].stop is not None


def clear_run(folder: Path) -> None:
    """Remove an interrupted run; one with models resumes, and other folders are not ours."""
    if (
        (folder / "config.toml").exists()
        and not finished(folder)
        and not any(folder.glob("rounds/*/model"))
    ):
        # renamed first, since a run that is half removed would not look like ours
        away = folder.with_name(f".{folder.name}.{os.getpid()}.old")
        shutil.rmtree(away, ignore_errors=True)
        folder.rename(away)
        shutil.rmtree(away)


@lru_cache(maxsize=4)
def _read(folder: str, data: Data) -> tuple[dict[str, list[Sentence]], dict[str, str]]:
    """Return the splits and their digests, read once for all runs of a worker."""
    splits = read_splits(folder, Config(data=data))
    return splits, data_digests(splits)
