"""What `seqmix info` says of a project: the sources of its suggestions, and who did what."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.data.sentence import Sentence
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.llm.annotator import answer_part
from seqmix.serve.sources.llm.endpoint import Endpoint
from seqmix.serve.sources.records import LLM, add_source, enable_source
from seqmix.serve.sources.stored import Suggestion, write_suggestions
from seqmix.serve.sources.terms import Terms
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import ACCEPT, accept_answers, untouched
from seqmix.serve.store.sentences import read_audit_sentences, read_sentences
from tests.support.stores import LOC, PER


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    text = [Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(20)]
    settings = ProjectSettings("names", ("PER", "LOC"), audit_share=0.3)
    create_project(tmp_path / "names", text, settings)
    with open_project(tmp_path / "names") as project:
        add_annotator(project.store, "anna", admin=True)
    return tmp_path / "names"


def test_what_people_kept_of_each_source_and_its_f1(seqmix_command, folder):
    with open_project(folder) as project:
        store, anna = project.store, find_annotator(project.store, "anna").id
        add_dictionary(store, "people", Terms((("Lena", "PER"), ("left", "PER"))))
        add_dictionary(store, "places", Terms((("Oslo", "LOC"),)))
        enable_source(store, "places", False)
    said = seqmix_command("info", folder).out.splitlines()
    at = said.index("sources:")
    assert said[at + 1 : at + 3] == [
        "  people (dictionary): nothing suggested to anybody yet, F1 not known yet",
        "  places (dictionary, off): nothing suggested to anybody yet, F1 not known yet",
    ]
    with open_project(folder) as project:
        store, audit = project.store, read_audit_sentences(project.store)
        for sentence in audit:
            save_answer(store, sentence.id, anna, "label", [PER, LOC])
        asked = next(f"s:{i}" for i in range(20) if f"s:{i}" not in {s.id for s in audit})
        save_answer(store, asked, anna, "label", [PER], shown={"people": [2, 1], "model": [1, 0]})

    said = seqmix_command("info", folder).out.splitlines()
    at = said.index("sources:")
    assert said[at + 1].startswith("  people (dictionary): 1 of 2 suggestions kept (50 %), F1 66.7")
    assert said[at + 1].endswith(", 95 %) on 6 random sentences")
    assert "nothing suggested to anybody yet, F1 100.0" in said[at + 2]
    assert said[at + 3] == "  model: 0 of 1 suggestion kept (0 %)"


def test_answers_of_models_and_those_in_one_go_are_not_taken_for_work_by_hand(
    seqmix_command, folder
):
    with open_project(folder) as project:
        store, anna = project.store, find_annotator(project.store, "anna").id
        endpoint = Endpoint("http://127.0.0.1:1", "m").to_json()
        source = add_source(store, "gpt", LLM, endpoint)
        known = [(s, Suggestion(s.id, (PER,))) for s in read_sentences(store)]
        write_suggestions(store, source, "1", known)
        n = answer_part(store, source, "1", 0.4)
        for sentence in read_audit_sentences(store):
            save_answer(store, sentence.id, anna, "label", [PER], seconds=8.0)
        left = [(id, [PER]) for id in untouched(store)]
        accept_answers(store, add_batch(store, ACCEPT, anna, {}), anna, left)
    assert 0 < n < 14

    said = seqmix_command("info", folder).out.splitlines()
    notes = f"6 of the labeled drawn at random, {14 - n} accepted in one go, {n} by language models"
    assert said[0] == f"names: 20 of 20 sentences labeled, 0 left ({notes})"
    assert f"  anna (admin): 6 labeled, 0 skipped, 8.0 s each; {14 - n} accepted in one go" in said
    assert f"  model:gpt: {n} labeled by a language model" in said
    listed = seqmix_command("project", folder).out.splitlines()
    assert f"anna\t6 labeled, {14 - n} accepted in one go\tadmin" in listed
