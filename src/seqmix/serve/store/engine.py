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
    event,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from seqmix.errors import MissingExtraError, StoreError, first_line
from seqmix.serve.store import postgresql
from seqmix.serve.store.schema import external, meta, tables
from seqmix.serve.store.sqlite_check import harden, vet

SCHEMA = 3
_TRIGGERS = {
    f"events_no_{verb.lower()}": (
        f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events"
        " BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
    )
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
    _protect_events(conn)
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


def _protect_events(conn: Connection) -> None:
    """Make the database refuse changes to history, even by a mistake in this code."""
    if conn.dialect.name == "sqlite":
        for trigger in _TRIGGERS.values():
            conn.exec_driver_sql(trigger)
        return
    conn.exec_driver_sql(
        "CREATE FUNCTION events_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'events are append-only'"
        " USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    conn.exec_driver_sql(
        "CREATE TRIGGER events_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON events"
        " FOR EACH STATEMENT EXECUTE FUNCTION events_append_only()"
    )


# from version n to n + 1; a new store gets the newest tables at once
MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {1: _protect_events, 2: external.create}
