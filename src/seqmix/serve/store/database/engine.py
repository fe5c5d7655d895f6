"""Connect to SQLite or PostgreSQL, create the tables, and bring older ones up to date."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from seqmix.errors import MissingExtraError, StoreError, first_line
from seqmix.serve.store.database import postgresql
from seqmix.serve.store.database.sqlite_check import harden, vet
from seqmix.serve.store.schema import (
    batches,
    comments,
    doubts,
    events,
    meta,
    replies,
    sources,
    suggestions,
    tables,
    tag_changes,
)

SCHEMA = 5
_APPEND_ONLY = ("events", "tag_changes")
_TRIGGERS = {
    f"{table}_no_{verb.lower()}": (
        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table}"
        f" BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END"
    )
    for table in _APPEND_ONLY
    for verb in ("UPDATE", "DELETE")
}
_PRAGMAS = (
    "journal_mode = WAL",
    "foreign_keys = ON",
    "synchronous = FULL",
    "wal_autocheckpoint = 4000",
)


def sqlite_url(path: Path) -> URL:
    """Return the URL of a file, whatever characters its name has."""
    return URL.create("sqlite", database=str(path))


def connect(url: str | URL, new: bool = False) -> Engine:
    """Return an engine with the transactions of a store; `new` allows to create the file."""
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        name = parsed.get_backend_name()
        if name == "sqlite":
            return _connect_sqlite(parsed, new)
        if name == "postgresql":
            return _connect_postgresql(parsed, new)
    except (ArgumentError, NoSuchModuleError) as error:
        raise StoreError(
            f"a store must be postgresql://user@host/database; {first_line(error)}"
        ) from error
    except ImportError as error:
        raise MissingExtraError("postgres", "a store in PostgreSQL") from error
    raise StoreError(
        f"a store must be a file or postgresql://user@host/database; found a URL of {name!r}"
    )


def _connect_sqlite(url: URL, new: bool) -> Engine:
    if url.database in (None, "", ":memory:") or not (new or Path(str(url.database)).exists()):
        raise StoreError(
            f"there is no store {url.database or 'in memory'};"
            " seqmix init creates one in a project folder"
        )
    if not new and meta.name not in vet(Path(str(url.database)), tables.tables, _TRIGGERS):
        raise StoreError(
            f"there is no project in the store {url.database}; seqmix init creates one"
        )
    engine = create_engine(url, pool_size=16, max_overflow=48, connect_args={"timeout": 30})
    event.listen(engine, "connect", _on_connect_sqlite)
    event.listen(engine, "begin", _on_begin_sqlite)
    return engine


def _on_connect_sqlite(dbapi: Any, _: object) -> None:
    dbapi.isolation_level = None  # the driver must not begin transactions of its own accord
    harden(dbapi)
    for pragma in _PRAGMAS:
        dbapi.execute(f"PRAGMA {pragma}")


def _on_begin_sqlite(conn: Connection) -> None:
    """Let writers wait at the start, so that what they read still holds when they write."""
    writes = conn.get_execution_options().get("seqmix_writes")
    mode = "FULL" if writes == "durable" else "NORMAL"  # NORMAL does not wait for the disk
    if writes and conn.info.get("synchronous", "FULL") != mode:
        conn.exec_driver_sql(f"PRAGMA synchronous = {mode}")
        conn.info["synchronous"] = mode
    conn.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _connect_postgresql(url: URL, new: bool) -> Engine:
    engine = create_engine(
        url,
        pool_size=8,
        max_overflow=24,
        pool_pre_ping=True,
        connect_args=postgresql.connect_args(url),
    )
    event.listen(engine, "connect", partial(postgresql.on_connect, new))
    event.listen(engine, "begin", postgresql.on_begin)
    return engine


def create_tables(conn: Connection) -> None:
    """Create all tables in an empty database."""
    if schema_version(conn) is not None:
        raise StoreError(
            "this store already holds a project; choose another database, or open the project that"
            " is there"
        )
    if taken := set(inspect(conn).get_table_names()) & set(tables.tables):
        raise StoreError(
            f"this database has a table {min(taken)!r} that is not seqmix's;"
            " choose an empty database"
        )
    tables.create_all(conn)
    for table in _APPEND_ONLY:
        _protect(conn, table)
    _write_version(conn, SCHEMA, {})


def schema_version(conn: Connection) -> int | None:
    """Return the schema version of a store, or None if it has none."""
    if not inspect(conn).has_table("meta"):
        return None
    note = conn.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar()
    return None if note is None else int(json.loads(note)["version"])


def migrate(conn: Connection) -> None:
    """Bring an older store up to this version, step by step, in the caller's transaction."""
    version = schema_version(conn)
    if version is None:
        raise StoreError("there is no project in this store; seqmix init creates one")
    if version > SCHEMA:
        raise StoreError(
            f"this store was written by a newer seqmix (schema {version}, this one reads {SCHEMA});"
            " upgrade seqmix"
        )
    if version == SCHEMA:
        return
    if version < min(MIGRATIONS):
        raise StoreError(
            f"this store has schema {version}, which no released seqmix wrote; export its labels"
            " with the seqmix that wrote it"
        )
    note = conn.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar_one()
    applied = json.loads(note).get("migrations", {})
    for number in range(version, SCHEMA):
        MIGRATIONS[number](conn)
        applied[str(number + 1)] = time.time()
    _write_version(conn, SCHEMA, applied)


def _write_version(conn: Connection, number: int, applied: Mapping[str, float]) -> None:
    value = json.dumps({"version": number, "migrations": applied})
    if conn.execute(update(meta).where(meta.c.key == "schema").values(value=value)).rowcount == 0:
        conn.execute(insert(meta).values(key="schema", value=value))


def _protect(conn: Connection, table: str) -> None:
    """Make the database refuse changes to history, even by a mistake in this code."""
    if conn.dialect.name == "sqlite":
        for verb in ("update", "delete"):
            conn.exec_driver_sql(_TRIGGERS[f"{table}_no_{verb}"])
        return
    conn.exec_driver_sql(
        f"CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{table} are append-only'"
        " USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    conn.exec_driver_sql(
        f"CREATE TRIGGER {table}_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
        f" FOR EACH STATEMENT EXECUTE FUNCTION {table}_append_only()"
    )


def _add_sources_and_batches(conn: Connection) -> None:
    """Add the tables and columns that are new in version 4."""
    for table in (batches, tag_changes, sources, suggestions, comments, doubts):
        table.create(conn)
    key = "INTEGER" if conn.dialect.name == "sqlite" else "BIGINT"
    for column in (
        "sentences ADD COLUMN document TEXT",
        f"events ADD COLUMN batch {key}",
        "events ADD COLUMN shown TEXT",
        f"sentences ADD COLUMN tag_change {key}",
    ):
        conn.exec_driver_sql(f"ALTER TABLE {column}")
    next(index for index in events.indexes if index.name == "events_in").create(conn)
    _note_later_tags(conn)
    _protect(conn, "tag_changes")


def _note_later_tags(conn: Connection) -> None:
    """Turn the note of tags that earlier answers say nothing of into changes of the tags."""
    is_note = meta.c.key == "open_tags"
    note = json.loads(conn.execute(select(meta.c.value).where(is_note)).scalar() or "{}")
    for tag, after in sorted(note.items(), key=lambda pair: pair[1]):
        details = json.dumps({"earlier": "unknown"})
        values = {"kind": "add", "tag": tag, "details": details, "at": time.time(), "after": after}
        conn.execute(insert(tag_changes).values(values))
    conn.execute(delete(meta).where(is_note))


def _add_replies(conn: Connection) -> None:
    """Add the table that is new in version 5."""
    replies.create(conn)


# from version n to n + 1; a new store gets the newest tables at once
MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {
    3: _add_sources_and_batches,
    4: _add_replies,
}
