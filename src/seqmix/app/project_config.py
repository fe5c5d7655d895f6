"""How a project learns: its settings as a config, the same that simulations take."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seqmix.app.config import Config
from seqmix.errors import ConfigError
from seqmix.serve.settings import ProjectSettings
from seqmix.settings import explain

FILE = "training.toml"  # optional: [training], [query], [augment] and [tagger] as in a config, on top of project.toml


def project_config(folder: Path, settings: ProjectSettings) -> Config:
    """The config a project's settings mean. Windows are short: a project begins with few labels."""
    values: dict[str, Any] = {
        "seed": settings.seed,
        "tagger": {"encoder": settings.encoder, "head": settings.head},
        "query": {"policy": settings.policy, "without_entity": 0.1},
        "augment": {"variant": settings.augment, "rate": settings.rate, "window": 3},
    }
    path = folder / FILE
    try:
        for name, section in (
            tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        ).items():
            values[name] = (
                {**values.get(name, {}), **section} if isinstance(section, dict) else section
            )
        config = Config.model_validate(values)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    except ValidationError as error:
        raise ConfigError(
            f"{folder}: {explain(error, Config)}; see project.toml and {FILE}"
        ) from error
    if config.augment.table != "encoder":
        raise ConfigError(
            f"{path}: augment.table: a project's table is the encoder's, made before there are labels; remove the key"
        )
    if config.augment.seen or config.augment.min_count:
        raise ConfigError(
            f"{path}: augment.seen and augment.min_count look at a text, and a project's table is made before; remove them"
        )
    return config
