"""Shorter trainings in proportion, so that a recipe that takes long can be shown."""

from __future__ import annotations

from dataclasses import replace

from seqmix.app.config import Config
from seqmix.errors import ConfigError
from seqmix.settings import at


def shortened(config: Config, most_steps: int) -> Config:
    """Return the config with at most about this many optimizer steps in its last round.

    Teachers, student, members and the reading of the text keep their proportions; all else stays.
    """
    taught = config.self_training
    training = config.training.steps_for(learned(config, config.loop.rounds))
    student = taught.steps or training
    if not taught.teachers:
        total = training * config.training.members
    else:
        total = taught.teachers * training
        total += (1 + taught.teachers * (taught.generations - 1)) * student
    share = min(1.0, most_steps / total)
    return config.model_copy(
        update={
            "training": replace(config.training, steps=_part(training, share)),
            "self_training": replace(taught, steps=_part(student, share)),
            "adapt": replace(config.adapt, epochs=_part(config.adapt.epochs, share)),
        }
    )


def checked_steps(value: object) -> int:
    """Return the key most_steps of an arm."""
    if type(value) is not int or value < 1:
        raise ConfigError(f"most_steps must be a whole number of 1 or more; got {value!r}")
    return value


def learned(config: Config, rounds: int) -> int:
    """Return how many sentences a tagger learns from after these rounds, generated included."""
    rate = config.augment.rate
    total = config.loop.seed_size * (1 + at(rate, 0))
    for number in range(rounds):
        total += at(config.query.size, number) * (1 + at(rate, number + 1))
    return round(total)


def _part(count: int, share: float) -> int:
    return max(1, round(count * share)) if count else 0
