"""`seqmix migrate`: bring what an older seqmix wrote to the formats of this one.

A step leads from one version to the next. It changes files in place, each whole or not at all, and the one that holds the version last: a
step that was broken off is done again. What was there before lies in a backup beside it, but for a store in PostgreSQL. To raise a
format, raise its number where it is written, add a step here, and keep a folder of the old version in tests/fixtures for ever.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import emit
from seqmix.data.files import replacing
from seqmix.data.format_versions import foreign
from seqmix.errors import DataError, StoreError

Step = Callable[[Path], None]


@dataclass(frozen=True)
class Kind:
    """Something of ours on the disk."""

    name: str
    mark: str  # the file by which its folder is known
    known: Callable[[], int]  # the version this seqmix writes
    found: Callable[
        [Path, int], object
    ]  # the version a folder has; one that has nothing of a version yet has the known one
    worked_in: bool = False  # a process that works in such a folder locks it


def migrate(
    path: Annotated[
        Path,
        typer.Argument(
            help="A run directory, a project, a tagger, an adapted encoder, a folder of serve."
        ),
    ],
) -> None:
    """Bring what an older seqmix wrote to the formats of this one, with a backup beside it."""
    emit(migrated(path))


def migrated(
    path: Path,
    kinds: tuple[Kind, ...] | None = None,
    steps: Mapping[tuple[str, int], Step] | None = None,
) -> str:
    """Take the steps a folder needs, and say what was done."""
    from seqmix.data.locks import locked

    kinds, steps = KINDS if kinds is None else kinds, STEPS if steps is None else steps
    kind = next((kind for kind in kinds if (path / kind.mark).is_file()), None)
    if kind is None:
        expected = ", ".join(f"{kind.name} ({kind.mark})" for kind in kinds)
        raise DataError(
            f"there is nothing to migrate here; expected a folder that is a {expected}", path
        )
    known = kind.known()
    found = kind.found(path, known)
    why = foreign(path, found, known)
    if why is None:
        return f"{path}: a {kind.name} of format {known}, which is this seqmix's own; there is nothing to do"
    if type(found) is not int or not 0 < found < known:
        raise DataError(why)
    with locked(path) if kind.worked_in else nullcontext():
        backup = _backed_up(path, found)
        for number in range(found, known):
            steps[kind.name, number](path)
    return (
        f"{path}: a {kind.name}, brought from format {found} to {known}; what it was is in {backup}"
    )


def _backed_up(path: Path, version: int) -> Path:
    """A copy beside it, whole or not at all; an older backup is never written over."""
    path = path.absolute()
    taken = 1
    while (
        backup := path.with_name(
            f"{path.name}.v{version}-backup" + (f"-{taken}" if taken > 1 else "")
        )
    ).exists():
        taken += 1
    with replacing(backup, folder=True) as beside:
        shutil.copytree(
            path,
            beside,
            dirs_exist_ok=True,
            symlinks=True,
            ignore=shutil.ignore_patterns("*.sqlite*", "lock"),
        )
        for store in (
            path / name
            for name in ("store.sqlite", "labelstudio.sqlite")
            if (path / name).is_file()
        ):
            # subtle: a copy of the file alone would miss what still stands in its journal
            with (
                closing(sqlite3.connect(store)) as own,
                closing(sqlite3.connect(beside / store.name)) as copy,
            ):
                own.backup(copy)
            shutil.copymode(store, beside / store.name)
    return backup


def _in_json(mark: str) -> Callable[[Path, int], object]:
    """The version that a JSON file names."""

    def found(folder: Path, known: int) -> object:
        try:
            described: Any = json.loads((folder / mark).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(f"cannot be read: {error}", folder / mark) from error
        return described.get("format_version") if isinstance(described, dict) else None

    return found


def _in_rounds(folder: Path, known: int) -> object:
    """The oldest version among the rounds of a run."""
    path = folder / "rounds.jsonl"
    try:
        lines = (
            [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            if path.exists()
            else []
        )
        versions = [line["format_version"] for line in lines]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"is damaged: {error}", path) from error
    return min(versions, default=known)


def _in_store(folder: Path, known: int) -> object:
    """The version of a project's tables."""
    from seqmix.serve.project import read_settings, store_url
    from seqmix.serve.store.store import store_version

    return store_version(store_url(folder, read_settings(folder)))


def _in_labelstudio(folder: Path, known: int) -> object:
    from seqmix.serve.labelstudio.database import NAME, vet_file

    path = folder / NAME
    try:
        vet_file(folder)
        with closing(sqlite3.connect(path)) as own:
            row = own.execute("SELECT value FROM meta WHERE key = 'format_version'").fetchone()
        return None if row is None else json.loads(row[0])
    except (sqlite3.Error, ValueError, RecursionError, StoreError) as error:
        raise DataError(f"cannot be read: {error}", path) from error


def _known_of_projects() -> int:
    from seqmix.serve.store.schema import SCHEMA

    return SCHEMA


def _known_of_labelstudio() -> int:
    from seqmix.serve.labelstudio.database import FORMAT_VERSION

    return FORMAT_VERSION


def _known_of_taggers() -> int:
    from seqmix.tagger.model_folders import FORMAT_VERSION

    return FORMAT_VERSION


def _known_of_encoders() -> int:
    from seqmix.starter.loader import ADAPTED_VERSION

    return ADAPTED_VERSION


def _known_of_runs() -> int:
    from seqmix.loop.rounds import FORMAT_VERSION

    return FORMAT_VERSION


def _open_project(folder: Path) -> None:
    """Opening a store brings its tables up to date, in one transaction."""
    from seqmix.serve.project import open_project

    open_project(folder).close()


KINDS = (
    Kind("project", "project.toml", _known_of_projects, _in_store),
    Kind(
        "folder of seqmix serve",
        "labelstudio.sqlite",
        _known_of_labelstudio,
        _in_labelstudio,
        worked_in=True,
    ),
    Kind("tagger", "tagger.json", _known_of_taggers, _in_json("tagger.json")),
    Kind("adapted encoder", "adapt.json", _known_of_encoders, _in_json("adapt.json")),
    Kind("run", "config.toml", _known_of_runs, _in_rounds, worked_in=True),
)
STEPS: Mapping[tuple[str, int], Step] = {
    ("project", 1): _open_project
}  # by kind and the version a step starts from
