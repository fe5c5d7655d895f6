"""Train with the recipe for few labels: an adapted encoder, teachers, and a student.

It is the first round of `simulate --preset few-labels` with the same labels and text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from seqmix.app.config import Config, load_config
from seqmix.app.plan import build_learner, encoder_of
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import DataError
from seqmix.loop.pool import Pool
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.training.loop import Progress

PRESET = "few-labels"
Watch = Callable[[str], Progress]  # the progress of a stage, by its name


def few_labels_config(
    changes: Mapping[str, Any] | None = None, quick: bool = False, seed: int = 0
) -> Config:
    """Return the recipe as a config; `quick` leaves out the teachers."""
    config = load_config(PRESET, changes=changes, seed=seed)
    if not quick:
        return config
    return config.model_copy(update={"self_training": replace(config.self_training, teachers=0)})


def train_few_labels(
    labeled: Sequence[Sentence],
    unlabeled: Sequence[Sentence],
    config: Config | None = None,
    watch: Watch | None = None,
) -> Tagger:
    """Train a tagger on labeled sentences and on the text of unlabeled ones."""
    config = config or few_labels_config()
    sentences = [sentence for sentence in labeled if sentence.labeled]
    if not sentences:
        raise DataError("there is no labeled sentence to train on")
    texts = {sentence.tokens for sentence in sentences}
    pool = list({s.tokens: s.unlabeled() for s in unlabeled if s.tokens not in texts}.values())
    tag_set = TagSet.of(sentences)
    stages = _Stages(config, watch)
    with TemporaryDirectory(prefix="seqmix-") as folder:
        text = [*(sentence.unlabeled() for sentence in sentences), *pool]
        encoder = encoder_of(config, text, Path(folder), stages.reading)
        make, _ = build_learner(config, tag_set, sentences, pool, encoder, stages.training)
        learner = make(pool=Pool({}, {s.id: s for s in sentences}), seed=config.seed)
        learner.augment(sentences)
        tagger = learner.train()
    assert isinstance(tagger, Tagger)
    tagger.encoder = config.tagger.encoder  # the adapted one was temporary; its weights are here
    return tagger


def describe(config: Config, labeled: int, unlabeled: int) -> str:
    """Return what the recipe will do, in words."""
    teachers = config.self_training.teachers
    parts = [f"reading {labeled + unlabeled:,} sentences"] if config.adapt.epochs else []
    if teachers:
        students = min(unlabeled, config.self_training.sentences)
        parts.append(f"{teachers} teachers")
        parts.append(f"a student that learns from {students:,} sentences they tag")
    else:
        parts.append("one tagger")
    return ", ".join(parts)


def expected_seconds(
    config: Config, labeled: Sequence[Sentence], unlabeled: Sequence[Sentence]
) -> float:
    """Return roughly how long the recipe will take here, from a few timed training steps."""
    steps, batch = 4, config.training.batch_size
    sample = list(labeled[:batch])
    tagger = Tagger(
        config.tagger.encoder, config.tagger.head, Settings(steps=1), config.tagger.device
    )
    tagger.fit(sample, np.random.default_rng(0))  # loads, and warms up
    tagger.settings = Settings(steps=steps, batch_size=batch)
    start = time.perf_counter()
    tagger.fit(sample, np.random.default_rng(0), warm=True)
    per_token = (time.perf_counter() - start) / steps / max(1, sum(map(len, sample)))
    text_tokens = sum(map(len, labeled)) + sum(map(len, unlabeled))
    mean = text_tokens / max(1, len(labeled) + len(unlabeled))
    taught = min(len(unlabeled), config.self_training.sentences)
    teachers = config.self_training.teachers
    trained = max(1, teachers) * config.training.steps_for(2 * len(labeled))
    if teachers:
        trained += config.self_training.steps or 10 * -(-taught // batch)
    tokens = trained * min(batch, 2 * len(labeled)) * mean + config.adapt.epochs * text_tokens * 2
    return per_token * (tokens + teachers * taught * mean / 3)


class _Stages:
    """Names the stage that a training belongs to: reading, teacher 1, teacher 2, the student."""

    def __init__(self, config: Config, watch: Watch | None) -> None:
        self.watch, self.teachers = watch, config.self_training.teachers
        self.trainings, self.last = 0, 0
        self.progress: Progress | None = None

    def reading(self, done: int, total: int, loss: float) -> None:
        """Report a step of masked-LM training."""
        if self.watch is not None:
            self.progress = self.progress or self.watch("the encoder reads the text")
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

    def _name(self) -> str:
        if not self.teachers:
            return "training"
        if self.trainings <= self.teachers:
            return f"teacher {self.trainings} of {self.teachers}"
        return "the student"
