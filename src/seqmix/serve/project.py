"""A project folder: what is to be labeled, with which tags, by which rules.

project.toml    the settings below; moves in last, so a folder that has one is whole
guidelines.md   what the page shows beside the text
store.sqlite    everything else, unless `store` names a PostgreSQL database
models/NNN/     the taggers trained on the way
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from seqmix.data.files import open_plain, refuse_links, replacing, version_problem
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError, SeqMixError, StoreError, TagError
from seqmix.serve.project_folder import building, clear_moved, settle
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.engine import sqlite_url
from seqmix.serve.store.postgresql import check_url, need_trust, trust
from seqmix.serve.store.queue import Rules
from seqmix.serve.store.sentences import Added, add_sentences, reserve_audit
from seqmix.serve.store.sqlite_check import PARTS
from seqmix.serve.store.store import Store, create_store, open_store, store_version

FORMAT = 1
SETTINGS, GUIDELINES, STORE, MODELS = "project.toml", "guidelines.md", "store.sqlite", "models"
START = "start"  # in models: a tagger to begin with
MAX_TAGS = 35  # the digits 1 to 9 and the letters: one key each
_PLAIN = (
    SETTINGS,
    GUIDELINES,
    MODELS,
    "training.toml",
    "trainer.log",
    "lock",
    *(STORE + part for part in (*PARTS, "-journal")),
)
_DIRECTIONS = ("auto", "ltr", "rtl")


@dataclass(frozen=True)
class Settings:
    """What project.toml says."""

    name: str
    tags: tuple[str, ...]
    store: str | None = None  # postgresql://…; None: the file in the folder
    policy: str = "nte"  # how the next sentences are chosen
    audit_share: float = 0.1  # of the answers, so many are of random sentences, for an honest F1
    audit_train: bool = (
        False  # whether the model may learn from these too; its F1 is then no longer honest
    )
    overlap_share: float = 0.0  # of the answered sentences, so many are given to a second annotator
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
                f"the name of a project is one line of printable text; found {self.name!r}"
            )
        for key, low, high in (
            ("audit_share", 0, 0.9),
            ("overlap_share", 0, 1),
            ("rate", 0, 10),
            ("batch", 1, 100_000),
            ("seed", 0, 2**63),
        ):
            if not low <= getattr(self, key) <= high:
                raise ConfigError(
                    f"{key} is {getattr(self, key)}; it must lie between {low} and {high}"
                )
        if self.direction not in _DIRECTIONS:
            raise ConfigError(
                f"direction is {self.direction!r}; it must be one of {', '.join(_DIRECTIONS)}"
            )

    def toml(self) -> str:
        """The settings as TOML; None is left out."""
        lines = [f"format_version = {FORMAT}"]
        lines += [
            f"{key} = {json.dumps(value, ensure_ascii=False)}"
            for key, value in asdict(self).items()
            if value is not None
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Project:
    """A project, open."""

    folder: Path
    settings: Settings
    store: Store

    @property
    def guidelines(self) -> str:
        """The guidelines as they stand in the file now; empty without one."""
        try:
            with open_plain(self.folder / GUIDELINES, "rb") as file:
                return file.read().decode("utf-8", "replace").replace("\r\n", "\n")
        except FileNotFoundError:
            return ""

    @property
    def rules(self) -> Rules:
        """What the queue goes by."""
        return Rules(self.settings.audit_share, self.settings.overlap_share)

    @property
    def models(self) -> Path:
        """Where taggers are kept."""
        return self.folder / MODELS

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Created:
    """What a new project began with."""

    text: Added
    seed: Added
    audit: int  # sentences set apart for the audit stream
    pool: int  # sentences to label
    labeled: int  # sentences that had labels


def create_project(
    folder: Path,
    sentences: Iterable[Sentence],
    settings: Settings,
    guidelines: str | None = None,
    seed_labels: Iterable[Sentence] = (),
    keep_labels: bool = False,
    may_be_empty: bool = False,
) -> Created:
    """Make a project: all of it, or nothing. The sentences stream through; `keep_labels` makes those they carry part of the seed."""
    folder = folder.absolute()
    made: list[Created] = []

    def fill(store: Store) -> None:
        seed = add_sentences(store, seed_labels, seed=True, random_seed=settings.seed)
        text = add_sentences(store, sentences, seed=keep_labels, random_seed=settings.seed)
        audit = reserve_audit(store, settings.audit_share)
        counts = read_counts(store)
        if not counts.sentences and not may_be_empty:
            raise DataError(
                "there is nothing to label: the text has no sentence without labels that is not empty"
            )
        made.append(Created(text, seed, audit, counts.sentences, counts.seed))

    _refuse_taken(folder, settings.store, guidelines)
    if settings.store is None:
        with building(folder, SETTINGS) as part:
            (part / STORE).touch(0o600)  # the journals beside it get the same permissions
            create_store(sqlite_url(part / STORE), settings.tags, fill).close()
            settle(part / STORE)
            _write_part(part, settings, guidelines)
    else:
        _create_remote(folder, settings, settings.store, guidelines, fill)
    return made[0]


def _create_remote(
    folder: Path,
    settings: Settings,
    url: str,
    guidelines: str | None,
    fill: Callable[[Store], None],
) -> None:
    """subtle: the folder is in its place before the database commits, since of a folder without database we know what it is."""
    new, placed = not folder.exists(), False

    def fill_and_place(store: Store) -> None:
        nonlocal placed
        with building(folder, SETTINGS) as part:
            _write_part(part, settings, guidelines)
            fill(store)
        placed = True

    try:
        create_store(url, settings.tags, fill_and_place).close()
        with suppress(
            DataError
        ):  # without a folder for settings it is asked for when the project is opened
            trust(url)
    except BaseException:
        with suppress(
            StoreError
        ):  # nobody knows what became of the commit: the folder opens, or is made anew by the same command
            if placed and store_version(url) is None:
                for name in (SETTINGS, *((GUIDELINES,) if guidelines is not None else ())):
                    (folder / name).unlink(missing_ok=True)
                if new:
                    folder.rmdir()
        raise


def open_project(folder: Path) -> Project:
    """A project with its store; tags added to project.toml since are taken over."""
    folder = folder.absolute()
    settings = read_settings(folder)
    clear_moved(folder)
    file = folder / STORE
    if settings.store is None and not file.exists():
        raise StoreError(
            f"{folder} has no {STORE}: the project is not whole; restore it from a backup, or make a new one"
        )
    store = open_store(store_url(folder, settings))
    gone = [tag for tag in store.tags if tag not in settings.tags]
    if gone:
        store.close()
        raise ConfigError(
            f"{folder / SETTINGS}: the tag {gone[0]!r} is missing; tags can be added to a project, not taken away"
        )
    if store.tags != settings.tags:
        store.set_tags(settings.tags)
    return Project(folder, settings, store)


def store_url(folder: Path, settings: Settings) -> str | URL:
    """Where a project's store is; a database that this user has not used before is refused."""
    if settings.store is None:
        return sqlite_url(folder / STORE)
    need_trust(settings.store, folder)
    return settings.store


def read_settings(folder: Path) -> Settings:
    """The settings of a project, every key checked."""
    path = folder / SETTINGS
    refuse_links(folder, _PLAIN)
    if not path.is_file():
        raise StoreError(f"{folder} is no project: it has no {SETTINGS}; seqmix init creates one")
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
        found = given.pop("format_version", None)
        if (why := version_problem(folder, found, FORMAT)) is not None:
            raise ConfigError(why)
        return settings_of(given)
    except (OSError, ValueError, RecursionError, SeqMixError) as error:
        raise ConfigError(f"{path}: {error}") from error


def change_settings(
    folder: Path, check: Callable[[Settings], object] = lambda settings: None, **changes: Any
) -> Settings:
    """Change some settings of a project; `check` may refuse the new ones before they are written."""
    before = {
        key: value for key, value in asdict(read_settings(folder)).items() if value is not None
    }
    settings = settings_of(before | changes)
    check(settings)
    write_settings(folder, settings, (folder / SETTINGS).stat().st_mode & 0o777)
    return settings


def write_settings(folder: Path, settings: Settings, mode: int) -> None:
    """Write project.toml. subtle: the mode is set before the text is there, so that a password is readable by others at no moment."""
    with replacing(folder / SETTINGS) as beside:
        beside.touch(mode)
        beside.write_text(settings.toml(), encoding="utf-8", newline="\n")
        beside.chmod(mode)


def check_tags(tags: Sequence[str]) -> None:
    """Refuse tags that cannot be told apart, typed or written to a file."""
    if not tags:
        raise TagError("a project needs at least one tag, such as --tags PER,ORG,LOC")
    if len(tags) > MAX_TAGS:
        raise TagError(f"a project has at most {MAX_TAGS} tags, one a key; found {len(tags)}")
    for at, tag in enumerate(tags):
        if (
            not isinstance(tag, str)
            or not tag
            or not tag.isprintable()
            or any(c.isspace() for c in tag)
            or len(tag) > 64
        ):
            raise TagError(
                "a tag is 1 to 64 printable characters without white space", text=str(tag)
            )
        if tag in ("O", "_"):
            raise TagError(
                "this tag means that nothing is there, and is always known; leave it out", text=tag
            )
        if tag.startswith(("B-", "I-")):
            raise TagError(f"name the types alone, without B- and I-: {tag[2:] or 'PER'}", text=tag)
        if tag in tags[:at]:
            raise TagError("a tag is named twice", text=tag)


def settings_of(given: dict[str, Any]) -> Settings:
    """Return settings from keys and values, every one checked."""
    known = {field.name: field for field in fields(Settings)}
    for key, value in given.items():
        if key not in known:
            raise ConfigError(f"there is no setting {key!r}; there are {', '.join(known)}")
        kinds: dict[str, Any] = {
            "tags": (list, tuple),
            "audit_train": bool,
            "batch": int,
            "seed": int,
        }
        kind = kinds.get(
            key, (int, float) if key in ("audit_share", "overlap_share", "rate") else str
        )
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"{key} is {value!r}, which is not of its kind")
    if missing := {"name", "tags"} - set(given):
        raise ConfigError(f"{min(missing)} is missing")
    return Settings(**given)


def _refuse_taken(folder: Path, store: str | None, guidelines: str | None) -> None:
    """Refuse a folder with files that would be written over; what a killed `init` has left is cleared away."""
    if (folder / SETTINGS).exists():
        if (
            store is None
            or read_settings(folder).store != store
            or store_version(store) is not None
        ):
            raise StoreError(
                f"{folder} is a project already; seqmix annotate opens it, or choose another folder"
            )
        return  # killed before its database had anything
    clear_moved(folder, STORE, GUIDELINES)
    for name in (STORE, MODELS, *((GUIDELINES,) if guidelines is not None else ())):
        if (folder / name).exists() and not (
            name == GUIDELINES and (folder / name).read_text(errors="replace") == guidelines
        ):
            raise StoreError(
                f"{folder} holds a {name} that is no project's; move it or choose another folder"
            )


def _write_part(part: Path, settings: Settings, guidelines: str | None) -> None:
    if guidelines is not None:
        (part / GUIDELINES).write_text(guidelines, encoding="utf-8", newline="\n")
    write_settings(part, settings, 0o600)
