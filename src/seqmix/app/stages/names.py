"""What the recipe for few labels is doing, by name."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqmix.tagger.training.loop import Progress  # which loads torch

Watch = Callable[[str], "Progress"]  # the progress of a stage, by its name


class Stages:
    """Names the training under way: the reading, teacher 1, teacher 2, the student."""

    def __init__(self, teachers: int, watch: Watch | None) -> None:
        self.watch, self.teachers = watch, teachers
        self.trainings, self.last = 0, 0
        self.progress: Progress | None = None

    def reading(self, done: int, total: int, loss: float) -> None:
        """Report a step of masked-LM training."""
        if self.watch is not None:
            self.progress = self.progress or self.watch("the encoder reads your text")
            self.progress(done, total, loss)

    def training(self, done: int, total: int, loss: float) -> None:
        """Report a step of a tagger's training."""
        if self.watch is None:
            return
        if done <= self.last or not self.trainings:
            self.trainings += 1
            self.progress = self.watch(self._name())
        self.last = done
        assert self.progress is not None
        self.progress(done, total, loss)

    def skip(self) -> None:
        """Count a training whose tagger is there already."""
        self.trainings, self.last = self.trainings + 1, sys.maxsize

    def _name(self) -> str:
        if not self.teachers:
            return "training"
        if self.trainings <= self.teachers:
            return f"teacher {self.trainings} of {self.teachers}"
        return "the student"
