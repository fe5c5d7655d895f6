"""How long answers took, by tag, stream, source and person."""

from __future__ import annotations

import pytest

from seqmix.query.answer_time import PUBLISHED
from seqmix.serve.progress.pace import Pace
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.sentences import read_audit_sentences
from tests.support.stores import LOC, PER, person, small_store


@pytest.fixture
def store(url):
    with small_store(url, audit=0.3) as opened:
        yield opened


def test_without_answers_nothing_is_known(store):
    times = Pace(store).times()

    assert times.to_json() is None and times.next_seconds is None and times.model == PUBLISHED


def test_times_are_those_of_first_answers_by_tag_stream_source_and_person(store):
    anna, ben, pace = person(store, "anna").id, person(store, "bo").id, Pace(store, every=0.0)
    audit = [sentence.id for sentence in read_audit_sentences(store)]
    active = [id for id in (f"s:{i}" for i in range(10)) if id not in audit]

    first = save_answer(store, active[0], anna, "label", [PER], seconds=4.0, shown={"dict": [1, 1]})
    save_answer(store, active[1], anna, "label", [PER, LOC], seconds=6.0, shown={"dict": [0, 0]})
    save_answer(store, active[2], ben, "label", [], seconds=2.0)
    save_answer(store, audit[0], ben, "label", [LOC], seconds=9.0)
    assert pace.times().to_json()["answers"] == 4
    save_answer(store, active[0], anna, "label", [LOC], seconds=500.0, version=first.seq)
    save_answer(store, active[3], anna, "skip", seconds=500.0)
    shown = pace.times().to_json(anna)

    assert (shown["answers"], shown["seconds"], shown["mine"]["seconds"]) == (4, 5.0, 5.0)
    assert [(p["stream"], p["answers"], p["seconds"]) for p in shown["by_stream"]] == [
        ("active", 3, 4.0),
        ("audit", 1, 9.0),
    ]
    assert [(p["source"], p["answers"]) for p in shown["by_source"]] == [("dict", 1)]
    assert [(p["tag"], p["spans"]) for p in shown["by_tag"]] == [("LOC", 2), ("PER", 2)]
    assert pace.times().next_seconds == pytest.approx(5.25, rel=0.4)
    assert Pace(store).times().to_json(anna) == shown
    assert pace.times().to_json(0)["mine"] is None


def test_answers_in_bulk_do_not_count(store):
    anna = person(store, "anna").id
    batch = add_batch(store, "bulk", anna, {})
    save_answer(store, "s:1", anna, "label", [PER], seconds=3.0, batch=batch)

    assert Pace(store).times().to_json() is None
