"""Counts of the current answers."""

from __future__ import annotations

from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import ACCEPT, accept_answers
from seqmix.serve.store.current import read_counts, work_by_annotator
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.sentences import read_audit_sentences
from tests.support.stores import LOC, PER, person, small_store


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


def test_speed_is_that_of_answers_given_one_by_one(url):
    with small_store(url, 10, ("anna", "bo")) as store:
        anna = person(store, "anna").id
        for i in range(3):
            save_answer(store, f"s:{i}", anna, "label", [PER], seconds=8.0)
        save_answer(store, "s:3", anna, "skip", seconds=2.0)
        batch = add_batch(store, ACCEPT, anna, {})
        accept_answers(store, batch, anna, [(f"s:{i}", [PER]) for i in range(4, 9)])

        mine, theirs = work_by_annotator(store)
        assert (mine.labeled, mine.bulk, mine.skipped, mine.each) == (3, 5, 1, 6.5)
        assert (theirs.labeled, theirs.bulk, theirs.each) == (0, 0, None)
        version = answer_version(store, "s:4", anna)
        save_answer(store, "s:4", anna, "label", [LOC], seconds=4.0, version=version)
        mine, _ = work_by_annotator(store)
        assert (mine.labeled, mine.bulk, mine.each) == (4, 4, 6.0)  # she has looked at it now
