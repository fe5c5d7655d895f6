"""How a project learns: its settings as a config, the same that simulations take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from seqmix.app.config import Config, checked, merged, nested, read_toml
from seqmix.errors import ConfigError
from seqmix.serve.settings import ProjectSettings

FILE = "training.toml"  # optional: keys of a config, over project.toml
REFUSED = {  # keys and sections that a project's trainer does not use, and why
    "seed": "it is a setting of the project; change it with seqmix project FOLDER --set seed=1",
    "data": "the sentences of a project were read when it was made",
    "adapt": "run seqmix adapt and give its folder as tagger.encoder",
    "self_training": "only simulations train students",
    "loop": "people decide the rounds of a project",
    "query.size": "a project ranks its whole pool",
    "query.tokens": "a project ranks its whole pool",
    "augment.guard": "only simulations have a guard",
    "augment.table": "the table of a project is the encoder's, made before there are labels",
    "augment.seen": "the table of a project is made before its text is read",
    "augment.min_count": "the table of a project is made before its text is read",
}


def project_config(folder: Path, settings: ProjectSettings) -> Config:
    """Return the config that a project's settings and its training.toml mean."""
    path = folder / FILE
    changes = nested(read_toml(path)) if path.exists() else {}
    values: dict[str, Any] = {
        "seed": settings.seed,
        "tagger": {"encoder": settings.encoder, "head": settings.head},
        "query": {"policy": settings.policy, "without_entity": 0.1},
        # a project begins with few labels, so windows are short
        "augment": {"variant": settings.augment, "rate": settings.rate, "window": 3},
    }
    refuse_unused(changes, path)
    try:
        return checked(merged(values, changes))
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}; see project.toml and {FILE}") from error


def refuse_unused(changes: Mapping[str, Any], source: Path | str) -> None:
    """Refuse keys that a project's trainer does not use."""
    for key in _keys(changes):
        reason = REFUSED.get(key) or REFUSED.get(key.partition(".")[0])
        if reason is not None:
            raise ConfigError(
                f"{source}: {key} has no effect on a project: {reason}; remove the key"
            )


def _keys(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from (f"{name}.{key}" for key in value)
        else:
            yield name
