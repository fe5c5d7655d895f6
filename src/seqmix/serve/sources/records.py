"""The sources of a project as the store keeps them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update

from seqmix.errors import DataError, NotFoundError
from seqmix.serve.store.records import checked_name, dumps, is_key, loads
from seqmix.serve.store.schema import sources, suggestions
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import newest_change

MODEL = "model"  # the name of the project's model, which no source may have
MATCHED = ("dictionary",)  # kinds that are matched when a sentence is shown
TAGGER, TYPES, PREDICTIONS = "tagger", "types", "predictions"  # kinds whose suggestions are stored
LLM = "llm"  # its suggestions are stored, too; a language model behind an address
COMPUTED = (TAGGER, TYPES)  # of these, kinds that the trainer computes
_MOST = 50  # sources of a project

# Statements are built once: building one takes SQLAlchemy longer than SQLite takes to run it.
_COLUMNS = select(
    sources.c.id, sources.c.name, sources.c.kind, sources.c.enabled, sources.c.at
).order_by(sources.c.id)


@dataclass(frozen=True)
class Source:
    """What suggests spans, without its settings, which may be long."""

    id: int
    name: str
    kind: str
    enabled: bool
    at: float  # when it was added or changed


def add_source(store: Store, name: str, kind: str, settings: Mapping[str, Any]) -> Source:
    """Add a source; it is on from now on."""
    checked_name(name, "the name of a source", 64)
    with store.writing() as conn:
        known = dict(settings) | {"tag_change": newest_change(conn)}
        row = {"name": name, "kind": kind, "settings": dumps(known), "enabled": True}
        before = list_sources(store)
        if name == MODEL or any(source.name == name for source in before):
            raise DataError(
                "a source with this name already exists; choose another name", text=name
            )
        if len(before) >= _MOST:
            raise DataError(f"a project has at most {_MOST} sources; remove one first")
        conn.execute(insert(sources).values(**row, at=time.time()))
        return find_source(store, name)


def list_sources(store: Store) -> list[Source]:
    """Return the sources in the order in which they were added."""
    with store.reading() as conn:
        return [Source(*row) for row in conn.execute(_COLUMNS)]


def find_source(store: Store, name: str) -> Source:
    """Return the source with this name."""
    for source in list_sources(store):
        if source.name == name:
            return source
    raise NotFoundError("source", name)


def read_settings(store: Store, source: Source) -> dict[str, Any]:
    """Return what a source needs to suggest: its terms, or the name of its model."""
    with store.reading() as conn:
        text = conn.execute(select(sources.c.settings).where(sources.c.id == source.id)).scalar()
    settings: dict[str, Any] = loads(text) or {}
    return settings


def enable_source(store: Store, name: str, on: bool) -> None:
    """Turn a source on or off for everybody."""
    changed = update(sources).where(sources.c.name == name).values(enabled=on)
    with store.writing() as conn:
        if not is_key(name) or conn.execute(changed).rowcount == 0:
            raise NotFoundError("source", name)


def remove_source(store: Store, name: str) -> None:
    """Remove a source and what it suggested; what people kept of it stays."""
    with store.writing() as conn:
        source = find_source(store, name)
        conn.execute(delete(suggestions).where(suggestions.c.source_id == source.id))
        conn.execute(delete(sources).where(sources.c.id == source.id))


def change_source(store: Store, name: str, settings: Mapping[str, Any]) -> Source:
    """Replace the settings of a source; what they suggested before counts no longer."""
    with store.writing() as conn:
        source = find_source(store, name)
        known = dict(settings) | {"tag_change": newest_change(conn)}
        values = {"settings": dumps(known), "at": max(time.time(), source.at + 1e-3)}
        conn.execute(update(sources).where(sources.c.id == source.id).values(**values))
        return find_source(store, name)
