"""A project's database, in SQLite or PostgreSQL: a handle that the functions of this package take.

    store = open_store("postgresql://user@host/database")
    event = save_answer(store, "notes:7", anna.id, "label", [Mark(0, 2, "PER")], version=0)

An answer is on the disk when `save_answer` returns. Events are only ever added; the current state
follows from them, and an undo is an event too. Writers take turns, so what a writer has read still
holds when it writes. Large results are read page by page, so that no cursor blocks a writer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from sqlalchemy import URL, Connection, Engine, insert, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from seqmix.errors import StoreError, first_line
from seqmix.serve.store.database import engine
from seqmix.serve.store.records import loads
from seqmix.serve.store.schema import meta
from seqmix.serve.store.tags.history import TagHistory, newest_change, read_tag_history


def open_store(url: str | URL) -> Store:
    """Open a store; an older one is brought up to date, a newer one refused."""
    store = Store(engine.connect(url))
    try:
        with store.writing() as conn:
            engine.migrate(conn)
            store.read_tags()
    except BaseException:
        store.close()
        raise
    return store


def create_store(
    url: str | URL, tags: Sequence[str], fill: Callable[[Store], None] = lambda store: None
) -> Store:
    """Create and fill a store in one transaction; refuse a database that holds a project."""
    store = Store(engine.connect(url, new=True))
    try:
        with store.writing() as conn:
            engine.create_tables(conn)
            store.set_tags(tags)
            fill(store)
    except BaseException:
        store.close()
        raise
    return store


def store_version(url: str | URL) -> int | None:
    """Return the version of a store's tables without changing them; None if it has none."""
    with Store(engine.connect(url)) as store, store.reading() as conn:
        return engine.schema_version(conn)


class Store:
    """An open database. Threads may share it; each process opens its own."""

    def __init__(self, engine: Engine) -> None:
        self.tags: tuple[str, ...] = ()
        self.engine, self._turn, self._local = engine, threading.Lock(), threading.local()
        self._tag_history = TagHistory()

    @property
    def place(self) -> str:
        """Where it is, without the password."""
        url = self.engine.url
        if url.get_backend_name() == "sqlite":
            return str(url.database)
        return url.render_as_string(hide_password=True)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self, durable: bool = True) -> Iterator[Connection]:
        """Open a transaction in which nobody else writes, or join the one this thread has open.

        Without `durable` it does not wait for the disk, and a power cut may lose it.
        """
        if self._writer is not None:
            yield self._writer
            return
        with self._turn, self._complaining(), self.engine.connect() as raw:
            conn = raw.execution_options(seqmix_writes="durable" if durable else "light")
            with conn.begin():
                self._local.writer = conn
                try:
                    yield conn
                finally:
                    self._local.writer = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Open a transaction that only reads and waits for nobody, or join the one that is open."""
        outer = self._writer or getattr(self._local, "reader", None)
        if outer is not None:
            yield outer
            return
        with self._complaining(), self.engine.connect() as conn:
            self._local.reader = conn
            try:
                yield conn
            finally:
                self._local.reader = None

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """Open a transaction whose reads all see the same moment; in SQLite every one does."""
        with self._complaining(), self.engine.connect() as conn:
            if conn.dialect.name == "sqlite":
                yield conn
            else:
                yield conn.execution_options(isolation_level="REPEATABLE READ")

    def write_note(self, key: str, value: Any) -> None:
        """Keep a JSON value by name, such as what the trainer is doing, without a disk sync."""
        changed = update(meta).where(meta.c.key == key).values(value=json.dumps(value))
        with self.writing(durable=False) as conn:
            if conn.execute(changed).rowcount == 0:
                conn.execute(insert(meta).values(key=key, value=json.dumps(value)))

    def read_note(self, key: str) -> Any:
        """Return the value kept under a name, or None."""
        with self.reading() as conn:
            return loads(conn.execute(select(meta.c.value).where(meta.c.key == key)).scalar())

    def set_tags(self, tags: Sequence[str]) -> None:
        """Set the span types of the project."""
        self.write_note("tags", list(tags))
        self.tags = tuple(tags)

    def read_tags(self) -> tuple[str, ...]:
        """Return the span types as of now; another process may have added one."""
        self.tags = tuple(self.read_note("tags"))
        return self.tags

    def tag_history(self) -> TagHistory:
        """Return the changes of the tags as of now; they are read when there is a new one."""
        with self.reading() as conn:
            known = self._tag_history
            if newest_change(conn) != known.newest:
                known = self._tag_history = read_tag_history(conn)
            return known

    @property
    def _writer(self) -> Connection | None:
        return getattr(self._local, "writer", None)

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        """Turn a database error into one line that names the database."""
        try:
            yield
        except SQLAlchemyError as error:
            cause = error.orig if isinstance(error, DBAPIError) and error.orig else error
            raise StoreError(
                f"the store {self.place} does not answer: {first_line(cause)}"
            ) from error
