"""Train with the recipe for few labels: an adapted encoder, teachers, and a student.

It is the first round of `simulate --preset few-labels` with the same labels and text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seqmix.app.config import FEW_LABELS, Config, load_config
from seqmix.app.plan import build_learner, encoder_of
from seqmix.app.stages.names import Stages, Watch
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import DataError
from seqmix.loop.pool import Pool
from seqmix.tagger import Tagger


def few_labels_config(
    changes: Mapping[str, Any] | None = None, quick: bool = False, seed: int = 0
) -> Config:
    """Return the recipe as a config; `quick` leaves out the teachers."""
    config = load_config(FEW_LABELS, changes=changes, seed=seed)
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
    stages = Stages(config.self_training.teachers, watch)
    with TemporaryDirectory(prefix="seqmix-") as folder:
        text = [*(sentence.unlabeled() for sentence in sentences), *pool]
        encoder = encoder_of(config, text, Path(folder), stages.reading)
        make, _ = build_learner(config, tag_set, sentences, pool, encoder, stages.training)
        learner = make(pool=Pool({}, {s.id: s for s in sentences}), seed=config.seed)
        learner.augment(sentences)
        tagger = learner.train()
        assert isinstance(tagger, Tagger)
        # its folder tells the rate, which depends on what the adapted encoder was
        tagger.settings = replace(tagger.settings, lr=tagger.learning_rate)
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
