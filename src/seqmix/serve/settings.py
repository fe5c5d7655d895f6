"""The settings of a project: the file project.toml."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from seqmix.data.files import refuse_links, replacing, version_problem
from seqmix.errors import ConfigError, SeqMixError, StoreError, TagError
from seqmix.serve.store.postgresql import check_url
from seqmix.serve.store.sqlite_check import PARTS

FORMAT = 1
SETTINGS, GUIDELINES, STORE, MODELS = "project.toml", "guidelines.md", "store.sqlite", "models"
MAX_TAGS = 35  # the digits 1 to 9 and the letters: a key for each
_FILES = (
    SETTINGS,
    GUIDELINES,
    MODELS,
    "training.toml",
    "trainer.log",
    "lock",
    *(STORE + part for part in (*PARTS, "-journal")),
)
_DIRECTIONS = ("auto", "ltr", "rtl")
_RANGES = {
    "audit_share": (0, 0.9),
    "overlap_share": (0, 1),
    "rate": (0, 10),
    "batch": (1, 100_000),
    "seed": (0, 2**63),
}


@dataclass(frozen=True)
class ProjectSettings:
    """What project.toml says."""

    name: str
    tags: tuple[str, ...]
    store: str | None = None  # postgresql://…; None: the file in the folder
    policy: str = "nte"  # how the next sentences are chosen
    audit_share: float = 0.1  # share of answers on random sentences, for an unbiased F1
    audit_train: bool = False  # also learn from these; their F1 is then biased
    overlap_share: float = 0.0  # share of answered sentences that a second annotator gets
    batch: int = 10  # new answers between two trainings
    direction: str = "auto"  # of the text: auto, ltr or rtl
    encoder: str = "starter"
    head: str = "linear"
    augment: str = "sub"  # SeqMix's variant, or none
    rate: float = 0.2  # generated sentences for each labeled one
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tags", tuple(self.tags))
        check_tags(self.tags)
        if self.store is not None:
            check_url(self.store)
        if not self.name.strip() or not self.name.isprintable():
            raise ConfigError(
                f"the name of a project must be a line of printable text; got {self.name!r}"
            )
        for key, (low, high) in _RANGES.items():
            if not low <= getattr(self, key) <= high:
                raise ConfigError(
                    f"{key} must be between {low} and {high}; got {getattr(self, key)}"
                )
        if self.direction not in _DIRECTIONS:
            raise ConfigError(
                f"direction must be one of {', '.join(_DIRECTIONS)}; got {self.direction!r}"
            )

    def toml(self) -> str:
        """Return the settings as TOML, without those that are None."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        lines = [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()
        ]
        return "\n".join([f"format_version = {FORMAT}", *lines]) + "\n"


def check_tags(tags: Sequence[str]) -> None:
    """Refuse tags that cannot be distinguished, typed or written to a file."""
    if not tags:
        raise TagError("a project needs at least one tag, such as --tags PER,ORG,LOC")
    if len(tags) > MAX_TAGS:
        raise TagError(
            f"a project has at most {MAX_TAGS} tags, since each has a key; found {len(tags)}"
        )
    for at, tag in enumerate(tags):
        if not isinstance(tag, str) or not 1 <= len(tag) <= 64 or not _is_word(tag):
            raise TagError(
                "a tag is 1 to 64 printable characters without white space", text=str(tag)
            )
        if tag in ("O", "_"):
            raise TagError("this tag means that nothing is there; leave it out", text=tag)
        if tag.startswith(("B-", "I-")):
            raise TagError(f"name the types alone, without B- and I-: {tag[2:] or 'PER'}", text=tag)
        if tag in tags[:at]:
            raise TagError("a tag is named twice", text=tag)


def _is_word(text: str) -> bool:
    return text.isprintable() and not any(c.isspace() for c in text)


def read_settings(folder: Path) -> ProjectSettings:
    """Return the settings of a project, every key checked."""
    path = folder / SETTINGS
    refuse_links(folder, _FILES)
    if not path.is_file():
        raise StoreError(
            f"{folder} is not a project: it has no {SETTINGS}; seqmix init creates one"
        )
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        version = values.pop("format_version", None)
        if (why := version_problem(folder, version, FORMAT)) is not None:
            raise ConfigError(why)
        return settings_of(values)
    except (OSError, ValueError, RecursionError, SeqMixError) as error:
        raise ConfigError(f"{path}: {error}") from error


def change_settings(
    folder: Path,
    check: Callable[[ProjectSettings], object] = lambda settings: None,
    **changes: Any,
) -> ProjectSettings:
    """Change some settings of a project; `check` may refuse the new ones before they are written."""
    before = {key: value for key, value in vars(read_settings(folder)).items() if value is not None}
    settings = settings_of(before | changes)
    check(settings)
    write_settings(folder, settings, (folder / SETTINGS).stat().st_mode & 0o777)
    return settings


def write_settings(folder: Path, settings: ProjectSettings, mode: int) -> None:
    """Write project.toml.

    subtle: the mode is set before the text is written, so that others can never read a password.
    """
    with replacing(folder / SETTINGS) as path:
        path.touch(mode)
        path.write_text(settings.toml(), encoding="utf-8", newline="\n")
        path.chmod(mode)


def settings_of(values: dict[str, Any]) -> ProjectSettings:
    """Return settings from keys and values, every one checked."""
    types = {field.name: str(field.type) for field in fields(ProjectSettings)}
    for key, value in values.items():
        if key not in types:
            raise ConfigError(f"there is no setting {key!r}; there are {', '.join(types)}")
        _check_type(key, value, types[key])
    if missing := {"name", "tags"} - set(values):
        raise ConfigError(f"{min(missing)} is missing")
    return ProjectSettings(**values)


def _check_type(key: str, value: object, annotation: str) -> None:
    """Refuse a value of another type than its field, such as batch = "ten"."""
    allowed: dict[str, tuple[type | tuple[type, ...], str]] = {
        "tuple[str, ...]": ((list, tuple), "a list"),
        "bool": (bool, "true or false"),
        "int": (int, "an integer"),
        "float": ((int, float), "a number"),
    }
    types, name = allowed.get(annotation, (str, "text"))
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise ConfigError(f"{key} must be {name}; got {value!r}")
