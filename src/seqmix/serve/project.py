"""A project folder: what is to be labeled, with which tags and by which rules.

project.toml    the settings; written last, so a folder that has one is complete
guidelines.md   what the page shows beside the text
store.sqlite    everything else, unless `store` names a PostgreSQL database
models/NNN/     the taggers trained so far
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from sqlalchemy import URL

from seqmix.data.files import open_plain
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, StoreError
from seqmix.serve.project_folder import building, clear_moved, settle
from seqmix.serve.settings import (
    GUIDELINES,
    MODELS,
    SETTINGS,
    STORE,
    ProjectSettings,
    read_settings,
    write_settings,
)
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.database.postgresql import need_trust, trust
from seqmix.serve.store.queue import Rules
from seqmix.serve.store.records import PAGE
from seqmix.serve.store.sentences import Added, add_sentences, paged, reserve_audit
from seqmix.serve.store.store import Store, create_store, open_store, store_version
from seqmix.serve.tags.in_settings import settle_tags

START = "start"  # in models: a tagger to begin with
TRAIN_NOW = "train_now"  # note: the next model is not to wait for a whole batch of answers
_BREATH = 0.01  # seconds between two transactions, in which others save


@dataclass(frozen=True)
class Project:
    """An open project."""

    folder: Path
    settings: ProjectSettings
    store: Store

    @property
    def guidelines(self) -> str:
        """The current text of guidelines.md; empty without the file."""
        try:
            with open_plain(self.folder / GUIDELINES, "rb") as file:
                return file.read().decode("utf-8", "replace").replace("\r\n", "\n")
        except FileNotFoundError:
            return ""

    @property
    def rules(self) -> Rules:
        """The settings that the queue follows."""
        return Rules(self.settings.audit_share, self.settings.overlap_share)

    @property
    def models(self) -> Path:
        """The folder of its taggers."""
        return self.folder / MODELS

    @property
    def start(self) -> str | None:
        """The name of a tagger to begin with: that of the settings, or the copy in `models`."""
        copied = self.models / START
        return self.settings.start or (str(copied) if copied.is_dir() else None)

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class Created:
    """What a new project holds."""

    text: Added
    seed: Added
    audit: int  # sentences set apart for the audit stream
    pool: int  # sentences to label
    labeled: int  # sentences that had labels


def create_project(
    folder: Path,
    sentences: Iterable[Sentence],
    settings: ProjectSettings,
    guidelines: str | None = None,
    seed_labels: Iterable[Sentence] = (),
    keep_labels: bool = False,
    may_be_empty: bool = False,
) -> Created:
    """Create a project completely or not at all.

    The sentences stream through; with `keep_labels` those that carry labels join the seed.
    """
    folder = folder.absolute()
    created: list[Created] = []

    def fill(store: Store) -> None:
        seed = add_sentences(store, seed_labels, seed=True, random_seed=settings.seed)
        text = add_sentences(store, sentences, seed=keep_labels, random_seed=settings.seed)
        audit = reserve_audit(store, settings.audit_share)
        counts = read_counts(store)
        if not counts.sentences and not may_be_empty:
            raise DataError(
                "there is nothing to label: every sentence of the text is empty or has labels"
            )
        created.append(Created(text, seed, audit, counts.sentences, counts.seed))

    _refuse_taken(folder, settings.store, guidelines)
    if settings.store is None:
        with building(folder, SETTINGS) as part:
            (part / STORE).touch(0o600)  # the journals beside it get the same permissions
            create_store(sqlite_url(part / STORE), settings.tags, fill).close()
            settle(part / STORE)
            _write_part(part, settings, guidelines)
    else:
        _create_remote(folder, settings, settings.store, guidelines, fill)
    return created[0]


def add_text(project: Project, added: Iterable[Sentence], keep_labels: bool = False) -> Added:
    """Add text to a project that may be in use; the next model ranks it with the rest.

    Others save between its short transactions. If it is interrupted, the same text can be added
    again: what is there already is skipped.
    """
    store, sums = project.store, Counter[str]()
    for page in paged(added, PAGE):
        seed = project.settings.seed
        part = add_sentences(store, page, keep_labels, random_seed=seed, rename=True)
        sums.update(asdict(part))
        time.sleep(_BREATH)
    if sums["new"]:
        store.write_note(TRAIN_NOW, time.time())
    return Added(**sums)


def _create_remote(
    folder: Path,
    settings: ProjectSettings,
    url: str,
    guidelines: str | None,
    fill: Callable[[Store], None],
) -> None:
    """Create a project whose store is a PostgreSQL database.

    subtle: the folder is in place before the database commits, since a folder without a database is
    recognized and completed by the next `init`, and a database without a folder is not.
    """
    new, placed = not folder.exists(), False

    def fill_and_place(store: Store) -> None:
        nonlocal placed
        with building(folder, SETTINGS) as part:
            _write_part(part, settings, guidelines)
            fill(store)
        placed = True

    try:
        create_store(url, settings.tags, fill_and_place).close()
        with suppress(DataError):  # if it cannot be noted, opening the project asks for it
            trust(url)
    except BaseException:
        # whether or not the commit happened, the folder opens or the same command completes it
        with suppress(StoreError):
            if placed and store_version(url) is None:
                for name in (SETTINGS, *((GUIDELINES,) if guidelines is not None else ())):
                    (folder / name).unlink(missing_ok=True)
                if new:
                    folder.rmdir()
        raise


def open_project(folder: Path) -> Project:
    """Open a project; tags added to project.toml since the last time are passed to the store."""
    folder = folder.absolute()
    settings = read_settings(folder)
    clear_moved(folder)
    file = folder / STORE
    if settings.store is None and not file.exists():
        raise StoreError(
            f"{folder} has no {STORE}: the project is incomplete; restore it from a backup,"
            " or create a new one"
        )
    store = open_store(store_url(folder, settings))
    try:
        return Project(folder, settle_tags(folder, settings, store), store)
    except BaseException:
        store.close()
        raise


def store_url(folder: Path, settings: ProjectSettings) -> str | URL:
    """Return where a project's store is; refuse a database that this user has not used before."""
    if settings.store is None:
        return sqlite_url(folder / STORE)
    need_trust(settings.store, folder)
    return settings.store


def _refuse_taken(folder: Path, store: str | None, guidelines: str | None) -> None:
    """Refuse a folder with files that would be overwritten; clear what a killed `init` left."""
    if (folder / SETTINGS).exists():
        if (
            store is None
            or read_settings(folder).store != store
            or store_version(store) is not None
        ):
            raise StoreError(
                f"{folder} is already a project; open it with seqmix annotate,"
                " or choose another folder"
            )
        return  # killed before its database had anything
    clear_moved(folder, STORE, GUIDELINES)
    for name in (STORE, MODELS, *((GUIDELINES,) if guidelines is not None else ())):
        if (folder / name).exists() and not (
            name == GUIDELINES and (folder / name).read_text(errors="replace") == guidelines
        ):
            raise StoreError(
                f"{folder} holds a {name} without a project; move it or choose another folder"
            )


def _write_part(part: Path, settings: ProjectSettings, guidelines: str | None) -> None:
    if guidelines is not None:
        (part / GUIDELINES).write_text(guidelines, encoding="utf-8", newline="\n")
    write_settings(part, settings, 0o600)
