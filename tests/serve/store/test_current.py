"""Counts of the current answers."""

from __future__ import annotations

from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.sentences import read_audit_sentences
from tests.support.stores import person, small_store


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
