"""Copy a project while its server runs; everything acknowledged before the start is in the copy.

SQLite copies its file itself, as of one moment; PostgreSQL is read in one snapshot into a file.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Table, insert, select

from seqmix.data.files import open_plain, replacing
from seqmix.data.overwriting import NEW
from seqmix.errors import DataError, StoreError
from seqmix.serve.project import Project
from seqmix.serve.project_folder import settle
from seqmix.serve.settings import GUIDELINES, MODELS, STORE, write_settings
from seqmix.serve.store import schema
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.database import engine
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.records import PAGE
from seqmix.serve.store.sentences import paged
from seqmix.serve.store.store import Store, create_store


def back_up(project: Project, out: Path) -> int:
    """Copy a project to a new folder completely or not at all; return its number of events."""
    out = out.absolute()
    if out.exists() or out.is_symlink():
        raise DataError("expected the name of a new folder; backups never overwrite anything", out)
    with replacing(out, NEW) as part:
        part.chmod(0o700)
        (part / STORE).touch(0o600)
        if project.settings.store is None:
            _copy_file(project.folder / STORE, part / STORE)
        else:
            _copy_remote(project.store, part / STORE)
        settle(part / STORE)
        write_settings(part, replace(project.settings, store=None), 0o600)
        for name in (GUIDELINES, "training.toml"):
            with suppress(FileNotFoundError), open_plain(project.folder / name, "rb") as file:
                (part / name).write_bytes(file.read())
        _copy_models(project.models, part / MODELS)
        with Store(engine.connect(sqlite_url(part / STORE))) as copy:
            events = read_counts(copy).events
        settle(part / STORE)
    return events


def _copy_file(store: Path, copy: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(store, timeout=30)) as source,
            closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)  # in a single step, so of one moment while others write
    except sqlite3.Error as error:
        raise StoreError(f"the store {store} cannot be copied: {error}") from error


def _copy_remote(source: Store, copy: Path) -> None:
    """Copy a PostgreSQL store into a SQLite file."""
    schema_key = schema.meta.c.key == "schema"

    def fill(target: Store) -> None:
        with source.snapshot() as old, target.writing() as new:
            new.execute(schema.meta.delete().where(~schema_key))
            for table in schema.tables.sorted_tables:
                rows: Any = select(table)
                if table is schema.meta:
                    rows = rows.where(~schema_key)
                for page in paged(
                    old.execution_options(yield_per=PAGE)
                    .execute(rows.order_by(*_order(table)))
                    .mappings(),
                    PAGE,
                ):
                    new.execute(insert(table), [dict(row) for row in page])

    create_store(sqlite_url(copy), source.tags, fill).close()


def _order(table: Table) -> list[Any]:
    return list(table.primary_key.columns)  # an event comes after the one it undoes


def _copy_models(models: Path, copy: Path) -> None:
    """Copy the taggers, without one that the trainer removes meanwhile for a newer one."""
    for path in sorted(models.iterdir()) if models.is_dir() else ():
        if path.name == "lock" or path.name.startswith("."):
            continue
        copy.mkdir(exist_ok=True)
        try:
            if path.is_dir():
                shutil.copytree(path, copy / path.name, symlinks=True)
            else:
                shutil.copyfile(path, copy / path.name, follow_symlinks=False)
        except (FileNotFoundError, shutil.Error):
            shutil.rmtree(copy / path.name, ignore_errors=True)
