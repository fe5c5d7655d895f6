"""How a project learns: its settings as a config, the same that simulations take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seqmix.app.config import FEW_LABELS, Config, checked, load_config, merged, nested, read_toml
from seqmix.errors import ConfigError
from seqmix.serve.settings import ProjectSettings

FILE = "training.toml"  # optional: keys of a config, but for those that project.toml has
IN_PROJECT = {  # keys of a config that are settings of a project, and what they are called there
    "seed": "seed",
    "tagger.encoder": "encoder",
    "tagger.head": "head",
    "query.policy": "policy",
    "augment.variant": "augment",
    "augment.rate": "rate",
}
REFUSED = {  # keys and sections that a project's trainer does not use, and why
    "data": "the sentences of a project were read when it was made",
    "loop": "people decide the rounds of a project",
    "training.members": "the model of a project is a single tagger",
    "query.size": "a project ranks its whole pool",
    "query.tokens": "a project ranks its whole pool",
    "query.part": "a project asks for whole sentences, and people may answer a part of one",
    "mixed": "only the students of simulations learn mixed sentences",
    "augment.guard": "only simulations have a guard",
    "augment.table": "the table of a project is the encoder's, made before there are labels",
    "augment.seen": "the table of a project is made before its text is read",
    "augment.min_count": "the table of a project is made before its text is read",
}


def project_config(folder: Path, settings: ProjectSettings) -> Config:
    """Return the config that a project's settings and its training.toml mean."""
    path = folder / FILE
    changes = nested(read_toml(path)) if path.exists() else {}
    recipe = load_config(FEW_LABELS)  # its teachers, and how the encoder reads the text
    defaults: dict[str, Any] = {
        "adapt": asdict(recipe.adapt),
        "self_training": asdict(recipe.self_training),
        "query": {"without_entity": 0.1, "apart": 20},
        "augment": {"window": 3},  # a project begins with few labels, so windows are short
    }
    chosen = nested({key: getattr(settings, name) for key, name in IN_PROJECT.items()})
    refuse_unused(changes, path)
    try:
        return checked(merged(merged(defaults, chosen), changes))
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}; see project.toml and {FILE}") from error


def refuse_unused(changes: Mapping[str, Any], source: Path | str) -> None:
    """Refuse keys that a project's trainer does not use, and those that project.toml has."""
    for key in _keys(changes):
        if key in IN_PROJECT:
            raise ConfigError(
                f"{source}: {key} is a setting of the project: remove the key, and change it with "
                f"seqmix project FOLDER --set {IN_PROJECT[key]}=VALUE"
            )
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
