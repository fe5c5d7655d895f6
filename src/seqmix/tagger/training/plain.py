"""Plain training, from labels alone: how many steps and which learning rate suit it."""

from __future__ import annotations

from dataclasses import replace

from seqmix.tagger.settings import EPOCHS, Settings

_LONG, _MANY = 300, 200  # steps and labeled sentences from which on the starter takes this rate
_LOW_RATE = 1e-4


def enough_steps(sentences: int, batch_size: int = 32, epochs: int = EPOCHS) -> int:
    """Return the optimizer steps that plain training needs (docs/defaults.md).

    Ten epochs, but at least 300 steps, and 600 from 100 labeled sentences on; with other epochs
    in proportion.
    """
    return epochs * max(60 if sentences >= 100 else 30, -(-sentences // batch_size))


def plain_rate(encoder: str, steps: int, sentences: int) -> float:
    """Return the default learning rate of plain training (docs/defaults.md)."""
    from seqmix.starter.loader import STARTER, base_encoder, default_learning_rate  # loads torch

    if steps >= _LONG and sentences >= _MANY and base_encoder(encoder) == STARTER:
        return _LOW_RATE
    return default_learning_rate(encoder)


def plain_settings(settings: Settings, sentences: int, encoder: str) -> Settings:
    """Return the settings of plain training: steps and rate that suit, where none were given."""
    if not (settings.steps or settings.epochs):
        settings = replace(settings, steps=enough_steps(sentences, settings.batch_size))
    rate = settings.lr or plain_rate(encoder, settings.total_steps(sentences), sentences)
    return replace(settings, lr=rate)
