"""What a model is sure of is accepted in one go: counted, not learned from, taken back at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError, StaleError
from seqmix.serve.answer_records import answer_records
from seqmix.serve.review.bulk import accept, predictions_of, preview
from seqmix.serve.review.model_answers import (
    ModelAnswer,
    ModelAnswers,
    read_model_answers,
    write_model_answers,
)
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import read_batch, undo_batch
from seqmix.serve.store.batches.bulk import bulk_ids, untouched
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.queue import Rules, next_sentence
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import add_sentences, read_audit_sentences, reserve_audit
from tests.support.stores import PER, derived, rebuild

SURE = (Mark(0, 1, "PER"),)


@pytest.fixture
def audited(store, anna):
    """A store of 400 sentences of which 200 are audited, each answered as the model says."""
    added = [Sentence(f"a:{i}", ("Ada", f"w{i}")) for i in range(400)]
    add_sentences(store, added)
    reserve_audit(store, 0.5)
    for sentence in read_audit_sentences(store):
        save_answer(store, sentence.id, anna, "label", [PER], stream="audit")
    return store


def predicted(store, confidence=0.99, at=1.0):
    """A model that says PER of the first token everywhere."""
    audit = [ModelAnswer(s.id, confidence, SURE) for s in read_audit_sentences(store)]
    rest = [ModelAnswer(id, confidence, SURE) for id in sorted(untouched(store))]
    return ModelAnswers(at, 10, 0, audit, rest)


def test_predictions_are_kept_and_damaged_ones_count_as_none(tmp_path):
    said = ModelAnswers(
        2.5, 7, 0, [ModelAnswer("a\ud800", 0.5, SURE)], [ModelAnswer("b", 1e-9, ())]
    )
    with pytest.raises(DataError, match="no model has predicted"):
        predictions_of(tmp_path)
    write_model_answers(tmp_path, said)

    assert read_model_answers(tmp_path) == said
    assert predictions_of(tmp_path, 2.5) == said
    with pytest.raises(StaleError, match="new predictions"):
        predictions_of(tmp_path, 2.0)
    (tmp_path / "certain.jsonl").write_text('{"format_version": 1}\n[1]')
    assert read_model_answers(tmp_path) is None


def test_what_is_accepted_counts_in_a_stream_of_its_own_and_one_undo_takes_it_back(audited, anna):
    store, said = audited, predicted(audited)
    before, counts = derived(store), read_counts(store)
    shown = preview(store, said, 0.05)
    assert shown.guarantee.accepted == len(shown.chosen) == len(said.open)
    right = 1 - shown.guarantee.expected  # calibrated: the model is right more often than it says
    assert [said.confidence for said in shown.chosen] == [pytest.approx(right)] * len(said.open)
    assert right > 0.99
    assert derived(store) == before

    accepted = accept(store, said, anna, 0.05, pause=lambda: None)

    assert accepted.accepted == len(said.open)
    assert bulk_ids(store) == {prediction.id for prediction in said.open}
    now = read_counts(store)
    assert (now.bulk, now.audit, now.labeled) == (
        accepted.accepted,
        counts.audit,
        counts.labeled + accepted.accepted,
    )
    streams = {record["id"]: record["stream"] for record in answer_records(store)}
    assert {streams[prediction.id] for prediction in said.open} == {"bulk"}
    assert read_batch(store, accepted.batch).details["alpha"] == 0.05
    replayed = derived(store)
    rebuild(store)
    assert derived(store) == replayed

    assert undo_batch(store, accepted.batch, anna).cancelled == accepted.accepted
    assert derived(store) == before
    assert read_counts(store) == replace(counts, events=read_counts(store).events)


def test_what_people_answered_skipped_or_have_open_is_left_to_them(audited, anna, bo):
    store, said = audited, predicted(audited)
    answered, skipped, *_ = (prediction.id for prediction in said.open)
    save_answer(store, answered, bo, "label", [])
    save_answer(store, skipped, bo, "skip")
    held = next_sentence(store, bo, Rules(audit_share=0.0)).sentence.id

    accepted = accept(store, said, anna, 0.05, pause=lambda: None)

    assert {answered, skipped, held}.isdisjoint(bulk_ids(store))
    assert accepted.accepted == len(said.open) - 3


def test_a_corrected_answer_is_a_persons_and_survives_the_undo(audited, anna, bo):
    store, said = audited, predicted(audited)
    accepted = accept(store, said, anna, 0.05, pause=lambda: None)
    id = said.open[0].id
    version = answer_version(store, id, anna)
    event = save_answer(store, id, anna, "label", [], version=version)

    assert event.stream == "active"
    assert id not in bulk_ids(store)
    undone = undo_batch(store, accepted.batch, anna)
    assert (undone.cancelled, undone.changed) == (accepted.accepted - 1, 1)


def test_nobody_is_asked_for_a_second_answer_to_what_a_model_gave(audited, anna, bo):
    said = predicted(audited)
    accept(audited, said, anna, 0.05, pause=lambda: None)

    shown = next_sentence(audited, bo, Rules(audit_share=0.0, overlap_share=1.0))

    assert shown is None or shown.sentence.id not in {prediction.id for prediction in said.open}


def test_wrong_partial_and_skipped_audit_answers_count_against_the_model(audited, anna):
    store, said = audited, predicted(audited)
    first, second, third = (prediction.id for prediction in said.audit[:3])
    for id, marks, sure in ((first, [], None), (second, [PER], [(0, 1)])):
        version = answer_version(store, id, anna)
        save_answer(store, id, anna, "label", marks, sure=sure, version=version)
    assert preview(store, said, 0.1).guarantee.errors == 2
    version = answer_version(store, third, anna)
    save_answer(store, third, anna, "skip", version=version)
    assert preview(store, said, 0.1).guarantee.errors == 3
    assert preview(store, said, 0.02).chosen == []


def test_nothing_is_accepted_where_the_guarantee_does_not_hold(audited, anna):
    said = predicted(audited)
    with pytest.raises(ConfigError, match="audit_train"):
        preview(audited, said, 0.05, audit_train=True)
    for alpha in (0.0, 0.6, float("nan")):
        with pytest.raises(DataError, match=r"between 0\.001 and 0\.5"):
            preview(audited, said, alpha)
    few = replace(said, audit=said.audit[:20])
    with pytest.raises(DataError, match="nothing may be accepted"):
        accept(audited, few, anna, 0.05)
    assert bulk_ids(audited) == set()
