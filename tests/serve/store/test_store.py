"""One suite for both databases: what is saved stays saved, and what is true now follows from what was said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, inspect, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from seqmix.data.augmented import Augmented, Lineage
from seqmix.data.sentence import Sentence
from seqmix.data.text import from_text
from seqmix.errors import DataError, NotFoundError, StaleError, StoreError, TagError
from seqmix.serve.store import engine, events, schema, sentences
from seqmix.serve.store.annotators import (
    add_annotator,
    annotator_by_token,
    find_annotator,
    renew_token,
    revoke_token,
)
from seqmix.serve.store.answers import (
    answer_version,
    last_answer,
    rebuild,
    save_answer,
    undo_answer,
)
from seqmix.serve.store.current import current_answers, gold_answers, read_counts
from seqmix.serve.store.engine import sqlite_url
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import next_sentence, unlabeled_ids
from seqmix.serve.store.rankings import (
    publish_generation,
    read_generated,
    read_generations,
    set_veto,
    vetoed_ids,
)
from seqmix.serve.store.records import Generation, Mark, Notes, Rank, digest
from seqmix.serve.store.schema import leases
from seqmix.serve.store.sentences import (
    add_sentences,
    read_audit_sentences,
    read_labeled,
    read_sentences,
    reserve_audit,
)
from seqmix.serve.store.store import create_store, open_store
from tests.support.postgres import hang_up, new_database, wipe
from tests.support.stores import (
    TAGS,
    count_sentences,
    derived,
    find_sentence,
    person,
    small_store,
    suggestion_of,
    unlabeled,
)

PER, LOC = Mark(0, 1, "PER"), Mark(3, 4, "LOC")


@pytest.fixture
def store(url):
    with small_store(url) as made:
        yield made


@pytest.fixture
def anna(store) -> int:
    return person(store, "anna").id


@pytest.fixture
def bo(store) -> int:
    return person(store, "bo").id


# answers


def test_an_answer_is_an_event_with_who_when_how_long_and_what_was_there_before(store, anna):
    first = save_answer(store, "s:1", anna, "label", [LOC, PER], seconds=2.5, now=100.0)
    second = save_answer(
        store, "s:1", anna, "label", [PER], seconds=1.0, version=first.seq, now=200.0
    )

    assert (first.sentence_id, first.annotator_id, first.kind, first.spans) == (
        "s:1",
        anna,
        "label",
        (PER, LOC),
    )
    assert (first.seconds, first.at, first.old, first.stream) == (2.5, 100.0, None, "active")
    assert second.old == {"spans": [[0, 1, "PER"], [3, 4, "LOC"]], "sure": None}
    assert list(read_events(store)) == [first, second]
    assert list(read_events(store, after=first.seq)) == [second]


def test_the_current_answer_is_the_last_one(store, anna):
    first = save_answer(store, "s:1", anna, "label", [PER, LOC])
    save_answer(store, "s:1", anna, "label", [LOC], version=first.seq)

    (answer,) = current_answers(store)
    assert (answer.annotator, answer.kind, answer.spans) == ("anna", "label", (LOC,))
    assert current_answers(store, "s:1") == [answer]
    assert current_answers(store, "s:2") == []


def test_labeled_sentences_come_in_bio_in_the_order_of_the_text(store, anna, bo):
    save_answer(store, "s:3", bo, "label", [Mark(0, 2, "PER")])
    save_answer(store, "s:1", anna, "label", [])

    one, three = read_labeled(store)
    assert (one.id, one.tags) == ("s:1", ("O",) * 5)
    assert (three.id, three.tags) == ("s:3", ("B-PER", "I-PER", "O", "O", "O"))
    assert three.text == "Lena 3 left Oslo ."
    assert [s.labeled for s in read_labeled(store, unlabeled=True)] == [
        i in (1, 3) for i in range(10)
    ]
    assert [s.id for s in unlabeled(store)] == [f"s:{i}" for i in range(10) if i not in (1, 3)]


def test_rows_outside_the_sure_part_are_missing(store, anna):
    save_answer(store, "s:1", anna, "label", [PER], sure=[(0, 2), (1, 3)])

    assert next(read_labeled(store)).tags == ("B-PER", "O", "O", None, None)
    assert current_answers(store)[0].sure == ((0, 3),)


def test_who_marks_a_span_is_sure_of_it_and_all_sure_parts_together_may_be_everything(store, anna):
    one = save_answer(store, "s:1", anna, "label", [PER, LOC], sure=[(1, 2)])
    all_of_it = save_answer(store, "s:2", anna, "label", [], sure=[(0, 3), (3, 5)])

    assert one.sure == ((0, 2), (3, 4))
    assert all_of_it.sure is None


def test_a_skip_labels_nothing(store, anna):
    event = save_answer(store, "s:1", anna, "skip", [PER], seconds=1)

    assert event.spans == ()
    assert list(read_labeled(store)) == []
    assert read_counts(store, anna).skipped == 1


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ([Mark(0, 6, "PER")], "inside its sentence of 5 tokens; found '0 to 6'"),
        ([Mark(-1, 2, "PER")], "inside its sentence"),
        ([Mark(2, 2, "PER")], "inside its sentence"),
        ([Mark(3, 2, "PER")], "inside its sentence"),
        ([Mark(True, 2, "PER")], "inside its sentence"),
        ([Mark(0, 10**30, "PER")], "inside its sentence"),
        ([Mark(0, 2, "PER"), Mark(1, 3, "LOC")], "must not overlap"),
        ([PER, PER], "must not overlap"),
        ([Mark(0, 1, "ORG")], "unknown tag; this project has PER, LOC; found 'ORG'"),
        ([Mark(0, 1, "O")], "unknown tag"),
        ([Mark(0, 1, "\ud800")], "unknown tag"),
        ([(0, 1)], "a start, an end and a tag"),
    ],
)
def test_a_wrong_span_is_refused_and_nothing_is_saved(store, anna, marks, message):
    with pytest.raises(TagError, match=message):
        save_answer(store, "s:1", anna, "label", marks)

    assert list(read_events(store)) == []


@pytest.mark.parametrize("sure", [[], [(0, 6)], [(2, 2)], [(0, 1, 2)], [(-1, 2)], [3]])
def test_a_wrong_sure_part_is_refused(store, anna, sure):
    with pytest.raises(DataError, match="sure"):
        save_answer(store, "s:1", anna, "label", [], sure=sure)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "3"])
def test_seconds_are_a_number(store, anna, seconds):
    with pytest.raises(DataError, match="seconds"):
        save_answer(store, "s:1", anna, "label", [], seconds=seconds)


def test_a_page_left_open_for_a_year_counts_as_four_months(store, anna):
    assert save_answer(store, "s:1", anna, "label", [PER], seconds=3e7).seconds == 1e7
    assert save_answer(store, "s:2", anna, "label", [PER], seconds=5).seconds == 5.0


def test_an_unknown_sentence_annotator_or_kind_is_refused(store, anna):
    for id in ("s:99", "", "a\0b", "\ud800", "x" * 5000):
        with pytest.raises(NotFoundError, match="there is no sentence"):
            save_answer(store, id, anna, "label", [])
    with pytest.raises(NotFoundError, match="there is no annotator '99'"):
        save_answer(store, "s:1", 99, "label", [])
    with pytest.raises(DataError, match="label, skip or adjudicate"):
        save_answer(store, "s:1", anna, "undo", [])
    assert list(read_events(store)) == []


def test_looking_for_what_no_database_can_hold_finds_nothing(store, anna):
    for id in ("s:99", "", "a\0b", "\ud800"):
        assert find_sentence(store, id) is None
        assert answer_version(store, id, anna) == 0
        assert current_answers(store, id) == []
        assert find_annotator(store, id) is None
        assert annotator_by_token(store, id) is None
    assert [s.id for s in read_sentences(store, ["s:2", "a\0b", "s:1", "nowhere"])] == [
        "s:2",
        "s:1",
    ]


# versions


def test_an_answer_to_an_older_version_is_stale_and_says_which_is_current(store, anna):
    event = save_answer(store, "s:1", anna, "label", [PER])
    for version in (0, event.seq + 1, -1, 10**30):
        with pytest.raises(StaleError) as error:
            save_answer(store, "s:1", anna, "label", [LOC], version=version)
        assert error.value.version == event.seq == answer_version(store, "s:1", anna)

    assert current_answers(store)[0].spans == (PER,)


def test_an_answer_to_a_version_that_never_was_says_that_there_is_none_yet(store, anna):
    with pytest.raises(StaleError) as error:
        save_answer(store, "s:1", anna, "label", [PER], version=7)

    assert error.value.version == 0 == answer_version(store, "s:1", anna)


def test_the_same_answer_sent_again_after_a_broken_line_is_one_event(store, anna):
    first = save_answer(store, "s:1", anna, "label", [PER], sure=[(0, 2)])

    assert save_answer(store, "s:1", anna, "label", [PER], sure=[(0, 2)]) == first
    with pytest.raises(StaleError):
        save_answer(store, "s:1", anna, "label", [PER])
    assert len(list(read_events(store))) == 1


def test_a_sentence_somebody_else_has_open_or_answered_is_not_mine(store, anna, bo):
    open_one = next_sentence(store, anna).sentence.id
    with pytest.raises(StaleError, match="another annotator"):
        save_answer(store, open_one, bo, "label", [])
    save_answer(store, open_one, anna, "label", [PER])
    with pytest.raises(StaleError, match="another annotator"):
        save_answer(store, open_one, bo, "skip")

    assert [answer.annotator for answer in current_answers(store)] == ["anna"]


def test_versions_of_two_annotators_do_not_meet(store, anna, bo):
    mine = save_answer(store, "s:1", anna, "label", [PER])
    theirs = save_answer(store, "s:2", bo, "label", [PER])

    assert answer_version(store, "s:1", anna) == mine.seq
    assert answer_version(store, "s:1", bo) == 0
    assert answer_version(store, "s:2") == theirs.seq


# undo


def test_an_undo_is_an_event_and_the_sentence_is_mine_again(store, anna, bo):
    event = save_answer(store, "s:1", anna, "label", [PER], now=1000.0)
    undone = undo_answer(store, anna, now=1001.0)

    assert (undone.kind, undone.undoes, undone.sentence_id) == ("undo", event.seq, "s:1")
    assert list(read_events(store)) == [event, undone]
    assert current_answers(store) == []
    assert next_sentence(store, anna, now=1002.0).sentence.id == "s:1"
    assert next_sentence(store, bo, now=1002.0).sentence.id != "s:1"
    again = save_answer(
        store, "s:1", anna, "label", [LOC], version=answer_version(store, "s:1", anna)
    )
    assert current_answers(store)[0].seq == again.seq


def test_undo_goes_back_one_answer_at_a_time_and_never_redoes(store, anna):
    for i in range(3):
        save_answer(store, f"s:{i}", anna, "skip" if i == 1 else "label", [])

    assert [undo_answer(store, anna).sentence_id for _ in range(3)] == ["s:2", "s:1", "s:0"]
    assert undo_answer(store, anna) is None
    assert current_answers(store) == []
    assert len(list(read_events(store))) == 6


def test_an_undo_after_an_undo_and_a_new_answer_takes_back_the_new_answer_first(store, anna):
    save_answer(store, "s:0", anna, "label", [])
    save_answer(store, "s:1", anna, "label", [])
    undo_answer(store, anna)
    save_answer(store, "s:2", anna, "label", [])

    assert [undo_answer(store, anna).sentence_id for _ in range(2)] == ["s:2", "s:0"]
    assert undo_answer(store, anna) is None


def test_the_undo_of_a_correction_gives_the_first_answer_back(store, anna):
    first = save_answer(store, "s:1", anna, "label", [PER])
    second = save_answer(store, "s:1", anna, "label", [LOC], version=first.seq)
    undone = undo_answer(store, anna)

    assert undone.undoes == second.seq
    assert undone.spans == (PER,)
    assert current_answers(store)[0].spans == (PER,)
    assert undo_answer(store, anna).undoes == first.seq


def test_the_same_undo_twice_is_one(store, anna):
    first, second = (save_answer(store, f"s:{i}", anna, "label", [PER]) for i in (0, 1))
    assert last_answer(store, anna) == second.seq
    undone = undo_answer(store, anna, second.seq)

    assert (
        undo_answer(store, anna, second.seq) == undone
    )  # its reply was lost, and it is sent again
    assert [answer.sentence_id for answer in current_answers(store)] == ["s:0"]
    assert last_answer(store, anna) == first.seq
    assert undo_answer(store, anna, first.seq).sentence_id == "s:0"
    assert last_answer(store, anna) is None


def test_an_undo_names_an_answer_of_mine_that_stands(store, anna, bo):
    first = save_answer(store, "s:1", anna, "label", [PER])
    other = save_answer(store, "s:2", anna, "label", [PER])
    second = save_answer(store, "s:1", anna, "label", [LOC], version=first.seq)
    for seq, who, error in (
        (first.seq, anna, StaleError),
        (second.seq, bo, NotFoundError),
        (10**9, anna, NotFoundError),
    ):
        with pytest.raises(error):
            undo_answer(store, who, seq)

    assert (
        undo_answer(store, anna, other.seq).sentence_id == "s:2"
    )  # by name, whatever was answered since
    assert len(list(read_events(store))) == 4


def test_who_came_first_counts_also_after_correcting_it(store, anna, bo):
    mine = save_answer(store, "s:1", anna, "label", [PER])
    with store.writing() as conn:
        conn.execute(
            insert(leases).values(sentence_id="s:1", annotator_id=bo, stream="overlap", at=1.0)
        )
    save_answer(store, "s:1", bo, "label", [LOC])
    save_answer(store, "s:1", anna, "label", [PER, LOC], version=mine.seq)

    assert [(answer.annotator_id, answer.spans) for answer in gold_answers(store)] == [
        (anna, (PER, LOC))
    ]
    (labeled,) = read_labeled(store)
    assert labeled.tags == ("B-PER", "O", "O", "B-LOC", "O")


def test_nobody_undoes_what_another_said(store, anna, bo):
    save_answer(store, "s:1", anna, "label", [PER])

    assert undo_answer(store, bo) is None
    assert len(current_answers(store)) == 1


# adjudication


def test_an_adjudication_overrides_and_the_answers_stay(store, anna, bo):
    save_answer(store, "s:1", anna, "label", [PER])
    with pytest.raises(StaleError):
        save_answer(store, "s:1", anna, "adjudicate", [LOC], version=0)
    decided = save_answer(
        store, "s:1", anna, "adjudicate", [LOC], version=answer_version(store, "s:1")
    )

    assert [answer.kind for answer in current_answers(store, "s:1")] == ["adjudicate"]
    assert [answer.kind for answer in current_answers(store, "s:1", overridden=True)] == [
        "adjudicate",
        "label",
    ]
    assert next(read_labeled(store)).tags[3] == "B-LOC"
    save_answer(
        store, "s:1", anna, "label", [], version=answer_version(store, "s:1", anna)
    )  # one's own answer may still be changed
    assert next(read_labeled(store)).tags[3] == "B-LOC"
    again = save_answer(store, "s:1", bo, "adjudicate", [], version=answer_version(store, "s:1"))
    assert again.seq > decided.seq
    assert next(read_labeled(store)).tags == ("O",) * 5


# derived state


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


Said = tuple[str, str, tuple[Mark, ...], int]


def now_of(stack: list[Said], id: str) -> str | None:
    """The kind of the last answer to a sentence on a stack."""
    return next((answer[1] for answer in reversed(stack) if answer[0] == id), None)


operation = st.tuples(
    st.sampled_from(["label", "label", "skip", "undo", "next", "adjudicate"]),
    st.integers(0, 1),
    st.integers(0, 3),
    st.sampled_from([(), (PER,), (PER, LOC)]),
)


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(operation, max_size=14))
def test_the_current_state_is_what_a_replay_of_the_events_gives(url, operations):
    wipe(url)
    with small_store(url, 4) as store:
        who = [person(store, name).id for name in ("anna", "bo")]
        said: dict[int, list[Said]] = {id: [] for id in who}  # a stack for each annotator
        decided: dict[str, tuple[Mark, ...]] = {}
        held: set[tuple[str, int]] = set()
        before = []
        for kind, by, of, marks in operations:
            id, me, own = f"s:{of}", who[by], said[who[by]]
            if kind == "undo":
                undone = undo_answer(store, me)
                assert (undone is None) == (not own)
                if undone is not None:
                    id = own.pop()[0]
                    held -= {(id, me)}
                    held |= {(id, me)} if now_of(own, id) != "label" else set()
            elif kind == "next":
                given = next_sentence(store, me)
                held |= {(given.sentence.id, me)} if given else set()
            elif kind == "adjudicate":
                save_answer(store, id, me, kind, marks, version=answer_version(store, id))
                decided[id] = marks
            else:
                free = (
                    id not in decided
                    and all(now_of(stack, id) != "label" for stack in said.values())
                    and not any(of == id for of, _ in held)
                )
                mine = free or (id, me) in held or now_of(own, id) == "label"
                try:
                    event = save_answer(
                        store, id, me, kind, marks, version=answer_version(store, id, me)
                    )
                    own.append((id, kind, marks, event.seq))
                    held -= {(id, me)}
                    assert mine
                except StaleError:
                    assert not mine
            history = list(read_events(store))
            assert history[: len(before)] == before  # only ever longer
            before = history

        last = {(answer[0], id): answer[1:3] for id, own in said.items() for answer in own}
        found = {
            (a.sentence_id, a.annotator_id): (a.kind, a.spans)
            for a in current_answers(store, overridden=True)
            if a.kind != "adjudicate"
        }
        assert found == {
            key: (kind, marks if kind == "label" else ()) for key, (kind, marks) in last.items()
        }
        gold = dict(decided)
        for id in (f"s:{i}" for i in range(4)):
            own_labels = [
                [a for a in stack if a[0] == id and a[1] == "label"]
                for stack in said.values()
                if now_of(stack, id) == "label"
            ]
            if own_labels:
                gold.setdefault(id, min(own_labels, key=lambda labels: labels[0][3])[-1][2])
        assert {answer.sentence_id: answer.spans for answer in gold_answers(store)} == gold
        kept = derived(store)
        rebuild(store)
        assert derived(store) == kept


# what survives

SAVER = """
import sys
from sqlalchemy import make_url
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.store import open_store
store = open_store(make_url(sys.argv[1]))
for i in range(100000):
    version = answer_version(store, f"s:{i % 10}", 1)
    print(save_answer(store, f"s:{i % 10}", 1, "label", [(0, 1 + i % 5, "PER")], version=version).seq, flush=True)
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


# many at once


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


# versions of the schema


def test_a_store_of_an_older_version_is_upgraded_and_keeps_what_it_holds(url):
    with small_store(url) as store:
        event = save_answer(store, "s:1", person(store, "anna").id, "label", [PER])
        with store.writing() as conn:
            drop_guards(conn)
            conn.execute(
                update(schema.meta)
                .where(schema.meta.c.key == "schema")
                .values(value='{"version": 1, "migrations": {}}')
            )

    with open_store(url) as store:
        assert store.read_note("schema")["version"] == engine.SCHEMA
        assert list(store.read_note("schema")["migrations"]) == ["2", "3"]
        assert list(read_events(store)) == [event]
        with pytest.raises(StoreError, match="append-only"), store.writing() as conn:
            conn.execute(delete(schema.events))
    open_store(url).close()  # once is enough


def drop_guards(conn) -> None:
    """Back to version 1, which had no triggers and nothing external."""
    schema.external.drop(conn)
    if conn.dialect.name == "sqlite":
        conn.execute(text("DROP TRIGGER events_no_update"))
        conn.execute(text("DROP TRIGGER events_no_delete"))
    else:
        conn.execute(text("DROP FUNCTION events_append_only CASCADE"))


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
        match=rf"newer seqmix \(schema {engine.SCHEMA + 1}, this one reads {engine.SCHEMA}\); upgrade",
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


# text


STRANGE = {
    "nul": "a\0b c",
    "half a pair": "x\ud800 y",
    "emoji": "👩\u200d👩\u200d👧 flag 🇳🇴 done",
    "right to left": "\u202eשלום עולם\u202c مرحبا",
    "html": "<script>alert('x')</script> & \"y\"",
    "cjk": "東京都に住む",
    "a megabyte": "lorem " * 180_000,
    "control": "a\x01\x1b[31m b\u2028c",
}


@pytest.mark.parametrize("kind", STRANGE)
def test_text_comes_back_as_it_was(url, kind):
    sentence = from_text("s", STRANGE[kind])
    with create_store(url, TAGS) as store:
        add_sentences(store, [sentence])
        add_annotator(store, "anna")
        save_answer(store, "s", person(store, "anna").id, "label", [Mark(0, 1, "PER")])

        assert find_sentence(store, "s") == sentence
        assert next(read_labeled(store)).unlabeled() == sentence


@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(st.lists(st.text(st.characters(), min_size=1), min_size=1, max_size=4), max_size=6))
def test_any_tokens_come_back_or_are_refused_in_one_line(url, texts):
    wipe(url)
    given = [Sentence(f"s:{i}", tuple(tokens)) for i, tokens in enumerate(texts)]
    with create_store(url, TAGS) as store:
        try:
            added = add_sentences(store, given)
        except DataError as error:
            assert "surrogate" in str(error)
            return
        assert added.new == len({s.tokens for s in given})
        assert {s.tokens for s in read_sentences(store)} == {s.tokens for s in given}


def test_two_halves_of_a_pair_side_by_side_are_refused_since_they_would_come_back_as_one(url):
    with create_store(url, TAGS) as store, pytest.raises(DataError, match="surrogate"):
        add_sentences(store, [Sentence("s", ("\ud83d\ude00",))])


def test_equal_tokens_are_stored_once_and_counted(url):
    with create_store(url, TAGS) as store:
        first = add_sentences(
            store,
            [
                from_text("a", "Hi there"),
                from_text("b", "Hi  there"),
                from_text("c", " "),
                from_text("d", "Ho"),
            ],
        )
        again = add_sentences(store, [from_text("e", "Ho"), from_text("f", "Hey")])

        assert (first.new, first.duplicates, first.empty) == (2, 1, 1)
        assert (again.new, again.duplicates, again.empty) == (1, 1, 0)
        assert [s.id for s in read_sentences(store)] == ["a", "d", "f"]


@pytest.mark.parametrize("id", ["s:1", "", "a\0b", "\ud800", "x" * 1001])
def test_an_id_that_is_taken_or_cannot_be_looked_up_is_refused(store, id):
    with pytest.raises(DataError, match="id"):
        add_sentences(store, [from_text("new", "One two"), from_text(id, "Three four")])

    assert count_sentences(store) == 10


def test_seed_labels_are_kept_soft_and_missing_ones_too_and_are_not_asked_for(url):
    seed = Sentence("a", ("Lena", "left", "Oslo"), ("B-PER", None, {"B-LOC": 0.75, "O": 0.25}))
    with create_store(url, TAGS) as store:
        add_sentences(store, [seed, from_text("b", "Who else")], seed=True)
        add_annotator(store, "anna")

        assert list(read_labeled(store)) == list(read_labeled(store, "seed")) == [seed]
        assert [s.id for s in unlabeled(store)] == ["b"]
        assert next_sentence(store, 1).sentence.id == "b"
        assert (read_counts(store).seed, read_counts(store).sentences, read_counts(store).left) == (
            1,
            1,
            1,
        )
        with pytest.raises(StaleError):
            save_answer(store, "a", 1, "label", [])


def test_the_audit_sample_leaves_the_seed_alone(url):
    with create_store(url, TAGS) as store:
        add_sentences(
            store, (Sentence(f"seed{i}", ("a", str(i)), ("O", "O")) for i in range(5)), seed=True
        )
        add_sentences(store, (from_text(f"s{i}", f"Number {i}") for i in range(4)))

        assert reserve_audit(store, 1.0) == 4 == len(read_audit_sentences(store))
        assert read_counts(store).seed == 5 == len(list(read_labeled(store, "seed")))


@pytest.mark.parametrize("tag", ["B-ORG", "NOUN", "E-PER", "B-"])
def test_seed_labels_with_other_tags_are_refused(url, tag):
    with (
        create_store(url, TAGS) as store,
        pytest.raises(TagError, match="sentence 'a' has a label"),
    ):
        add_sentences(store, [Sentence("a", ("Lena",), (tag,))], seed=True)


def test_many_sentences_stream_in_and_out(url):
    with create_store(url, TAGS) as store:
        assert (
            add_sentences(store, (from_text(f"s:{i}", f"Number {i}") for i in range(1201))).new
            == 1201
        )
        assert [s.id for s in read_sentences(store)] == [f"s:{i}" for i in range(1201)]
        assert next(iter(read_sentences(store))).id == "s:0"
        assert len(list(unlabeled(store))) == count_sentences(store) == 1201


# annotators


def test_a_token_is_kept_as_a_hash_only_and_finds_its_annotator(url):
    with create_store(url, TAGS) as store:
        token = add_annotator(store, "Zoë", admin=True)
        found = annotator_by_token(store, token)

        assert (found.name, found.admin) == ("Zoë", True)
        assert find_annotator(store, "Zoe\u0308") == found  # however the keyboard writes it
        assert annotator_by_token(store, token + "x") is None
        with store.reading() as conn:
            assert token not in str(conn.execute(select(schema.annotators)).all())


def test_a_fresh_token_ends_the_old_one_and_a_revoked_one_opens_nothing(store, anna):
    token = renew_token(store, anna)
    newer = renew_token(store, anna)

    assert annotator_by_token(store, token) is None
    assert annotator_by_token(store, newer).id == anna
    revoke_token(store, anna)
    assert annotator_by_token(store, newer) is None
    with pytest.raises(NotFoundError):
        renew_token(store, 99)


def test_tokens_have_24_random_bytes_and_names_up_to_64_characters(store, anna):
    tokens = [add_annotator(store, "x" * 64), renew_token(store, anna)]

    assert [len(token) for token in tokens] == [32, 32] and tokens[0] != tokens[1]
    assert find_annotator(store, "x" * 64) is not None


@pytest.mark.parametrize("name", ["anna", "", " anna", "a\nb", "a\0b", "x" * 65, "\u202ebob"])
def test_a_name_that_is_taken_or_cannot_be_shown_is_refused(store, name):
    with pytest.raises(DataError, match="annotator"):
        add_annotator(store, name)


# rankings


def suggestion(tag: str = "PER") -> dict:
    return {"spans": [{"start": 0, "end": 1, "tag": tag, "confidence": 0.8}], "confidence": 0.7}


def rank(store, number: int, ids, **more) -> None:
    publish_generation(
        store,
        Generation(number, 0, **more),
        [Rank(id, 1 / (i + 1), suggestion()) for i, id in enumerate(ids)],
        pause=lambda: None,
    )


def test_a_ranking_orders_the_queue_and_carries_suggestions(store, anna):
    rank(store, 0, ["s:7", "s:2", "s:5"])

    order = []
    for _ in range(3):
        given = next_sentence(store, anna)
        order.append(given.sentence.id)
        assert (given.suggestion, given.generation) == (suggestion(), 0)
        save_answer(store, given.sentence.id, anna, "label", [], version=given.version)
    assert order == ["s:7", "s:2", "s:5"]
    assert [event.generation for event in read_events(store)] == [0, 0, 0]
    assert next_sentence(store, anna).suggestion is None


def test_a_newer_ranking_comes_first_and_the_older_follows(store, anna):
    rank(store, 0, [f"s:{i}" for i in range(10)])
    rank(store, 1, ["s:9", "s:4"])

    order = []
    while (given := next_sentence(store, anna)) is not None:
        order.append(given.sentence.id)
        save_answer(store, given.sentence.id, anna, "label", [], version=given.version)
    assert order == ["s:9", "s:4", "s:0", "s:1", "s:2", "s:3", "s:5", "s:6", "s:7", "s:8"]


def test_a_ranking_broken_off_is_still_an_order(store, anna):
    rank(store, 0, [f"s:{i}" for i in range(10)])
    with pytest.raises(NotFoundError):
        rank(store, 1, ["s:9", "nowhere"])

    assert [made.number for made in read_generations(store)] == [0]
    assert next_sentence(store, anna).sentence.id == "s:0"


@pytest.mark.parametrize("tag", ["ORG", "B-PER"])
def test_a_suggestion_with_an_unknown_tag_is_refused(store, tag):
    with pytest.raises(TagError, match="unknown tag"):
        publish_generation(store, Generation(0, 0), [Rank("s:1", 0.5, suggestion(tag))])


def test_the_suggestion_for_a_sentence_is_that_of_the_last_model_that_ranked_it(store, anna):
    assert suggestion_of(store, "s:3") == (None, None)
    rank(store, 4, ["s:3", "s:1"])
    rank(store, 5, ["s:1"])

    assert (suggestion_of(store, "s:3")[1], suggestion_of(store, "s:1")[1]) == (4, 5)
    assert suggestion_of(store, "s:3")[0]["spans"][0]["tag"] == "PER"


def test_a_generation_says_nothing_of_what_it_was_not_told():
    assert Generation(1, 5) == Generation(
        1, 5, tokens=0, spans=0, notes=Notes(), audit=(), seconds={}, model=None, at=0.0
    )


def test_generations_come_back_as_they_were_published(store):
    made = Generation(
        1,
        20,
        100,
        7,
        Notes(7, 20, {"asked": 3}, {"ranked": 5, "of": 9}),
        [{"id": "s:1", "marks": [[0, 1, "PER"]]}],
        {"train": 1.5},
        "models/001",
        123.0,
    )
    publish_generation(store, Generation(0, 0), pause=lambda: None)
    publish_generation(store, made, pause=lambda: None)

    assert read_generations(store, 1) == [made]
    assert [one.number for one in read_generations(store)] == [0, 1]


def test_the_pool_can_be_sampled_at_random(url):
    with small_store(url, 40) as store:
        save_answer(store, "s:0", 1, "label", [])
        rng = np.random.default_rng(0)
        drawn = Counter(id for _ in range(300) for id in unlabeled_ids(store, 10, rng))

        assert set(unlabeled_ids(store)) == {f"s:{i}" for i in range(1, 40)}
        assert "s:0" not in drawn
        assert len(drawn) == 39
        assert all(len(set(unlabeled_ids(store, n, rng))) == min(n, 39) for n in (1, 39, 100))


# generated sentences


def made(*tokens: str) -> dict:
    return Augmented(
        Sentence("x", tokens, ("O",) * len(tokens)),
        Lineage("sub", ("s:1", "s:2"), ((0, 1), (1, 2))),
    ).to_record()


def test_a_veto_outlives_the_generation_and_can_be_taken_back(store, anna):
    publish_generation(
        store, Generation(0, 0), (), [made("a", "b"), made("c"), made("a", "b")], pause=lambda: None
    )
    shown, total = read_generated(store)
    assert total == 2
    assert [Augmented.from_record(one.record).sentence.tokens for one in shown] == [
        ("a", "b"),
        ("c",),
    ]

    set_veto(store, shown[0].id, anna)
    publish_generation(store, Generation(1, 0), (), [made("a", "b"), made("d")], pause=lambda: None)
    assert [(one.record["tokens"], one.vetoed) for one in read_generated(store)[0]] == [
        (["d"], False),
        (["a", "b"], True),
    ]
    assert vetoed_ids(store) == {digest(("a", "b"))}

    set_veto(store, shown[0].id, anna, on=False)
    assert vetoed_ids(store) == set()
    for id in ("nowhere", "a\0b"):
        with pytest.raises(NotFoundError):
            set_veto(store, id, anna)


def test_generated_sentences_come_in_pages(store):
    publish_generation(
        store, Generation(0, 0), (), [made(str(i)) for i in range(7)], pause=lambda: None
    )

    assert [one.record["tokens"] for one in read_generated(store, 3, 5)[0]] == [["5"], ["6"]]
    assert read_generated(store, 10**30, 10**30) == ([], 7)
    assert read_generated(store, -1, -5)[0] == []


# counts and notes


def test_counts_say_how_far_the_project_is(url):
    with small_store(url, 10, ("anna", "bo"), audit=0.2) as store:
        anna, bo = (person(store, name).id for name in ("anna", "bo"))
        audit = {s.id for s in read_audit_sentences(store)}
        active = [f"s:{i}" for i in range(10) if f"s:{i}" not in audit]
        save_answer(store, min(audit), anna, "label", [])
        save_answer(store, active[0], anna, "label", [])
        save_answer(store, active[1], bo, "skip")
        next_sentence(store, bo)

        counts = read_counts(store, anna)
    assert (counts.sentences, counts.labeled, counts.left) == (10, 2, 8)
    assert (
        counts.audit,
        counts.active,
        counts.skipped,
        counts.held,
        counts.mine,
        counts.overlap,
    ) == (1, 1, 1, 1, 2, 0)
    assert counts.events == 3


def test_a_note_is_kept_by_name(store):
    store.write_note("trainer", {"phase": "training", "at": 1.5})
    store.write_note("trainer", {"phase": "scoring", "text": "\ud800 \0"})

    assert store.read_note("trainer") == {"phase": "scoring", "text": "\ud800 \0"}
    assert store.read_note("nothing") is None
    assert store.tags == TAGS


def test_the_error_of_a_database_names_its_cause_only_once(store):
    with pytest.raises(StoreError) as error, store.reading() as conn:
        conn.execute(text("SELECT * FROM nowhere"))

    assert isinstance(error.value.__cause__, DBAPIError)
    assert str(error.value).count("\n") == 0


def test_an_event_is_a_value(store, anna):
    event = save_answer(store, "s:1", anna, "label", [PER])

    assert replace(event, seq=7).seq == 7
    assert hash(event.spans)


def test_a_long_history_comes_page_by_page_and_whole(store, anna, monkeypatch):
    monkeypatch.setattr(sentences, "PAGE", 3)
    monkeypatch.setattr(events, "PAGE", 3)
    for i in range(8):
        save_answer(store, f"s:{i}", anna, "label", [])

    assert [event.sentence_id for event in read_events(store)] == [f"s:{i}" for i in range(8)]
    assert [
        event.sentence_id for event in read_events(store, after=list(read_events(store))[4].seq)
    ] == [
        "s:5",
        "s:6",
        "s:7",
    ]
    assert [sentence.id for sentence in read_labeled(store)] == [f"s:{i}" for i in range(8)]


def test_what_is_derived_can_be_derived_anew_after_damage(store, anna, bo):
    for id, who in (("s:1", anna), ("s:2", bo)):
        save_answer(store, id, who, "label", [PER])
    next_sentence(store, anna)
    before = derived(store)
    with store.writing() as conn:
        conn.execute(update(schema.queue).values(state="free", sole=None, gold=None))
        conn.execute(delete(schema.current))
    assert derived(store) != before

    rebuild(store)

    assert derived(store) == before


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
        "sentences": {"text", "offsets", "seed"},
        "events": {"sure", "old", "generation", "undoes"},
        "queue": {"sole", "gold", "score", "suggestion"},
        "generations": {"dev", "model"},
        "generated": {"vetoed_by", "vetoed_at"},
        "external": {"parent", "sentence_id"},
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
    }
