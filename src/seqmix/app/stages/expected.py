"""How long a training will take here, from a few timed steps of it."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from seqmix.app.config import Config
from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger

_STEPS = 4  # that are timed


def plain_seconds(tagger: Tagger, sentences: Sequence[Sentence]) -> float:
    """Return roughly how long this tagger will train, or 0 if that is too short to be timed."""
    steps, batch = tagger.settings.total_steps(len(sentences)), tagger.settings.batch_size
    if steps < 5 * _STEPS:
        return 0.0
    timed = _seconds_per_token(tagger.encoder, tagger.head, str(tagger.device), sentences, batch)
    return timed * steps * min(batch, len(sentences)) * _mean_tokens(sentences)


def few_labels_seconds(
    config: Config, labeled: Sequence[Sentence], unlabeled: Sequence[Sentence]
) -> float:
    """Return roughly how long the recipe few-labels will take."""
    batch, tagger = config.training.batch_size, config.tagger
    timed = _seconds_per_token(tagger.encoder, tagger.head, tagger.device, labeled, batch)
    text = [*labeled, *unlabeled]
    mean = _mean_tokens(text)
    taught = min(len(unlabeled), config.self_training.sentences)
    teachers = config.self_training.teachers
    steps = max(1, teachers) * config.training.steps_for(2 * len(labeled))
    if teachers:
        steps += config.self_training.steps or 10 * -(-taught // batch)
    trained = steps * min(batch, 2 * len(labeled)) * mean
    read = 2 * config.adapt.epochs * mean * len(text)  # twice as slow as a tagger's training
    tagged = teachers * taught * mean / 3  # and three times as fast
    return timed * (trained + read + tagged)


def _seconds_per_token(
    encoder: str, head: str, device: str | None, sentences: Sequence[Sentence], batch: int
) -> float:
    sample = [sentence for sentence in sentences if sentence.labeled][:batch]
    tagger = Tagger(encoder, head, Settings(steps=1, batch_size=batch), device)
    tagger.fit(sample, np.random.default_rng(0))  # loads, and warms up
    tagger.settings = Settings(steps=_STEPS, batch_size=batch)
    start = perf_counter()
    tagger.fit(sample, np.random.default_rng(0), warm=True)
    return (perf_counter() - start) / _STEPS / max(1, sum(map(len, sample)))


def _mean_tokens(sentences: Sequence[Sentence]) -> float:
    return sum(map(len, sentences)) / max(1, len(sentences))
