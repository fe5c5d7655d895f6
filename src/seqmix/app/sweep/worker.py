"""What a worker of a sweep does: one simulated run after another, with data and models read once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from seqmix.app.config import Config, text_for
from seqmix.app.provenance import data_digests, model_digests
from seqmix.app.sections import Data
from seqmix.app.splits import read_splits
from seqmix.app.sweep.spec import Arm, Job
from seqmix.data.samples import is_sample
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, RunError, SeqMixError
from seqmix.loop.events import Event as RunEvent
from seqmix.loop.events import RoundFinished
from seqmix.loop.rounds import read_rounds
from seqmix.scale.local_executor import Emit

_MODELS = "models/"


@dataclass(frozen=True)
class Here:
    """What differs between machines and is no part of a config's hash: where things lie, and what computes."""

    out: Path
    data: Path | None = None
    models: Path | None = None
    device: str | None = None
    workers: int = 1

    def folder(self, data: str) -> str:
        """The folder of a data set, or the name of a sample."""
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
        """The config with the device and the model folders of this machine."""
        tagger = replace(
            config.tagger,
            encoder=self._model(config.tagger.encoder),
            device=self.device or config.tagger.device,
        )
        augment = replace(config.augment, lm=self._model(config.augment.lm))
        return config.model_copy(update={"tagger": tagger, "augment": augment})

    def check(self, arm: Arm) -> None:
        """Refuse now what a worker would refuse in an hour."""
        self.folder(arm.data)
        self.local(arm.config)

    def _model(self, name: str) -> str:
        """`models/distilbert` is the folder distilbert in --models; other names are what they are for simulate."""
        if not name.startswith(_MODELS) or (self.models is None and Path(name).is_dir()):
            return name
        place = None if self.models is None else self.models / name.removeprefix(_MODELS)
        if place is None or not place.is_dir():
            where = "say where the models are" if place is None else f"there is no folder {place}"
            raise ConfigError(
                f"{where}: --models ROOT, a folder that holds {name.removeprefix(_MODELS)}"
            )
        return str(place)


def inputs_of(here: Here, arms: Sequence[Arm], chosen: Sequence[Arm]) -> dict[str, dict[str, str]]:
    """The digests of what each arm reads on this machine, by its name; arms that are not chosen may lack their data here."""
    data: dict[tuple[str, Data], dict[str, str]] = {}
    models: dict[tuple[str, ...], dict[str, str]] = {}
    found = {}
    for arm in arms:
        try:
            place, config = here.folder(arm.data), here.local(arm.config)
            key = (place, config.data)
            named = (config.tagger.encoder, config.augment.lm)
            if key not in data:
                data[key] = data_digests(read_splits(place, config))
            if named not in models:
                models[named] = model_digests(config)
        except SeqMixError:
            if arm in chosen:
                raise
            continue
        found[arm.name] = {**data[key], **models[named]}
    return found


def run_job(here: Here, job: Job, emit: Emit) -> None:
    """One run in its folder. Models are not kept, so a run that was broken off starts over."""
    from seqmix.app.plan import build_plan  # here, since it loads torch
    from seqmix.app.provenance import environment
    from seqmix.loop.run import run
    from seqmix.loop.run_inputs import start_files

    folder, config = here.out / job.folder, here.local(job.config)
    _clear(folder)
    splits, digests = _read(here.folder(job.arm.data), config.data)
    plan = build_plan(config, splits, here.out / "encoders")
    names = {**plan.names, "arm": job.arm.name, "config": job.arm.digest, "data": job.arm.data}
    plan = replace(plan, names=names, save_models=False)
    about = environment()
    device = config.tagger.device or about["device"]
    about |= {"device": device if device == "cpu" else about["device"], "workers": here.workers}
    start_files(folder, text_for(folder, job.config), about, {**digests, **model_digests(config)})

    def report(event: RunEvent) -> None:
        if isinstance(event, RoundFinished):
            emit(event.record)

    run(plan, folder, report)


def finished(folder: Path) -> bool:
    """Whether a run went to its end."""
    try:
        done = read_rounds(folder)
    except RunError:
        return False
    return bool(done) and done[-1].stop is not None


def _clear(folder: Path) -> None:
    """Make room for a run that starts over. subtle: one with models goes on where it was, and what is no run is not ours to remove."""
    if (
        (folder / "config.toml").exists()
        and not finished(folder)
        and not any(folder.glob("rounds/*/model"))
    ):
        away = folder.with_name(
            f".{folder.name}.{os.getpid()}.old"
        )  # subtle: one that is half removed would look like no run of ours
        shutil.rmtree(away, ignore_errors=True)
        folder.rename(away)
        shutil.rmtree(away)


@lru_cache(maxsize=4)
def _read(folder: str, data: Data) -> tuple[dict[str, list[Sentence]], dict[str, str]]:
    """The splits and their digests, once for all runs of a worker."""
    splits = read_splits(folder, Config(data=data))
    return splits, data_digests(splits)
