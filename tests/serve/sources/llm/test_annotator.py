"""A language model that answers a part of the queue: replaced by people, trusted as audited."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.serve.answer_records import answer_records
from seqmix.serve.project import create_project, open_project
from seqmix.serve.project_status import answered
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.sources.llm.annotator import (
    LEAST,
    answer_part,
    answered_by_models,
    save_over_models,
    take_all_back,
    weights,
)
from seqmix.serve.sources.llm.endpoint import Endpoint
from seqmix.serve.sources.records import LLM, add_source, change_source, find_source, read_settings
from seqmix.serve.sources.stored import Suggestion, write_suggestions
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.sentences import read_audit_sentences, read_labeled, read_sentences
from seqmix.serve.trainer.labels import count_touched, read_labels
from tests.support.stores import LOC, PER, derived, rebuild

TEXTS = [Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(60)]


@pytest.fixture
def project(tmp_path):
    settings = ProjectSettings("names", ("PER", "LOC"), audit_share=0.2)
    create_project(tmp_path / "p", TEXTS, settings)
    with open_project(tmp_path / "p") as opened:
        add_annotator(opened.store, "anna", admin=True)
        source = add_source(opened.store, "gpt", LLM, Endpoint("http://127.0.0.1:1", "m").to_json())
        rows = [(s, Suggestion(s.id, (PER,))) for s in read_sentences(opened.store)]
        rows[0] = (rows[0][0], Suggestion(rows[0][0].id, (), "the answer is not JSON"))
        write_suggestions(opened.store, source, "1", rows)
        yield opened


def answer_all(project, share: float = 0.5) -> list[str]:
    """Let the model answer its part; return the sentences."""
    source = find_source(project.store, "gpt")
    while answer_part(project.store, source, "1", share):
        pass
    return sorted(answered_by_models(project.store))


def audited(project, right: int) -> None:
    """Anna answers the audit sentences; in so many of them the model is right."""
    anna = find_annotator(project.store, "anna").id
    for at, sentence in enumerate(read_audit_sentences(project.store)):
        marks = [PER] if at < right else [LOC]
        save_over_models(project.store, sentence.id, anna, "label", marks)


def test_it_answers_its_part_and_never_what_people_have_open_or_the_audit(project):
    store, anna = project.store, find_annotator(project.store, "anna").id
    opened = next_sentence(store, anna, project.rules).sentence.id
    mine = answer_all(project)

    audit = {sentence.id for sentence in read_audit_sentences(store)}
    assert 10 <= len(mine) <= 38
    assert not audit & set(mine)
    assert opened not in mine
    assert "s:0" not in mine  # it had no answer that could be used
    assert answer_all(project) == mine
    people = set()
    while (shown := next_sentence(store, anna, project.rules)) is not None:
        people.add(shown.sentence.id)
        save_over_models(store, shown.sentence.id, anna, "label", [LOC], version=shown.version)
    assert people == {s.id for s in TEXTS} - set(mine)
    before = derived(store)
    rebuild(store)
    assert derived(store) == before


def test_an_answer_of_a_person_replaces_the_models(project):
    store, anna = project.store, find_annotator(project.store, "anna").id
    first, second, *rest = answer_all(project)

    saved = save_over_models(store, first, anna, "label", [LOC])
    save_over_models(store, second, anna, "discard")

    labeled = {s.id: s.tags for s in read_labeled(store, "active")}
    assert labeled[first][3] == "B-LOC" and labeled[first][0] == "O"
    assert second not in labeled
    assert sorted(answered_by_models(store)) == sorted(rest)
    undo_answer(store, anna, saved.seq)
    assert first not in {s.id for s in read_labeled(store)}  # open again, and not the model's
    assert first not in answer_all(project)


def test_all_its_answers_are_taken_back_but_those_of_people_stay(project):
    store, anna = project.store, find_annotator(project.store, "anna").id
    first, *rest = answer_all(project)
    save_over_models(store, first, anna, "label", [LOC])

    assert take_all_back(store, find_source(store, "gpt"), anna) == len(rest)
    assert answered_by_models(store) == {}
    assert {s.id for s in read_labeled(store, "active")} == {first}
    assert answer_all(project) == []  # it does not answer the same again


def test_models_learn_from_it_only_as_far_as_the_audit_vouches_for_it(project):
    store = project.store
    mine = answer_all(project)
    assert weights(store) == {"gpt": 0.0}
    assert read_labels(project, None, read_counts(store).events).labeled == {}

    audited(project, right=12)  # all
    (weight,) = weights(store).values()
    assert LEAST < weight < 1
    labels = read_labels(project, None, read_counts(store).events)
    assert {id: s.weight for id, s in labels.labeled.items()} == dict.fromkeys(mine, weight)
    assert labels.new == []  # nothing is generated from them


def test_without_the_audits_word_no_model_learns_from_it(project):
    answer_all(project)
    audited(project, right=6)
    assert weights(project.store) == {"gpt": 0.0}


def test_records_say_which_model_answered(project):
    store = project.store
    before = answer_all(project, 0.3)
    settings = read_settings(store, find_source(store, "gpt")) | {"model": "larger"}
    change_source(store, "gpt", settings)
    mine = answer_all(project, 0.9)

    said = {r["id"]: (r["stream"], r["suggested_by"]) for r in answer_records(store)}
    assert said.keys() == set(mine) and set(before) < set(mine)
    assert said == {id: ("source", "m" if id in before else "larger") for id in mine}


def test_its_answers_make_no_model_due(project):
    mine = answer_all(project)
    counts = read_counts(project.store)
    assert counts.by_models == len(mine) == counts.active
    assert answered(counts, project.settings) == 0
    assert count_touched(project, 0) == 0


def test_nobody_else_has_a_name_like_its(project):
    with pytest.raises(DataError, match="those of language models"):
        add_annotator(project.store, "model:gpt")
    answer_all(project)
    assert find_annotator(project.store, "model:gpt").admin is False
