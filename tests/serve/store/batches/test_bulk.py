"""Sentences whose answer was accepted in bulk are found quickly."""

from __future__ import annotations

from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import ACCEPT, GIVEN, accept_answers, bulk_ids, count_bulk
from tests.support.stores import PER, person, plan, small_store


def test_counting_them_takes_one_look_at_the_queue_for_each(tmp_path):
    """Not one at the whole queue for each: with 20,000 of 100,000, every page would wait 30 s."""
    with small_store(f"sqlite:///{tmp_path}/s.sqlite", 9) as store:
        anna = person(store, "anna").id
        batch = add_batch(store, ACCEPT, anna, {})
        accept_answers(store, batch, anna, [(f"s:{i}", [PER]) for i in range(6)])
        with store.reading() as conn:
            assert count_bulk(conn) == len(bulk_ids(store)) == 6
        steps = plan(store, GIVEN)
    assert not any(step.startswith("SCAN queue") for step in steps)
    assert any("queue" in step and "sentence_id=?" in step for step in steps)
