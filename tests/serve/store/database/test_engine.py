"""Stores are created, opened, upgraded or refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import delete, inspect, text, update
from sqlalchemy.exc import DBAPIError

from seqmix.errors import StoreError
from seqmix.serve.store import schema
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.database import engine
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.events import read_events
from seqmix.serve.store.store import create_store, open_store
from tests.support.stores import PER, TAGS, count_sentences, person, small_store


def test_a_store_of_an_older_version_is_upgraded_and_keeps_what_it_holds(url):
    with small_store(url) as store:
        event = save_answer(store, "s:1", person(store, "anna").id, "label", [PER])
        with store.writing() as conn:
            to_version_3(conn)
            conn.execute(
                update(schema.meta)
                .where(schema.meta.c.key == "schema")
                .values(value='{"version": 3, "migrations": {}}')
            )

    with open_store(url) as store:
        assert store.read_note("schema")["version"] == engine.SCHEMA
        assert list(store.read_note("schema")["migrations"]) == ["4", "5"]
        assert list(read_events(store)) == [event]
        with pytest.raises(StoreError, match="append-only"), store.writing() as conn:
            conn.execute(delete(schema.events))
    open_store(url).close()  # once is enough


def to_version_3(conn) -> None:
    """Take away what came with versions 4 and 5."""
    names = ("replies", "doubts", "comments", "suggestions", "sources", "tag_changes", "batches")
    for name in names:
        schema.tables.tables[name].drop(conn)
    if conn.dialect.name == "postgresql":
        conn.execute(text("DROP FUNCTION tag_changes_append_only CASCADE"))
    conn.execute(text("DROP INDEX events_in"))
    for column in (
        "events DROP COLUMN batch",
        "events DROP COLUMN shown",
        "sentences DROP COLUMN document",
        "sentences DROP COLUMN tag_change",
    ):
        conn.execute(text(f"ALTER TABLE {column}"))


def test_a_store_older_than_any_release_is_refused_in_one_sentence(url):
    with small_store(url) as store:
        store.write_note("schema", {"version": 2, "migrations": {}})

    with pytest.raises(StoreError, match="schema 2, which no released seqmix wrote"):
        open_store(url)


def test_an_upgrade_that_fails_leaves_the_store_as_it_was(url, monkeypatch):
    small_store(url).close()

    def broken(conn) -> None:
        conn.execute(text("CREATE TABLE halfway (x INTEGER)"))
        raise StoreError("no")

    monkeypatch.setattr(engine, "SCHEMA", engine.SCHEMA + 1)
    monkeypatch.setattr(engine, "MIGRATIONS", {**engine.MIGRATIONS, engine.SCHEMA - 1: broken})
    with pytest.raises(StoreError, match="no"):
        open_store(url)
    monkeypatch.undo()

    with open_store(url) as store, store.reading() as conn:
        assert not inspect(conn).has_table("halfway")


def test_a_store_of_a_newer_version_is_refused_in_one_sentence(url):
    with small_store(url) as store:
        store.write_note("schema", {"version": engine.SCHEMA + 1, "migrations": {}})

    with pytest.raises(
        StoreError,
        match=rf"newer seqmix \(schema {engine.SCHEMA + 1}, "
        rf"this one reads {engine.SCHEMA}\); upgrade",
    ):
        open_store(url)


def test_a_database_with_a_project_is_not_overwritten(url):
    small_store(url).close()

    with pytest.raises(StoreError, match="already holds a project"):
        create_store(url, TAGS)
    with open_store(url) as store:
        assert count_sentences(store) == 10


def test_a_store_that_is_not_there_is_not_made_by_opening_it(url):
    with pytest.raises(StoreError, match="seqmix init"):
        open_store(url)

    assert isinstance(url, str) or not Path(url.database).exists()


def test_a_database_that_is_not_ours_is_left_alone(url):
    database = engine.connect(url, new=True)
    with database.begin() as conn:
        conn.execute(text("CREATE TABLE events (x INTEGER)"))
    database.dispose()
    with pytest.raises(StoreError, match="'events' that is not seqmix's"):
        create_store(url, TAGS)


def test_a_file_that_is_no_database_is_one_line(tmp_path):
    (tmp_path / "store.sqlite").write_text("hello " * 1000)

    with pytest.raises(StoreError, match=r"store\.sqlite does not answer: file is not a database"):
        open_store(sqlite_url(tmp_path / "store.sqlite"))


@pytest.mark.parametrize(
    "url",
    [
        "mysql://localhost/x",
        "nonsense",
        "sqlite+nothing:///x",
        "sqlite://",
        "postgresql://u:secret@127.0.0.1:1/x",
    ],
)
def test_a_url_that_leads_nowhere_is_one_line_without_the_password(url):
    with pytest.raises(StoreError) as error:
        open_store(url)

    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)


def test_a_file_may_have_any_name(tmp_path):
    path = tmp_path / "50% of? #1" / "ü 'store'.sqlite"
    path.parent.mkdir()
    small_store(sqlite_url(path)).close()

    assert path.exists()
    with open_store(sqlite_url(path)) as store:
        assert count_sentences(store) == 10


def test_the_error_of_a_database_names_its_cause_only_once(store):
    with pytest.raises(StoreError) as error, store.reading() as conn:
        conn.execute(text("SELECT * FROM nowhere"))

    assert isinstance(error.value.__cause__, DBAPIError)
    assert str(error.value).count("\n") == 0
