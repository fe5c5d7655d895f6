"""Annotators: who there is, and the tokens they log in with, of which only hashes are kept."""

from __future__ import annotations

import secrets
import time
import unicodedata
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, insert, select, update

from seqmix.errors import DataError, NotFoundError
from seqmix.serve.store.records import Annotator, checked_name, is_key
from seqmix.serve.store.schema import annotators


def add(conn: Connection, name: str, admin: bool) -> str:
    """A new annotator's token."""
    name, token = (
        checked_name(unicodedata.normalize("NFC", name), "the name of an annotator", 64),
        secrets.token_urlsafe(24),
    )
    if named(conn, name) is not None:
        raise DataError(
            "there is an annotator of this name already; choose another, or renew the token",
            text=name,
        )
    conn.execute(
        insert(annotators).values(
            name=name, token_sha256=_hash(token), admin=admin, created=time.time()
        )
    )
    return token


def renew(conn: Connection, id: int) -> str:
    """A new token in place of the old one."""
    token = secrets.token_urlsafe(24)
    _set(conn, id, _hash(token))
    return token


def revoke(conn: Connection, id: int) -> None:
    """No token any more."""
    _set(conn, id, None)


def by_token(conn: Connection, token: str) -> Annotator | None:
    """Whose token it is."""
    return next(iter(_found(conn, annotators.c.token_sha256 == _hash(token))), None)


def named(conn: Connection, name: str) -> Annotator | None:
    """An annotator by name, however the keyboard writes its accents."""
    name = unicodedata.normalize("NFC", name)
    return next(iter(_found(conn, annotators.c.name == name)), None) if is_key(name) else None


def everybody(conn: Connection) -> list[Annotator]:
    """All, in the order they came."""
    return _found(conn)


def _found(conn: Connection, *where: Any) -> list[Annotator]:
    found = conn.execute(select(annotators).where(*where).order_by(annotators.c.id))
    return [Annotator(row.id, row.name, row.admin) for row in found]


def _set(conn: Connection, id: int, hashed: str | None) -> None:
    if (
        conn.execute(
            update(annotators).where(annotators.c.id == id).values(token_sha256=hashed)
        ).rowcount
        == 0
    ):
        raise NotFoundError("annotator", id)


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
