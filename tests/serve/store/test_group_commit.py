"""Answers that share a transaction: one sync for all, and none pays for another's mistake."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from sqlalchemy import event

from seqmix.errors import DataError, StaleError, StoreError
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.events import read_events
from seqmix.serve.store.group_commit import GroupCommit
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import read_labeled
from tests.support.served import project


@pytest.fixture
def own(tmp_path):
    with project(tmp_path / "people") as made:
        add_annotator(made.store, "Ada")
        yield made


def together(store, *works):
    """Do all works in one go; results or exceptions, and how many commits it took.

    The first turn is held up until they all wait.
    """
    commits: list[int] = []
    turns, gate = GroupCommit(store), threading.Event()

    async def main():
        held = asyncio.ensure_future(turns.commit(gate.wait))
        await asyncio.sleep(0.05)
        event.listen(store.engine, "commit", lambda conn: commits.append(1))
        waiting = [asyncio.ensure_future(turns.commit(work)) for work in works]
        await asyncio.sleep(0.05)
        gate.set()
        await held
        return await asyncio.gather(*waiting, return_exceptions=True)

    try:
        return asyncio.run(main()), len(commits) - 1  # that of the first turn
    finally:
        turns.close()


def save(store, id, marks=(), version=0):
    return lambda: save_answer(store, id, 1, "label", marks, version=version)


def test_answers_that_wait_together_are_committed_together(own):
    results, commits = together(
        own.store, *(save(own.store, f"s{i}", [Mark(0, 1, "PER")]) for i in range(6))
    )

    assert commits == 1
    assert sorted(result.seq for result in results) == [1, 2, 3, 4, 5, 6]
    assert len(list(read_labeled(own.store))) == 6


@pytest.mark.parametrize(("jobs", "expected"), [(64, 1), (65, 2)])
def test_at_most_64_share_a_transaction(own, jobs, expected):
    results, commits = together(own.store, *([lambda: 1] * jobs))

    assert (results, commits) == ([1] * jobs, expected)


def test_a_turn_waits_for_the_disk_unless_all_in_it_can_do_without(own, monkeypatch):
    asked = []
    writing = own.store.writing
    monkeypatch.setattr(
        own.store, "writing", lambda durable: asked.append(durable) or writing(durable)
    )
    turns = GroupCommit(own.store)

    async def main():
        await turns.commit(lambda: 1)
        await turns.commit(lambda: 1, durable=False)

    asyncio.run(main())
    turns.close()
    assert asked == [True, False]


def test_a_writer_nobody_closed_does_not_keep_the_process_alive(own):
    before = set(threading.enumerate())
    turns = GroupCommit(own.store)

    assert all(thread.daemon for thread in set(threading.enumerate()) - before)
    turns.close()


def test_a_refused_answer_is_refused_alone(own):
    store = own.store
    results, commits = together(
        store,
        save(store, "s0"),
        save(store, "s1", [Mark(0, 99, "PER")]),
        save(store, "s2", version=9),
        save(store, "s3"),
    )

    assert commits == 1
    assert isinstance(results[1], DataError)
    assert isinstance(results[2], StaleError)
    assert sorted(s.id for s in read_labeled(store)) == ["s0", "s3"]


def test_what_was_half_written_by_a_refused_job_is_taken_back(own):
    store = own.store

    def half():
        save_answer(store, "s1", 1, "label")
        raise DataError("no, after all")

    results, _ = together(store, save(store, "s0"), half)

    assert isinstance(results[1], DataError)
    assert [e.sentence_id for e in read_events(store)] == ["s0"]


def test_trouble_with_the_database_is_told_to_all_and_nothing_is_written(own):
    store = own.store

    def broken():
        raise StoreError("the disk is full")

    results, _ = together(store, save(store, "s0"), broken, save(store, "s2"))

    assert all(isinstance(result, StoreError) for result in results)
    assert list(read_events(store)) == []


def test_nobody_hears_of_an_answer_before_it_is_committed(own):
    turns, heard = GroupCommit(own.store), []

    async def main():
        def commit(conn):
            time.sleep(0.2)  # long enough for the other thread to hear of it, had it been told
            heard.append(saving.done())

        event.listen(own.store.engine, "commit", commit)
        saving = asyncio.ensure_future(turns.commit(save(own.store, "s0")))
        await saving

    asyncio.run(main())
    turns.close()

    assert heard == [False]


def test_a_turn_that_was_given_up_does_not_stop_the_others(own):
    turns = GroupCommit(own.store)

    async def main():
        gate = threading.Event()
        held = asyncio.ensure_future(turns.commit(gate.wait))
        await asyncio.sleep(0.05)
        given_up = asyncio.ensure_future(turns.commit(save(own.store, "s0")))
        await asyncio.sleep(0.05)
        given_up.cancel()
        await asyncio.sleep(0.05)
        gate.set()
        await held
        return await turns.commit(save(own.store, "s1"))

    found = asyncio.run(main())
    turns.close()

    assert found.sentence_id == "s1"
    assert [s.id for s in read_labeled(own.store)] == ["s1"]
