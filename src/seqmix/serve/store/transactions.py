"""Transactions on a store's database: writers take turns, readers wait for nobody, complaints are one line."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from seqmix.errors import StoreError


class Database:
    """An open database. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._turn, self._local = engine, threading.Lock(), threading.local()

    @property
    def place(self) -> str:
        """Where it is, without a password."""
        url = self._engine.url
        return (
            str(url.database)
            if url.get_backend_name() == "sqlite"
            else url.render_as_string(hide_password=True)
        )

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def writing(self, durable: bool = True) -> Iterator[Connection]:
        """A transaction in which nobody else writes; one inside another is part of it. Without `durable` a power cut may forget it."""
        if self._open is not None:
            yield self._open
            return
        with self._turn, self._told(), self._engine.connect() as bare:
            conn = bare.execution_options(seqmix_writes="durable" if durable else "light")
            with conn.begin():
                self._local.writer = conn
                try:
                    yield conn
                finally:
                    self._local.writer = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads; it waits for nobody. One inside another is part of it."""
        around = self._open or getattr(self._local, "reader", None)
        if around is not None:
            yield around
            return
        with self._told(), self._engine.connect() as conn:
            self._local.reader = conn
            try:
                yield conn
            finally:
                self._local.reader = None

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A transaction whose reads are all of one moment; in SQLite every one is."""
        with self._told(), self._engine.connect() as conn:
            yield (
                conn
                if conn.dialect.name == "sqlite"
                else conn.execution_options(isolation_level="REPEATABLE READ")
            )

    @property
    def _open(self) -> Connection | None:
        return getattr(self._local, "writer", None)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the database complains of, in one line that names it."""
        try:
            yield
        except SQLAlchemyError as error:
            said = str(
                error.orig if isinstance(error, DBAPIError) else error
            ).strip().splitlines() or [type(error).__name__]
            raise StoreError(f"the store {self.place} does not answer: {said[0]}") from error
