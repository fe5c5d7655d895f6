"""Stage 3 of a project's trainer: teachers, which later models are students of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from seqmix.app.config import FEW_LABELS, Config, load_config
from seqmix.app.plan import build_learner
from seqmix.app.sections import Training
from seqmix.app.stages.names import Stages, Watch
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.learner import Fit
from seqmix.loop.selftraining import prepare_lessons
from seqmix.protocols import Tagger as AnyTagger
from seqmix.tagger import Tagger
from seqmix.tagger.encoders import device_of
from seqmix.tagger.training.loop import Progress


def fit_of(
    config: Config,
    tag_set: TagSet,
    encoder: Callable[[], str],
    progress: Progress | None = None,
) -> Fit:
    """Return the fit of one tagger, whose folder does not name the adapted encoder.

    That encoder belongs to the project, and the tagger's weights are all that is left of it.
    The folder tells the learning rate, also where it was the default.
    """
    alone = config.model_copy(
        update={"self_training": replace(config.self_training, teachers=0, generations=1)}
    )
    fit: Fit = build_learner(alone, tag_set, (), (), encoder, progress)[0].keywords["tagger"]

    def named(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: AnyTagger | None,
    ) -> AnyTagger:
        tagger = fit(sentences, steps, rng, last)
        if isinstance(tagger, Tagger):
            tagger.settings = replace(tagger.settings, lr=tagger.learning_rate)
            tagger.encoder = config.tagger.encoder
        return tagger

    return named


def teach(
    config: Config,
    tag_set: TagSet,
    encoder: Callable[[], str],
    place: Path,
    watch: Watch,
    sentences: Sequence[Sentence],
    unlabeled: Sequence[Sentence],
    rng: np.random.Generator,
    last: AnyTagger | None,
    between: Callable[[], None],
) -> list[Sentence]:
    """Return unlabeled sentences as teachers tag them, who learn from the labeled ones.

    `between` is called after each step. Finished teachers are kept in `place`, so that a trainer
    that is killed need not train them again.
    """
    how = config.self_training
    stages = Stages(how.teachers, watch)
    on_cpu = device_of(config.tagger.device).type == "cpu"
    tagging = cache(lambda: watch("the teachers tag your text"))

    def trained(done: int, total: int, loss: float) -> None:
        stages.training(done, total, loss)
        if on_cpu:  # subtle: on a GPU, the replayed steps of two trainings would share memory
            between()

    def tagged(done: int, total: int) -> None:
        tagging()(done, total, 0.0)
        between()

    fit = fit_of(config, tag_set, encoder, trained)

    def kept(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: AnyTagger | None,
    ) -> AnyTagger:
        between()
        folder = place / _key(config, encoder(), sentences, steps, rng)
        if folder.exists():
            stages.skip()
            return Tagger.load(folder, config.tagger.device)
        tagger = fit(sentences, steps, rng, last)
        tagger.save(folder)
        return tagger

    steps = _steps_of_teachers(config.training, len(sentences))
    return prepare_lessons(kept, unlabeled, how, sentences, steps, rng, last, tagged)


def _key(
    config: Config,
    encoder: str,
    sentences: Sequence[Sentence],
    steps: int | None,
    rng: np.random.Generator,
) -> str:
    """Return a name for all that decides a teacher."""
    learned = [[sentence.tokens, sentence.tags] for sentence in sentences]
    described = [config.digest, Path(encoder).name, learned, steps, rng.bit_generator.state]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:12]


def _steps_of_teachers(training: Training, count: int) -> int:
    least = training.min_steps or load_config(FEW_LABELS).training.min_steps
    return replace(training, min_steps=least).steps_for(count)
