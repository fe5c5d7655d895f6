"""What a SQLite file must be before anything in it is believed: a file of ours, with nothing in it that acts by itself.

A trigger runs when we write, a view or a computed column when we read, and a rollback journal can name a file to be deleted when the
database is opened. Our own files have two triggers, known word for word, and none of the others.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path

from seqmix.data.plain_files import refuse_links
from seqmix.errors import StoreError

_SQLITE = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")  # tables SQLite keeps for itself
_COMPUTED = re.compile(r"\b(check|default|as|collate|where|virtual)\b", re.IGNORECASE)
PARTS = ("", "-wal", "-shm")  # what belongs to a database in write-ahead mode


def vet(path: Path, tables: Collection[str], triggers: Mapping[str, str]) -> frozenset[str]:
    """Refuse a file that is not ours, which is left as it is; the names of its tables."""
    refuse_links(path.parent, (path.name + part for part in PARTS))
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists() or journal.is_symlink():
        raise StoreError(
            f"{path} has a rollback journal, which a store of ours never has; move {journal.name} away to go on"
        )
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True, timeout=30)
        ) as db:
            harden(db)
            complaint = _complaint(db, tables, triggers)
            there = frozenset(
                name
                for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            )
    except sqlite3.Error as error:
        raise StoreError(f"the store {path} does not answer: {error}") from error
    if complaint is not None:
        raise StoreError(f"{path} is no store of ours: {complaint}; it may do harm and is not used")
    return there


def harden(db: sqlite3.Connection) -> None:
    """Functions that reach outside are out of bounds for what stands in the schema, and damaged pages are noticed."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def _complaint(
    db: sqlite3.Connection, tables: Collection[str], triggers: Mapping[str, str]
) -> str | None:
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        text = " ".join(str(sql or "").split())
        if kind == "trigger":
            fine = text == triggers.get(name)
        elif kind == "table":
            hidden = db.execute(
                "SELECT max(hidden) FROM pragma_table_xinfo(?)", (name,)
            ).fetchone()[0]
            fine = (name in tables or name in _SQLITE) and not hidden and not _COMPUTED.search(text)
        elif kind == "index":
            least = db.execute("SELECT min(cid) FROM pragma_index_xinfo(?)", (name,)).fetchone()[0]
            fine = least is not None and least >= -1 and not _COMPUTED.search(text)
        else:
            fine = False
        if not fine:
            return f"it has a {kind} {str(name)[:80]!r} that is not ours"
    return None
