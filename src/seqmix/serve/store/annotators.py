"""The annotators of a project and their login tokens, of which only hashes are kept."""

from __future__ import annotations

import secrets
import time
import unicodedata
from hashlib import sha256
from typing import Any

from sqlalchemy import insert, select, update

from seqmix.errors import DataError, NotFoundError
from seqmix.serve.store.records import Annotator, checked_name, is_key
from seqmix.serve.store.schema import annotators
from seqmix.serve.store.store import Store

MODEL = "model:"  # how the names of annotators begin that are language models


def add_model_annotator(store: Store, name: str) -> Annotator:
    """Add a language model, which has no token."""
    row = {"name": name, "token_sha256": None, "admin": False, "created": time.time()}
    with store.writing() as conn:
        conn.execute(insert(annotators).values(row))
        return _select(store, annotators.c.name == name)[0]


def add_annotator(store: Store, name: str, admin: bool = False) -> str:
    """Add an annotator and return their token, which cannot be read again."""
    name = checked_name(unicodedata.normalize("NFC", name), "the name of an annotator", 64)
    if name.startswith(MODEL):
        raise DataError(f"names that begin with {MODEL} are those of language models", text=name)
    token = secrets.token_urlsafe(24)
    row = {"name": name, "token_sha256": _hash(token), "admin": admin, "created": time.time()}
    with store.writing() as conn:
        if find_annotator(store, name) is not None:
            raise DataError(
                "an annotator with this name already exists; choose another, or renew the token",
                text=name,
            )
        conn.execute(insert(annotators).values(row))
    return token


def renew_token(store: Store, annotator_id: int) -> str:
    """Replace an annotator's token and return the new one."""
    token = secrets.token_urlsafe(24)
    _set_token(store, annotator_id, _hash(token))
    return token


def revoke_token(store: Store, annotator_id: int) -> None:
    """Take an annotator's token away; their answers stay."""
    _set_token(store, annotator_id, None)


def _set_token(store: Store, annotator_id: int, hashed: str | None) -> None:
    changed = update(annotators).where(annotators.c.id == annotator_id).values(token_sha256=hashed)
    with store.writing() as conn:
        if conn.execute(changed).rowcount == 0:
            raise NotFoundError("annotator", annotator_id)


def annotator_by_token(store: Store, token: str) -> Annotator | None:
    """Return the annotator with this token."""
    return next(iter(_select(store, annotators.c.token_sha256 == _hash(token))), None)


def find_annotator(store: Store, name: str) -> Annotator | None:
    """Return the annotator with this name, however the keyboard writes its accents."""
    name = unicodedata.normalize("NFC", name)
    return next(iter(_select(store, annotators.c.name == name)), None) if is_key(name) else None


def list_annotators(store: Store) -> list[Annotator]:
    """Return all annotators in the order they were added."""
    return _select(store)


def _select(store: Store, *where: Any) -> list[Annotator]:
    with store.reading() as conn:
        rows = conn.execute(select(annotators).where(*where).order_by(annotators.c.id))
        return [Annotator(row.id, row.name, row.admin) for row in rows]


def _hash(token: str) -> str:
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
