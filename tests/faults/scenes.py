"""What is killed: commands on a few sentences of the gazette.

The encoder is so small that a whole run takes a third of a second. A scene knows how to start its
command, what a killed one must not have lost, and what the finished one has left.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from seqmix.app.cli import run
from seqmix.app.commands.scale import sweep as sweeping
from seqmix.app.console import say
from seqmix.app.trainer_process import build_parts
from seqmix.data import formats
from seqmix.data.files import LEFTOVER
from seqmix.data.samples import sample
from seqmix.errors import SeqMixError
from seqmix.loop.rounds import read_rounds
from seqmix.scale.local_executor import JobEvent
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.trainer.trainer import Trainer
from seqmix.tagger import Tagger
from tests.faults import forked
from tests.support import tiny
from tests.support.stores import count_sentences, suggestion_of, unlabeled

_MAY_DIFFER = (
    "timings.jsonl",
    "environment.json",
    "lock",
    "sweep.log",
    "results.csv",
)  # how long things took, when, and where
_SETTINGS = (
    "loop.seed_size=6", "loop.rounds=2", "query.size=4",
    "training.epochs=1", "training.batch_size=8",
    "augment.score_range=off", "augment.window=2", "augment.rate=0.5", "augment.density=0.5",
)  # fmt: skip


_STAGED = """
[training]
min_steps = 6
epochs = 1
[adapt]
epochs = 2
[self_training]
teachers = 2
steps = 6
sentences = 12
"""


class Scene(Protocol):
    """One command in a folder `root` of its own."""

    name: str
    cuts: (
        bool  # whether its power can be cut too; not with SQLite, which syncs behind Python's back
    )

    def prepare(self, root: Path) -> None: ...

    def command(self, root: Path) -> int | None: ...

    def complaints(self, root: Path, said: str) -> list[str]:
        """What a kill has spoiled, seen before anything is resumed."""
        ...

    def result(self, root: Path) -> dict[str, str]:
        """What the finished command has left, to be compared."""
        ...


@dataclass(frozen=True)
class Stage:
    """Data and an encoder for all scenes."""

    data: Path
    encoder: str

    @classmethod
    def set_up(cls, place: Path) -> Stage:
        for name, n in (("train", 40), ("dev", 6), ("test", 6)):
            short = [sentence for sentence in sample(f"gazette:{name}") if len(sentence) <= 16]
            formats.write(short[:n], place / "data" / f"{name}.conll")
        return cls(place / "data", tiny.write_masked_lm(place / "encoder"))


@dataclass(frozen=True)
class Simulate:
    stage: Stage
    name: str = "simulate"
    cuts: bool = True

    def prepare(self, root: Path) -> None:
        pass

    def command(self, root: Path) -> int:
        changes = [
            part
            for change in (f"tagger.encoder={self.stage.encoder}", *_SETTINGS)
            for part in ("--set", change)
        ]
        return run(
            ["simulate", "--data", str(self.stage.data), "--out", str(root / "run"), *changes]
        )

    def complaints(self, root: Path, said: str) -> list[str]:
        done = len(read_rounds(root / "run")) if (root / "run").exists() else 0
        finished = len(re.findall(r"^round \d+ of", said, re.MULTILINE))
        return (
            [f"{finished} rounds were said to be finished, {done} are there"]
            if done < finished
            else []
        )

    def result(self, root: Path) -> dict[str, str]:
        rounds = [
            json.loads(line)["round"]
            for line in (root / "run" / "timings.jsonl").read_text().splitlines()
        ]
        return {**_bytes(root / "run"), "timings": str(rounds)}


@dataclass(frozen=True)
class Train:
    """With `over`, an older model has the name: it must be there, whole, until the new one is."""

    stage: Stage
    over: bool = False
    cuts: bool = True

    @property
    def name(self) -> str:
        return "train over an old model" if self.over else "train"

    def prepare(self, root: Path) -> None:
        if self.over:
            self._train(root, seed=1)

    def command(self, root: Path) -> int:
        return self._train(root, seed=0)

    def complaints(self, root: Path, said: str) -> list[str]:
        model = root / "ner"
        if not model.exists():
            lost = self.over or "written to" in said
            return ["there is no model, old or new"] if lost else []
        Tagger.load(model)
        return []

    def result(self, root: Path) -> dict[str, str]:
        return _bytes(root)

    def _train(self, root: Path, seed: int) -> int:
        data, size = (
            str(self.stage.data / "train.conll"),
            ["--steps", "2", "--set", "batch_size=8", "--seed", str(seed)],
        )
        return run(
            ["train", data, "--out", str(root / "ner"), "--encoder", self.stage.encoder, *size]
        )


@dataclass(frozen=True)
class Sweep:
    """Two arms, two seeds, in one process, so that every change to the folder is counted.

    `test_dying` has real workers.
    """

    stage: Stage
    name: str = "sweep"
    cuts: bool = True

    def prepare(self, root: Path) -> None:
        changes = "\n".join(
            f'"{key}" = {value if value != "off" else json.dumps(value)}'
            for key, value in map(_pair, _SETTINGS)
        )
        arms = '[arms."none"]\n"augment.variant" = "none"\n[arms."sub"]\n'
        text = (
            'title = "T"\ndata = "data"\nseeds = 2\n[set]\n"loop.rounds" = 1\n'
            f'"tagger.encoder" = "{self.stage.encoder}"\n'
        )
        (root / "mine.toml").write_text(
            text + changes.replace('"loop.rounds" = 2\n', "") + "\n" + arms
        )

    def command(self, root: Path) -> int:
        sweeping.executor_of = lambda *engine: _one_after_another
        return run(
            [
                "sweep",
                str(root / "mine.toml"),
                "--out",
                str(root / "out"),
                "--data",
                str(self.stage.data.parent),
            ]
        )

    def complaints(self, root: Path, said: str) -> list[str]:
        finished = re.findall(r"^\d of 4 runs.*; (\w+), seed (\d): ", said, re.MULTILINE)
        runs = {
            (arm, seed): read_rounds(root / "out" / "runs" / arm / f"seed-{seed}")
            for arm, seed in finished
        }
        lost = [key for key, done in runs.items() if not done or not done[-1].stop]
        return [f"{arm}, seed {seed} was said to be finished and is not" for arm, seed in lost]

    def result(self, root: Path) -> dict[str, str]:
        with (root / "out" / "results.csv").open(newline="") as file:
            rows = [
                {key: value for key, value in row.items() if key not in ("seconds", "finished")}
                for row in csv.DictReader(file)
            ]
        return {**_bytes(root / "out"), "rows": json.dumps(rows)}


@dataclass(frozen=True)
class Background:
    """The trainer behind `annotate`, through all its stages after some answers."""

    stage: Stage
    name: str = "annotate: its trainer"
    cuts: bool = False

    def prepare(self, root: Path) -> None:
        sentences = [sentence.unlabeled() for sentence in tiny.toy(24)]
        settings = ProjectSettings(
            "toys",
            ("PER", "LOC", "ORG"),
            batch=6,
            audit_share=0.0,
            encoder=self.stage.encoder,
            augment="none",
        )
        create_project(root / "project", sentences, settings)
        (root / "project" / "training.toml").write_text(_STAGED)
        with open_project(root / "project") as own:
            add_annotator(own.store, "ada")
            for sentence in sentences[:8]:
                save_answer(own.store, sentence.id, 1, "label", [(0, 1, "PER")])

    def command(self, root: Path) -> int:
        try:
            with open_project(root / "project") as own:
                trainer = Trainer(own, replace(build_parts(own), least=4))
                trainer.clean()
                while trainer.step():
                    pass
        except SeqMixError as error:  # as `seqmix.app.trainer_process` tells it
            say(f"error: {error}")
            return 2
        return 0

    def complaints(self, root: Path, said: str) -> list[str]:
        with open_project(root / "project") as own:
            last = next(iter(read_generations(own.store, 1)), None)
            if last is not None and last.model is not None:
                Tagger.load(root / "project" / last.model)
            answers = len(current_answers(own.store))
        return [f"8 answers were given, {answers} are there"] if answers != 8 else []

    def result(self, root: Path) -> dict[str, str]:
        with open_project(root / "project") as own:
            last = read_generations(own.store, 1)[0]
            order = [
                str(suggestion_of(own.store, sentence.id)) for sentence in unlabeled(own.store)
            ]
        return {
            **_bytes(root / "project" / "models"),
            "generation": str(last.number),
            "suggestions": json.dumps(order),
        }


@dataclass(frozen=True)
class Init:
    """With `there`, the folder exists and has a file of its own: ours move in one by one."""

    stage: Stage
    there: bool = False
    cuts: bool = True  # subtle: what SQLite has written is synced once more before it moves

    @property
    def name(self) -> str:
        return "init in a folder that is there" if self.there else "init"

    def prepare(self, root: Path) -> None:
        (root / "rules.md").write_text("Mark names.\n")
        if self.there:
            (root / "project").mkdir()
            (root / "project" / "notes.txt").write_text("mine")

    def command(self, root: Path) -> int:
        if (root / "project" / "project.toml").exists():
            return 0  # it was killed when all was done; a second `init` is refused, as it must be
        given = [
            "--text",
            str(self.stage.data / "train.conll"),
            "--labels",
            "drop",
            "--tags",
            "PER,LOC",
        ]
        return run(["init", str(root / "project"), *given, "--guidelines", str(root / "rules.md")])

    def complaints(self, root: Path, said: str) -> list[str]:
        if not (root / "project" / "project.toml").exists():
            return ["it was said to be there and is not"] if "sentences to label" in said else []
        with open_project(root / "project") as own:
            return (
                []
                if count_sentences(own.store) == 40
                else [f"40 sentences were given, {count_sentences(own.store)} are there"]
            )

    def result(self, root: Path) -> dict[str, str]:
        with open_project(root / "project") as own:
            sentences = [[sentence.id, *sentence.tokens] for sentence in read_sentences(own.store)]
            order = unlabeled_ids(own.store)
        names = sorted(path.name for path in (root / "project").iterdir())
        settings = (root / "project" / "project.toml").read_text() + (
            root / "project" / "guidelines.md"
        ).read_text()
        return {"names": str(names), "settings": settings, "store": json.dumps([sentences, order])}


def scenes(stage: Stage) -> list[Scene]:
    inits = (Init(stage), Init(stage, there=True))
    return [
        Simulate(stage),
        Train(stage),
        Train(stage, over=True),
        Sweep(stage),
        *inits,
        Background(stage),
    ]


def fresh(scene: Scene, root: Path) -> None:
    """A folder in which the scene may begin."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    forked.run(lambda: scene.prepare(root), root.with_name("log"))


def leftovers(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)} was left behind"
        for path in root.rglob(".*")
        if LEFTOVER.fullmatch(path.name)
    ]


def _bytes(folder: Path) -> dict[str, str]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.name not in _MAY_DIFFER)
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def _pair(change: str) -> tuple[str, str]:
    key, _, value = change.partition("=")
    return key, value


def _one_after_another(
    todo: Sequence[Any],
    work: Callable[..., Any],
    workers: int,
    hear: Callable[[JobEvent[Any]], None],
    may_start: Callable[[], bool],
) -> list[Any]:
    for job in todo:
        try:
            value = work(job, lambda news, job=job: hear(JobEvent("emitted", job, news)))
            hear(JobEvent("done", job, value))
        except SeqMixError as error:
            hear(JobEvent("failed", job, str(error)))
    return []
