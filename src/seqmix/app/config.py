"""The config of a run: one tree of settings, from a preset, a TOML file and changes over both.

Unknown keys and contradictions are refused before a model loads.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError, model_validator

from seqmix.app.sections import Adapt, Data, Loop, Mixed, Query, Tagging, Training
from seqmix.augment.settings import AugmentSettings
from seqmix.errors import ConfigError
from seqmix.loop.selftraining import SelfTraining
from seqmix.query.policies import POLICIES, check_part
from seqmix.settings import STRICT, Natural, explain

PRESETS = Path(__file__).parent / "presets"
FEW_LABELS = "few-labels"  # the preset that is the recipe of projects and of seqmix train
# Defaults that have changed, as they were: the digest leaves these out, and not the new ones.
_FIRST = {"augment": {"score_range": "0,500"}}
_MEASURED_AS = {"mention+sub": "best"}  # variants as digests of older results call them
_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")


class Config(BaseModel):
    """A whole run."""

    model_config = STRICT

    seed: Natural = 0
    """The random seed: same seed, same bytes."""
    data: Data = Data()
    tagger: Tagging = Tagging()
    training: Training = Training()
    adapt: Adapt = Adapt()
    self_training: SelfTraining = SelfTraining()
    query: Query = Query()
    augment: AugmentSettings = AugmentSettings()
    mixed: Mixed = Mixed()
    loop: Loop = Loop()

    @model_validator(mode="after")
    def _agree(self) -> Config:
        names = {
            "tagger.encoder": self.tagger.encoder,
            "tagger.device": self.tagger.device or "",
            "augment.score_range": str(self.augment.score_range),
            "augment.lm": self.augment.lm,
        }
        for key, text in names.items():
            if not text.isprintable():
                raise ValueError(f"{key} must be one line of printable text; got {text[:80]!r}")
        if "crf" in POLICIES[self.query.policy].needs and self.tagger.head != "crf":
            raise ValueError(
                f"query.policy {self.query.policy} needs tagger.head crf; got {self.tagger.head}"
            )
        if self.query.part:
            try:
                check_part(self.query.policy)
            except ConfigError as error:
                raise ValueError(f"query.part: {error}") from error
        if not self.self_training.teachers and self.self_training.generations > 1:
            raise ValueError("self_training.generations needs self_training.teachers")
        if self.self_training.teachers and self.training.members > 1:
            raise ValueError(
                "training.members needs self_training.teachers = 0, since teachers are averaged "
                f"already; got {self.training.members} members, "
                f"{self.self_training.teachers} teachers"
            )
        if not self.self_training.teachers and self.mixed.variant != "none":
            raise ValueError("mixed.variant needs self_training.teachers")
        if self.loop.slice is not None and self.loop.slice < self.loop.seed_size:
            raise ValueError(
                f"loop.slice must be at least loop.seed_size ({self.loop.seed_size}); "
                f"got {self.loop.slice}"
            )
        return self

    @property
    def arm(self) -> str:
        """What the run is called in reports: policy, part of a sentence and augmentation."""
        variant = "" if self.augment.variant == "none" else f"+{self.augment.variant}"
        part = f" part={self.query.part}" if self.query.part else ""
        return self.query.policy + part + variant

    def toml(self) -> str:
        """Return the resolved config as TOML, without keys that are None."""
        lines = [f"seed = {self.seed}"]
        for name, section in self.model_dump(exclude={"seed"}).items():
            lines.append(f"\n[{name}]")
            lines += [
                f"{key} = {_spelled(value)}" for key, value in section.items() if value is not None
            ]
        return "\n".join(lines) + "\n"

    @property
    def digest(self) -> str:
        """A short hash of what differs from the first defaults.

        New keys and changed defaults leave the hashes of old results as they are.
        """
        values, first = self.model_dump(), merged(Config().model_dump(), _FIRST)
        variant = values["augment"]["variant"]
        values["augment"]["variant"] = _MEASURED_AS.get(variant, variant)
        chosen: dict[str, Any] = {}
        for name, value in values.items():
            if isinstance(value, dict):
                value = {key: item for key, item in value.items() if item != first[name][key]}
            if value != (first[name] if name == "seed" else {}):
                chosen[name] = value
        return hashlib.sha256(json.dumps([1, chosen], sort_keys=True).encode()).hexdigest()[:12]


def load_config(
    preset: str | None = None,
    file: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    seed: int | None = None,
) -> Config:
    """Return the config of a preset, a TOML file over it, and changes over both.

    Changes are a mapping, nested or with dotted keys: `{"augment.rate": 0.4}`.
    """
    values: dict[str, Any] = {}
    if preset is not None:
        path = PRESETS / f"{preset}.toml"
        if path.parent != PRESETS or not path.exists():
            names = ", ".join(sorted(p.stem for p in PRESETS.glob("*.toml")))
            raise ConfigError(f"there is no preset {preset[:80]!r}; there are {names}")
        values = read_toml(path)
    if file is not None:
        values = merged(values, read_toml(file))
    values = merged(values, nested(changes or {}))
    if seed is not None:
        values["seed"] = seed
    return checked(values)


def checked(values: Mapping[str, Any]) -> Config:
    """Return nested values as a config, or say what is wrong with them."""
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, Config)) from error


def parse_changes(texts: Iterable[str] | None) -> dict[str, Any]:
    """Return the mapping that `--set` strings mean.

    >>> parse_changes(["augment.rate=0.4", "query.policy=mnlp"])
    {'augment.rate': 0.4, 'query.policy': 'mnlp'}
    """
    changes: dict[str, Any] = {}
    for key, value in map(_parse_change, texts or ()):
        changes.pop(key, None)  # the last one counts, and comes last
        changes[key] = value
    return changes


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mapping with dotted keys as sections.

    >>> nested({"augment.rate": 0.4})
    {'augment': {'rate': 0.4}}
    """
    tree: dict[str, Any] = {}
    for key, value in values.items():
        branch: Any = nested(value) if isinstance(value, Mapping) else value
        for part in reversed(key.split(".")):
            branch = {part: branch}
        tree = merged(tree, branch)
    return tree


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of both, those above in place of those below, section by section."""
    values = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(values.get(key), dict)
        values[key] = merged(values[key], value) if both else value
    return values


def text_for(folder: Path, config: Config) -> str:
    """Return the config as TOML for a run folder: its own file where that means the same."""
    path = folder / "config.toml"
    same = path.is_file() and load_config(None, path) == config
    return path.read_text(encoding="utf-8") if same else config.toml()


def read_toml(path: Path, what: str = "config") -> dict[str, Any]:
    """Return the values of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # 5,000 digits are a bare ValueError
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise ConfigError(f"cannot read the {what} {path}: {why}") from error


def _spelled(value: Any) -> str:
    """JSON is TOML but for DEL and for characters beyond U+FFFF, which TOML wants whole."""
    return _PAIR.sub(_joined, json.dumps(value)).replace("\x7f", "\\u007f")


def _joined(pair: re.Match[str]) -> str:
    character: str = json.loads(f'"{pair[0]}"')
    return f"\\U{ord(character):08x}"


def _parse_change(text: str) -> tuple[str, Any]:
    """Split `augment.rate=0.4`; the value is TOML, or a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(
            f"--set must look like key=value, such as augment.rate=0.4; got {text[:80]!r}"
        )
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except (ValueError, RecursionError):
        return key.strip(), value.strip()
