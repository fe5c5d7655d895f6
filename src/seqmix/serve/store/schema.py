"""The tables, how they grow from version to version, and how a database is reached. SQLite and PostgreSQL share every line but a few here.

    meta          schema version, tags, what the trainer is doing
    annotators    who; tokens as hashes only
    sentences     the text; never changes
    events        every answer, skip, undo and adjudication; append-only, held so by triggers
    current       derived: what each annotator says now
    queue         derived: whose turn a sentence is (state, sole, gold), and its place in the last ranking
    leases        who has which sentence open
    generations   what each training brought
    generated     what SeqMix made, and what people refused of it
    external      what another annotation tool holds, by its own ids

Text is stored as JSON in ASCII: PostgreSQL holds no NUL and neither holds half a surrogate pair.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from seqmix.errors import MissingExtraError, StoreError
from seqmix.serve.store import postgresql as remote
from seqmix.serve.store.sqlite_check import harden, vet

SCHEMA = 3
_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only what it calls INTEGER

tables = MetaData()

meta = Table(
    "meta",
    tables,
    Column("key", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

annotators = Table(
    "annotators",
    tables,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("token_sha256", String(64), unique=True),  # none: may not log in
    Column("admin", Boolean, nullable=False),
    Column("created", Float, nullable=False),
)

sentences = Table(
    "sentences",
    tables,
    Column("id", Text, primary_key=True),
    Column("position", Integer, nullable=False, unique=True),
    Column("digest", String(32), nullable=False, unique=True),  # of the tokens
    Column("length", Integer, nullable=False),
    Column("tokens", Text, nullable=False),
    Column("text", Text),
    Column("offsets", Text),
    Column("seed", Text),  # tag rows known before the project began
)

events = Table(
    "events",
    tables,
    Column("seq", _Key, primary_key=True, autoincrement=True),
    Column("sentence_id", Text, ForeignKey("sentences.id"), nullable=False),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("spans", Text, nullable=False),
    Column("sure", Text),
    Column("old", Text),
    Column("seconds", Float, nullable=False),
    Column("at", Float, nullable=False),
    Column("stream", String(16), nullable=False),
    Column("generation", Integer),
    Column("undoes", _Key, ForeignKey("events.seq"), unique=True),
    Index("events_of", "sentence_id", "annotator_id", "seq"),
    Index("events_by", "annotator_id", "seq"),
    sqlite_autoincrement=True,  # a seq is never given twice, not even after a crash
)

current = Table(
    "current",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), primary_key=True),
    Column("seq", _Key, ForeignKey("events.seq"), nullable=False),
    Column(
        "since", _Key, nullable=False
    ),  # the seq of the annotator's first answer that still counts
    Column("kind", String(16), nullable=False),
    Index("current_by", "annotator_id", "kind", "seq"),
)

queue = Table(
    "queue",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("stream", String(16), nullable=False),  # active, audit, seed or retired
    Column("state", String(8), nullable=False),  # free, held or done
    Column(
        "lot", BigInteger, nullable=False
    ),  # random: the order of the audit stream, and of all before a ranking
    Column(
        "chance", Float, nullable=False
    ),  # random in [0, 1): below the overlap share, a second annotator is asked
    Column(
        "sole", Integer
    ),  # the one annotator who answered an active sentence that nobody else has open
    Column(
        "gold", _Key
    ),  # the event that counts: the adjudication, else the first annotator's answer
    Column("generation", Integer, nullable=False),  # of the ranking; -1: not ranked yet
    Column("rank", BigInteger, nullable=False),
    Column("score", Float),
    Column("suggestion", Text),
    Index("queue_lots", "stream", "state", "lot"),
    Index("queue_sole", "sole", "chance"),
)
Index("queue_order", queue.c.stream, queue.c.state, queue.c.generation.desc(), queue.c.rank)

leases = Table(
    "leases",
    tables,
    Column("sentence_id", Text, ForeignKey("sentences.id"), primary_key=True),
    Column("annotator_id", Integer, ForeignKey("annotators.id"), primary_key=True),
    Column("stream", String(16), nullable=False),
    Column("at", Float, nullable=False),
    Index("leases_at", "at"),
    Index("leases_by", "annotator_id", "at"),
)

generations = Table(
    "generations",
    tables,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Float, nullable=False),
    Column("labeled", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("spans", Integer, nullable=False),
    Column("dev", Text),
    Column("audit", Text, nullable=False),
    Column("seconds", Text, nullable=False),
    Column("model", Text),
)

generated = Table(
    "generated",
    tables,
    Column(
        "id", String(32), primary_key=True
    ),  # the digest of its tokens, so that a veto outlives the generation
    Column("generation", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("record", Text, nullable=False),
    Column("vetoed_by", Integer, ForeignKey("annotators.id")),
    Column("vetoed_at", Float),
    Index("generated_order", "generation", "place"),
)

external = Table(
    "external",
    tables,
    Column("kind", String(16), primary_key=True),  # task or annotation
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("parent", BigInteger),  # the task of an annotation
    Column("sentence_id", Text, ForeignKey("sentences.id")),  # none: a task without text
    Column("state", String(16), nullable=False),
    Column("value", Text, nullable=False),  # JSON, as the tool sent it
    Index("external_of", "sentence_id"),
    Index("external_in", "parent"),
    Index("external_by", "kind", "state"),
)

_TRIGGERS = {
    f"events_no_{verb.lower()}": (
        f"CREATE TRIGGER events_no_{verb.lower()} BEFORE {verb} ON events BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
    )
    for verb in ("UPDATE", "DELETE")
}


def sqlite_url(path: Path) -> URL:
    """The URL of a file, whatever characters its name has."""
    return URL.create("sqlite", database=str(path))


def connect(url: str | URL, new: bool = False) -> Engine:
    """An engine whose transactions do what the store relies on. A file that is not there is made only if it is to be new."""
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        name = parsed.get_backend_name()
        if name not in ("sqlite", "postgresql"):
            raise StoreError(
                f"a store is a file or postgresql://user@host/database; found a URL of {name!r}"
            )
        if name == "sqlite":
            if parsed.database in (None, "", ":memory:") or not (
                new or Path(str(parsed.database)).exists()
            ):
                raise StoreError(
                    f"there is no store {parsed.database or 'in memory'}; seqmix init makes one in a project folder"
                )
            if not new and meta.name not in vet(
                Path(str(parsed.database)), tables.tables, _TRIGGERS
            ):
                raise StoreError(
                    f"there is no project in the store {parsed.database}; seqmix init makes one"
                )
            engine = create_engine(
                parsed, pool_size=16, max_overflow=48, connect_args={"timeout": 30}
            )
        else:
            engine = create_engine(
                parsed,
                pool_size=8,
                max_overflow=24,
                pool_pre_ping=True,
                connect_args=remote.connect_args(parsed),
            )
    except (ArgumentError, NoSuchModuleError) as error:
        raise StoreError(
            f"this is no URL of a store: {str(error).splitlines()[0]}; expected postgresql://user@host/database"
        ) from error
    except ImportError as error:
        raise MissingExtraError("postgres", "a store in PostgreSQL") from error
    event.listen(
        engine,
        "connect",
        _on_connect_sqlite if name == "sqlite" else partial(remote.on_connect, new),
    )
    event.listen(engine, "begin", _on_begin_sqlite if name == "sqlite" else remote.on_begin)
    return engine


def _on_connect_sqlite(dbapi: Any, _: object) -> None:
    dbapi.isolation_level = None  # transactions are begun below, not guessed by the driver
    harden(dbapi)
    for pragma in (
        "journal_mode = WAL",
        "foreign_keys = ON",
        "synchronous = FULL",
        "wal_autocheckpoint = 4000",
    ):
        dbapi.execute(f"PRAGMA {pragma}")


def _on_begin_sqlite(conn: Connection) -> None:
    """Writers wait for their turn at the start, so that what they read is still true when they write."""
    writes = conn.get_execution_options().get("seqmix_writes")
    wait = "FULL" if writes == "durable" else "NORMAL"  # NORMAL does not wait for the disk
    if writes and conn.info.get("synchronous", "FULL") != wait:
        conn.exec_driver_sql(f"PRAGMA synchronous = {wait}")
        conn.info["synchronous"] = wait
    conn.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def create(conn: Connection) -> None:
    """All tables in an empty database."""
    if version(conn) is not None:
        raise StoreError(
            "this store already holds a project; choose another database, or open the project that is there"
        )
    if taken := set(inspect(conn).get_table_names()) & set(tables.tables):
        raise StoreError(
            f"this database has a table {min(taken)!r} that is not ours; choose an empty database"
        )
    tables.create_all(conn)
    _guard_events(conn)
    _stamp(conn, SCHEMA, {})


def version(conn: Connection) -> int | None:
    """The schema version of a store; None where there is none."""
    if not inspect(conn).has_table("meta"):
        return None
    found = conn.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar()
    return None if found is None else int(json.loads(found)["version"])


def migrate(conn: Connection) -> None:
    """Bring an older store up to this version, step by step, inside the caller's transaction."""
    found = version(conn)
    if found is None:
        raise StoreError("there is no project in this store; seqmix init makes one")
    if found > SCHEMA:
        raise StoreError(
            f"this store was written by a newer seqmix (schema {found}, this one knows {SCHEMA}); upgrade seqmix"
        )
    if found == SCHEMA:
        return
    applied = json.loads(
        conn.execute(select(meta.c.value).where(meta.c.key == "schema")).scalar_one()
    ).get("migrations", {})
    for number in range(found, SCHEMA):
        MIGRATIONS[number](conn)
        applied[str(number + 1)] = time.time()
    _stamp(conn, SCHEMA, applied)


def _stamp(conn: Connection, number: int, applied: Mapping[str, float]) -> None:
    value = json.dumps({"version": number, "migrations": applied})
    if conn.execute(update(meta).where(meta.c.key == "schema").values(value=value)).rowcount == 0:
        conn.execute(insert(meta).values(key="schema", value=value))


def _guard_events(conn: Connection) -> None:
    """History is not rewritten, not even by a mistake in our own code."""
    if conn.dialect.name == "sqlite":
        for trigger in _TRIGGERS.values():
            conn.exec_driver_sql(trigger)
        return
    conn.exec_driver_sql(
        "CREATE FUNCTION events_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'events are append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$"
    )
    conn.exec_driver_sql(
        "CREATE TRIGGER events_guard BEFORE UPDATE OR DELETE OR TRUNCATE ON events FOR EACH STATEMENT EXECUTE FUNCTION events_append_only()"
    )


# from version n to n + 1; a new store gets the newest tables at once
MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {1: _guard_events, 2: external.create}
