"""What is saved stays saved, however many write at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from seqmix.errors import StaleError
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import current_answers, read_counts
from seqmix.serve.store.database import engine
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.store import open_store
from tests.support.postgres import hang_up, new_database, wipe
from tests.support.stores import (
    LOC,
    PER,
    TAGS,
    count_sentences,
    derived,
    person,
    rebuild,
    small_store,
)

SAVER = """
import sys
from sqlalchemy import make_url
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.store import open_store
store = open_store(make_url(sys.argv[1]))
for i in range(100000):
    version = answer_version(store, f"s:{i % 10}", 1)
    marks = [(0, 1 + i % 5, "PER")]
    saved = save_answer(store, f"s:{i % 10}", 1, "label", marks, version=version)
    print(saved.seq, flush=True)
"""


def test_what_was_said_to_be_saved_survives_a_kill_at_any_moment(url):
    with small_store(url):
        pass
    shown = url if isinstance(url, str) else url.render_as_string()
    child = subprocess.Popen(
        [sys.executable, "-c", SAVER, shown], stdout=subprocess.PIPE, text=True
    )
    confirmed = [int(child.stdout.readline()) for _ in range(25)]
    os.kill(child.pid, signal.SIGKILL)
    confirmed += [int(line) for line in child.stdout if line.endswith("\n")]
    child.wait()
    child.stdout.close()

    with open_store(url) as store:
        assert set(confirmed) <= {event.seq for event in read_events(store)}
        kept = derived(store)
        rebuild(store)
        assert derived(store) == kept


def test_sqlite_waits_for_the_disk_when_an_answer_is_saved(tmp_path):
    with small_store(sqlite_url(tmp_path / "store.sqlite")) as store:
        with store.writing(durable=False):
            pass
        with store.writing() as conn:
            pragmas = {
                name: conn.exec_driver_sql(f"PRAGMA {name}").scalar()
                for name in ("synchronous", "journal_mode", "foreign_keys")
            }

    assert pragmas == {"synchronous": 2, "journal_mode": "wal", "foreign_keys": 1}


def test_postgresql_is_told_to_wait_for_the_disk(postgres):
    url = new_database(postgres, "careless")
    database = engine.connect(url)
    with database.begin() as conn:
        conn.execute(text("ALTER DATABASE careless SET synchronous_commit = off"))
    database.dispose()
    with small_store(url) as store, store.writing() as conn:
        assert conn.execute(text("SHOW synchronous_commit")).scalar() == "on"


def test_a_server_that_was_restarted_is_found_again(database):
    wipe(database)
    with small_store(database) as store:
        hang_up(database)

        assert count_sentences(store) == 10
        hang_up(database)
        assert save_answer(store, "s:1", 1, "label", [PER]).seq == 1


def test_an_error_in_a_transaction_leaves_nothing_behind(store, anna):
    with pytest.raises(RuntimeError), store.writing():
        save_answer(store, "s:1", anna, "label", [PER])
        raise RuntimeError

    assert list(read_events(store)) == []
    save_answer(store, "s:1", anna, "label", [PER])


def hammer(store, who: int) -> list[str]:
    """Ask and answer until nothing is left."""
    done = []
    while (given := next_sentence(store, who)) is not None:
        save_answer(store, given.sentence.id, who, "label", [PER], version=given.version)
        done.append(given.sentence.id)
    return done


def test_eight_annotators_at_once_lose_nothing_and_share_nothing(url):
    names = [f"annotator {i}" for i in range(8)]
    with (
        small_store(url, 120, names, audit=0.1) as store,
        open_store(url) as other,
    ):  # two stores: as two processes would be
        who = [person(store, name).id for name in names]
        with ThreadPoolExecutor(8) as threads:
            done = list(threads.map(lambda i: hammer(store if i % 2 else other, who[i]), range(8)))

        assert sorted(id for own in done for id in own) == sorted(f"s:{i}" for i in range(120))
        by = Counter(event.sentence_id for event in read_events(store))
        assert set(by.values()) == {1}
        assert len(by) == 120
        assert {answer.sentence_id: answer.annotator_id for answer in current_answers(store)} == {
            id: who[i] for i, own in enumerate(done) for id in own
        }


def test_one_annotator_in_two_windows_gets_one_sentence_and_saves_it_once(url):
    with small_store(url, 10) as store:
        anna = person(store, "anna").id
        both = threading.Barrier(2)

        def window(spans) -> str:
            given = next_sentence(store, anna)
            both.wait()
            try:
                save_answer(store, given.sentence.id, anna, "label", spans, version=given.version)
            except StaleError:
                return "stale"
            return "saved"

        with ThreadPoolExecutor(2) as threads:
            assert sorted(threads.map(window, [[PER], [LOC]])) == ["saved", "stale"]
        assert len(list(read_events(store))) == 1


WORKER = """
import sys
from sqlalchemy import make_url
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.store import open_store
store, who = open_store(make_url(sys.argv[1])), int(sys.argv[2])
while (given := next_sentence(store, who)) is not None:
    save_answer(store, given.sentence.id, who, "label", [], version=given.version)
    print(given.sentence.id)
"""


def test_two_processes_at_once_lose_nothing_and_share_nothing(url):
    with small_store(url, 80) as store:
        shown = url if isinstance(url, str) else url.render_as_string()
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", WORKER, shown, str(person(store, name).id)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in ("anna", "bo")
        ]
        done = [worker.communicate()[0].split() for worker in workers]

        assert [worker.returncode for worker in workers] == [0, 0]
        assert sorted(done[0] + done[1]) == sorted(f"s:{i}" for i in range(80))
        assert len(list(read_events(store))) == 80


def test_a_reader_sees_no_half_written_answer_and_waits_for_nobody(store, anna):
    with ThreadPoolExecutor(1) as threads, store.writing():
        save_answer(store, "s:1", anna, "label", [PER])
        assert threads.submit(lambda: (current_answers(store), list(read_events(store)))).result(
            timeout=20
        ) == ([], [])


def test_a_note_is_kept_by_name(store):
    store.write_note("trainer", {"phase": "training", "at": 1.5})
    store.write_note("trainer", {"phase": "scoring", "text": "\ud800 \0"})

    assert store.read_note("trainer") == {"phase": "scoring", "text": "\ud800 \0"}
    assert store.read_note("nothing") is None
    assert store.tags == TAGS


def test_one_open_sentence_leaves_the_others_free(store, anna, bo):
    given = next_sentence(store, anna)

    assert [(id, state) for id, state, *_ in derived(store)[1] if state != "free"] == [
        (given.sentence.id, "held")
    ]
    assert read_counts(store).held == 1


def test_a_store_is_named_by_its_file_or_by_its_url_without_the_password(url, tmp_path):
    with small_store(url) as store:
        place = store.place

    assert place == str(tmp_path / "store.sqlite") or (
        place.startswith("postgresql") and "@127.0.0.1" in place
    )
