"""The tables guard themselves."""

from __future__ import annotations

import pytest
from sqlalchemy import delete, insert, inspect, update
from sqlalchemy.exc import IntegrityError

from seqmix.errors import StoreError
from seqmix.serve.store import schema
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.events import read_events
from tests.support.stores import PER


def test_events_can_neither_be_changed_nor_deleted(store, anna):
    save_answer(store, "s:1", anna, "label", [PER])
    for statement in (update(schema.events).values(kind="skip"), delete(schema.events)):
        with pytest.raises(StoreError, match="append-only"), store.writing() as conn:
            conn.execute(statement)

    assert [event.kind for event in read_events(store)] == ["label"]


def test_foreign_keys_hold(store, anna):
    row = {
        "sentence_id": "nowhere",
        "annotator_id": anna,
        "kind": "label",
        "spans": "[]",
        "seconds": 0,
        "at": 0,
        "stream": "active",
    }
    with pytest.raises(StoreError) as error, store.writing() as conn:
        conn.execute(insert(schema.events), row)

    assert isinstance(error.value.__cause__, IntegrityError)


def test_no_column_may_be_empty_but_these_and_each_table_has_its_key(store):
    with store.reading() as conn:
        seen = inspect(conn)
        empty = {
            name: {column["name"] for column in seen.get_columns(name) if column["nullable"]}
            for name in schema.tables.tables
        }
        keys = {
            name: tuple(seen.get_pk_constraint(name)["constrained_columns"])
            for name in schema.tables.tables
        }

    assert {name: columns for name, columns in empty.items() if columns} == {
        "annotators": {"token_sha256"},
        "sentences": {"text", "offsets", "seed", "document", "tag_change"},
        "events": {"sure", "old", "generation", "undoes", "batch", "shown"},
        "queue": {"sole", "gold", "score", "suggestion"},
        "generations": {"dev", "model"},
        "generated": {"vetoed_by", "vetoed_at"},
        "external": {"parent", "sentence_id"},
        "batches": {"undone_by", "undone_at"},
        "tag_changes": {"annotator_id"},
        "comments": {"resolved_by", "resolved_at"},
        "doubts": {"seq", "kept_by", "kept_at"},
    }
    assert keys == {
        "meta": ("key",),
        "annotators": ("id",),
        "sentences": ("id",),
        "events": ("seq",),
        "current": ("sentence_id", "annotator_id"),
        "queue": ("sentence_id",),
        "leases": ("sentence_id", "annotator_id"),
        "generations": ("number",),
        "generated": ("id",),
        "external": ("kind", "id"),
        "batches": ("id",),
        "tag_changes": ("id",),
        "sources": ("id",),
        "suggestions": ("sentence_id", "source_id"),
        "replies": ("key",),
        "comments": ("id",),
        "doubts": ("sentence_id", "kind"),
    }
