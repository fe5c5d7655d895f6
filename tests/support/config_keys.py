"""Every key of the config, with a value that is no default; and what records a tagger's work."""

from __future__ import annotations

from typing import Any

from seqmix.app.config import Config
from seqmix.settings import described_keys

# values that change what is done; others follow from the default
VALUES: dict[str, Any] = {
    "seed": 7,
    "tagger.encoder": "other",
    "tagger.head": "crf",
    "tagger.device": "cuda",
    "training.steps": 17,
    "training.min_steps": 500,
    "training.lr": 0.5,
    "training.mixup": 0.2,
    "training.mixup_partners": "tag",
    "training.warmup": 0.5,
    "training.weight_decay": 0.5,
    "adapt.lr": 0.5,
    "self_training.steps": 3,
    "self_training.confidence": 0.5,
    "query.policy": "margin",
    "query.apart": 2,
    "query.without_entity": 0.5,
    "query.tokens": 50,
    "augment.variant": "label",
    "augment.score_range": "0,500",
    "augment.windows": "spans",
    "augment.partners": "similar",
    "augment.base": "2",
    "augment.lm": "other",
    "augment.table": "contextual",
    "augment.distance": "cosine",
    "augment.max_uses": 2,
    "augment.weight": 0.5,
    "mixed.labels": "teachers",
    "mixed.band": [0.2, 0.8],
    "loop.slice": 30,
    "loop.stop_sentences": 9,
    "loop.stop_tokens": 9,
    "loop.stop_agreement": 0.5,
    "loop.stop_uncertainty": 0.5,
}


def keys() -> list[str]:
    names = []
    for name, field, _ in described_keys(Config):
        inner = [key for key, _, _ in described_keys(field.annotation)]
        names += [f"{name}.{key}" for key in inner] or [name]
    return names


def another(key: str, config: Config | None = None) -> Any:
    """Return another value than the config's."""
    section, _, name = key.partition(".")
    for known in (key, f"augment.{name}" if section == "mixed" else key):
        if known in VALUES:
            return VALUES[known]
    value = getattr(getattr(config or Config(), section), name)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return value / 2 if isinstance(value, float) else "other"


class Recorder:
    """In place of a tagger: notes what it was made with and trained with."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.notes: list[Any] = [arguments, named]
        self.settings = None
        self.tag_set = None
        self.pieces_read = 0

    def fit(self, sentences: Any, rng: Any, tag_set: Any, **named: Any) -> Recorder:
        self.notes.append(self.settings)
        return self
