"""Check a SQLite file before use: it must be ours, without anything that acts by itself.

A trigger runs on writing, a view or computed column on reading, and a rollback journal can name a
file to be deleted when the database is opened. Our files have known triggers and nothing else.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Collection, Mapping
from contextlib import closing
from pathlib import Path

from seqmix.data.files import refuse_links
from seqmix.errors import StoreError

PARTS = ("", "-wal", "-shm")  # the files of a database in write-ahead mode
_SQLITE = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")  # tables that SQLite itself makes
_COMPUTED = re.compile(r"\b(check|default|as|collate|where|virtual)\b", re.IGNORECASE)


def vet(path: Path, tables: Collection[str], triggers: Mapping[str, str]) -> frozenset[str]:
    """Return the names of a file's tables; refuse a file that is not ours and leave it as it is."""
    refuse_links(path.parent, (path.name + part for part in PARTS))
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists() or journal.is_symlink():
        raise StoreError(
            f"{path} has a rollback journal, which a store never has; move {journal.name} away"
            " to continue"
        )
    try:
        uri = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=30)) as db:
            harden(db)
            foreign = _foreign_part(db, tables, triggers)
            names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except sqlite3.Error as error:
        raise StoreError(f"the store {path} does not answer: {error}") from error
    if foreign is not None:
        raise StoreError(
            f"{path} is not a store of seqmix: it has the {foreign}, which is not"
            " seqmix's; it could do harm and is not used"
        )
    return frozenset(name for (name,) in names)


def harden(db: sqlite3.Connection) -> None:
    """Forbid functions with side effects inside the schema, and check pages for damage."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def _foreign_part(
    db: sqlite3.Connection, tables: Collection[str], triggers: Mapping[str, str]
) -> str | None:
    """Return the first table, trigger, index or view that we did not make, such as view 'x'."""
    for kind, name, sql in db.execute("SELECT type, name, sql FROM sqlite_master").fetchall():
        text = " ".join(str(sql or "").split())
        if kind == "trigger":
            ours = text == triggers.get(name)
        elif kind == "table":
            columns = db.execute("SELECT max(hidden) FROM pragma_table_xinfo(?)", (name,))
            hidden = columns.fetchone()[0]
            ours = (name in tables or name in _SQLITE) and not hidden and not _COMPUTED.search(text)
        elif kind == "index":
            columns = db.execute("SELECT min(cid) FROM pragma_index_xinfo(?)", (name,))
            first = columns.fetchone()[0]
            ours = first is not None and first >= -1 and not _COMPUTED.search(text)
        else:
            ours = False
        if not ours:
            return f"{kind} {str(name)[:80]!r}"
    return None
