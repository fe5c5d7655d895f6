"""The file in which the Label Studio backend remembers.

    folder/
      labelstudio.sqlite   tasks, annotations, the labeling configuration, ranks
      models/0003/         the tagger of each of the last rounds
      lock                 held while a server works here

What was written is on the disk when the call returns. The server and the process that trains each open the file; threads may share one.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seqmix.data.files import refuse_links, version_problem
from seqmix.errors import RunError, StoreError
from seqmix.serve.store.sqlite_check import PARTS, harden, vet

FORMAT_VERSION = 1
NAME = "labelstudio.sqlite"
Row = tuple[Any, ...]
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tasks (id INTEGER PRIMARY KEY, data TEXT NOT NULL, digest TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS annotations (
    id INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    result TEXT NOT NULL, cancelled INTEGER NOT NULL, truth INTEGER NOT NULL, updated TEXT NOT NULL, seq INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS annotations_task ON annotations (task);
CREATE TABLE IF NOT EXISTS deleted (kind TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (kind, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ranks (
    task INTEGER PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE, digest TEXT NOT NULL, score REAL NOT NULL, result TEXT NOT NULL);
"""
_NAMES = ("meta", "tasks", "annotations", "deleted", "ranks")


def vet_file(folder: Path) -> None:
    """Refuse a folder that could do harm: one with links in it, or with a database that is not ours."""
    refuse_links(folder, ("lock", "models", *(NAME + part for part in PARTS)))
    if (folder / NAME).exists():
        vet(folder / NAME, _NAMES, {})


class File:
    """SQLite with whole transactions, and a drawer for small things."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._lock = folder, threading.RLock()
        try:
            vet_file(folder)
            folder.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(
                folder / NAME, timeout=30, check_same_thread=False, isolation_level=None
            )
            harden(self._db)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(_TABLES)
            with self.writing():
                self._db.execute(
                    "INSERT OR IGNORE INTO meta VALUES ('format_version', ?)",
                    (str(FORMAT_VERSION),),
                )
                self._db.execute(
                    "INSERT OR IGNORE INTO meta VALUES ('name', ?)",
                    (json.dumps(secrets.token_hex(3)),),
                )
            version = self.get("format_version")
        except (OSError, sqlite3.Error, StoreError) as error:
            raise RunError(
                f"cannot use the folder {folder}: {error}; give an empty one, or one that seqmix labelstudio made"
            ) from error
        if (why := version_problem(folder, version, FORMAT_VERSION)) is not None:
            self.close()
            raise RunError(why)

    def close(self) -> None:
        """No more after this."""
        with self._lock:
            self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written inside, or nothing; what was read inside still holds when it is written."""
        with self._lock:
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def rows(self, query: str, *values: Any) -> list[Row]:
        """What a query finds, or nothing for a statement that only changes."""
        with self._lock:
            return self._db.execute(query, values).fetchall()

    def many(self, query: str, values: Iterable[Row]) -> None:
        """One statement for many rows."""
        with self._lock:
            self._db.executemany(query, values)

    def get(self, key: str) -> Any:
        """Something small; None if there is no such thing."""
        found = self.rows("SELECT value FROM meta WHERE key = ?", key)
        return json.loads(found[0][0]) if found else None

    def set(self, key: str, value: Any) -> None:
        """Remember something small."""
        with self.writing():
            self.rows("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, json.dumps(value))

    def add(self, key: str, n: int) -> int:
        """Count on."""
        with self.writing():
            total = int(self.get(key) or 0) + n
            self.set(key, total)
        return total
