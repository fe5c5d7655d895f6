"""The later stages of a project's models, worked on while no model is due.

    stage 2   the encoder reads the text of the project: once, and again when there is twice as much
    stage 3   teachers tag unlabeled sentences, from which later models learn too; again when a
              tenth of the answers is new to them

A stage takes minutes, so a model that is due is trained between two of its steps, and then the
stage resumes. After each of these models, the stage has half as long as that took for itself;
models are never later than that, and the stage ends even while people answer quickly.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from seqmix.errors import DataError, ModelError, SeqMixError, StoreError
from seqmix.loop.pool import Pool
from seqmix.loop.seeds import generator
from seqmix.serve.project import Project
from seqmix.serve.project_status import WAITING
from seqmix.serve.settings import read_settings
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.records import Counts, Generation
from seqmix.serve.trainer.clock import Report
from seqmix.serve.trainer.labels import count_touched, read_labels, sample_pool, without_vetoed
from seqmix.serve.trainer.lessons import TEACHERS, Lessons, read_lessons, write_lessons
from seqmix.serve.trainer.parts import Parts

PLAIN, READ, TAUGHT = 1, 2, 3
_NEWS = 0.1  # share of the labeled sentences that must be new to the teachers
LOOK_EVERY = 1.0  # seconds between two looks at the answers
SHARE = 0.5  # of the time a model took, the stage has for itself afterwards


class InterruptedStageError(Exception):
    """A stage ends early: the project has changed, or a model that was due failed."""


def has_changed(project: Project) -> bool:
    """Whether the trainer must open the project again: for a new tag, or another augmentation."""
    if project.store.read_tags() != project.settings.tags:
        return True
    with suppress(SeqMixError):  # a project.toml that cannot be read counts when it can
        settings, before = read_settings(project.folder), project.settings
        return (settings.augment, settings.rate) != (before.augment, before.rate)
    return False


@dataclass(frozen=True)
class Basis:
    """What models rest on beside the answers."""

    encoder: str = ""
    lessons: Lessons | None = None

    @property
    def stage(self) -> int:
        """The stage of models on this basis."""
        return TAUGHT if self.lessons is not None else READ if self.encoder else PLAIN

    @property
    def name(self) -> str:
        """What tells this basis from others."""
        return self.encoder + (f"+{self.lessons.name}" if self.lessons is not None else "")


class Trainer(Protocol):
    """What the stages ask of the trainer."""

    project: Project
    parts: Parts

    @property
    def report(self) -> Report:
        """Tell people what it does."""
        ...

    @property
    def write(self) -> Callable[[Callable[[], None]], None]:
        """Run what locks the store."""
        ...

    @property
    def say(self) -> Report:
        """Write a line to the log."""
        ...

    def last(self) -> Generation | None:
        """Return the newest generation."""
        ...

    def due(self, last: Generation | None, counts: Counts) -> bool:
        """Whether there is a model to train now."""
        ...

    def train(self, last: Generation | None, counts: Counts) -> bool:
        """Train the next generation."""
        ...

    def train_due(self, last: Generation | None, counts: Counts) -> bool:
        """Train the model that is due."""
        ...


@dataclass
class LaterStages:
    """Works on stages 2 and 3 of a trainer's models."""

    trainer: Trainer
    _lessons: Lessons | None = field(default=None, init=False)
    _loaded: bool = field(default=False, init=False)
    _unreadable: bool = field(default=False, init=False)
    _look: float = field(default=0.0, init=False)  # when to look at the answers next
    _turn: float = field(default=0.0, init=False)  # until when the stages do not give way

    def basis(self) -> Basis:
        """Return what the next model rests on."""
        project, parts = self.trainer.project, self.trainer.parts
        if not self._loaded:
            self._lessons, self._loaded = read_lessons(project.models), True
        lessons = self._lessons
        if parts.teach is None or lessons is None or lessons.tags != project.settings.tags:
            lessons = None
        return Basis("" if parts.reading is None else parts.reading.name, lessons)

    def advance(self, last: Generation | None, counts: Counts) -> bool:
        """Work on the next stage if there is one, and return whether there was."""
        if last is None or last.model is None:
            return False
        try:
            if self._read(counts):
                return True
            basis = self.basis()
            if basis.name != (last.notes.basis or ""):
                return self.trainer.train(last, counts)
            return self._teach(last, counts, basis)
        except InterruptedStageError:
            return True

    def take_turn(self, seconds: float) -> None:
        """Let the stages have some time for themselves after a model that took these seconds."""
        self._turn = time.monotonic() + SHARE * seconds

    def in_turn(self) -> bool:
        """Whether a model that is due waits for a stage."""
        return time.monotonic() < self._turn

    def give_way(self) -> None:
        """Train a model that is due, between two steps of a stage."""
        now, trainer = time.monotonic(), self.trainer
        if now < self._look or self.in_turn():
            return
        self._look = now + LOOK_EVERY
        if has_changed(trainer.project):
            raise InterruptedStageError
        last, counts = trainer.last(), read_counts(trainer.project.store)
        if trainer.due(last, counts):
            try:
                trainer.train_due(last, counts)
            except StoreError:
                raise
            except SeqMixError as error:  # reported if it fails again by itself
                raise InterruptedStageError from error

    def _read(self, counts: Counts) -> bool:
        """Let the encoder read the text if it is time to; return whether it was."""
        reading, size = self.trainer.parts.reading, counts.sentences + counts.seed
        if reading is None or self._unreadable or not reading.due(size):
            return False
        try:
            reading.read(size, self.give_way)
        except (DataError, ModelError) as error:  # such as an encoder without a masked-LM head
            self._unreadable = True
            self.trainer.say(f"stage 2 is skipped: {error}")
        self.trainer.report(WAITING)
        return True

    def _teach(self, last: Generation, counts: Counts, basis: Basis) -> bool:
        """Train teachers and keep what they teach if it is time to; return whether it was."""
        trainer, project, parts = self.trainer, self.trainer.project, self.trainer.parts
        if parts.teach is None or not self._needs_teachers(last.labeled, basis):
            shutil.rmtree(project.models / TEACHERS, ignore_errors=True)  # of a killed trainer
            return False
        labels = read_labels(project, None, counts.events)
        learner = parts.learner(
            pool=Pool({}, labels.labeled),
            seed=project.settings.seed,
            round=last.number,
            trained=parts.start,
        )
        learner.augment(labels.new, lambda new: without_vetoed(project, new))
        rng = generator(project.settings.seed, last.number, "lessons")
        pool = list(sample_pool(project, parts.most, rng).values())
        taught = parts.teach(learner.training_set, pool, rng, learner.warm_start, self.give_way)
        self._lessons = Lessons(counts.events, basis.encoder, project.settings.tags, taught)
        write_lessons(project.models, self._lessons)
        shutil.rmtree(project.models / TEACHERS, ignore_errors=True)
        trainer.report(WAITING)
        return True

    def _needs_teachers(self, labeled: int, basis: Basis) -> bool:
        project, known = self.trainer.project, basis.lessons
        if known is None or known.encoder != basis.encoder:
            return labeled >= self.trainer.parts.least
        return count_touched(project, known.seq) >= max(1.0, _NEWS * labeled)
