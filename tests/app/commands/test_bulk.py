"""Accepting what a model is sure of, by command and from Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import seqmix
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError
from seqmix.serve.project import create_project, open_project
from seqmix.serve.review.model_answers import (
    PREDICT_NOW,
    ModelAnswer,
    ModelAnswers,
    write_model_answers,
)
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.bulk import bulk_ids, untouched
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import read_audit_sentences

MARKS = (Mark(0, 1, "PER"),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """200 audit answers as a model says, and 200 open sentences of which it is as sure."""
    text = [Sentence(f"s:{i}", ("Ada", f"w{i}")) for i in range(400)]
    place = tmp_path / "names"
    create_project(place, text, ProjectSettings("names", ("PER",), audit_share=0.5))
    with open_project(place) as project:
        add_annotator(project.store, "anna", admin=True)
        anna = find_annotator(project.store, "anna").id
        audit = [sentence.id for sentence in read_audit_sentences(project.store)]
        for id in audit:
            save_answer(project.store, id, anna, "label", MARKS)
        said = [
            [ModelAnswer(id, 0.98, MARKS) for id in ids]
            for ids in (audit, sorted(untouched(project.store)))
        ]
        project.models.mkdir()
        write_model_answers(project.models, ModelAnswers(1.0, 9, 0, *said))
    return place


def test_commands_show_accept_export_and_take_back(folder, seqmix_command, tmp_path):
    shown = seqmix_command("project", folder, "bulk", "show", "5%")
    assert shown.code == 0
    assert "200 of 200 open sentences at an error rate of at most 0.05" in shown.out

    accepted = seqmix_command("project", folder, "bulk", "accept", "0.05", "anna")
    assert "200 sentences accepted as batch 1" in accepted.out
    bulk, audit = tmp_path / "bulk.jsonl", tmp_path / "audit.jsonl"
    to = ("--to", "jsonl-tokens")
    assert seqmix_command("export", folder, "--out", bulk, "--split", "bulk", *to).code == 0
    assert len(list(formats.read(bulk, "jsonl-tokens"))) == 200
    assert seqmix_command("export", folder, "--out", audit, "--split", "audit", *to).code == 0
    assert len(list(formats.read(audit, "jsonl-tokens"))) == 200
    answers = tmp_path / "answers.jsonl"
    assert seqmix_command("export", folder, "--out", answers, "--split", "answers").code == 0
    records = [json.loads(line) for line in answers.read_text().splitlines()]
    (said,) = (dict(items) for items in {tuple(r["bulk"].items()) for r in records if r["bulk"]})
    assert (said["alpha"], said["trained_on"]) == (0.05, 9)
    assert said["predicted_at"] == "1970-01-01T00:00:01+00:00"
    assert {r["suggested_by"] for r in records} == {None}
    active = seqmix_command("export", folder, "--out", tmp_path / "a", "--split", "active", *to)
    assert "nobody has labeled a sentence of the stream active" in active.err

    assert "200 sentences taken back" in seqmix_command("project", folder, "bulk", "undo", 1).out
    with open_project(folder) as project:
        assert bulk_ids(project.store) == set()


def test_commands_say_what_is_missing(folder, seqmix_command):
    assert (
        "RATE must look like 0.02 or 2%"
        in seqmix_command("project", folder, "bulk", "show", "few").err
    )
    assert (
        "no annotator named 'eve'"
        in seqmix_command("project", folder, "bulk", "accept", "2%", "eve").err
    )
    assert "a batch is a number" in seqmix_command("project", folder, "bulk", "undo", "x").err
    shown = seqmix_command("project", folder, "bulk", "show", "0.005")
    assert "nothing can be accepted" in shown.out
    assert "there are 200 audit answers in all" in shown.out
    with open_project(folder) as project:
        anna = find_annotator(project.store, "anna").id
        for sentence in read_audit_sentences(project.store)[::4]:
            version = answer_version(project.store, sentence.id, anna)
            save_answer(project.store, sentence.id, anna, "label", [], version=version)
    shown = seqmix_command("project", folder, "bulk", "show", "5%")
    assert "50 of the 200 audit answers that the model is most sure of are wrong" in shown.out
    (folder / "models" / "certain.jsonl").unlink()
    missing = seqmix_command("project", folder, "bulk", "show", "2%")
    assert "no model has predicted the open sentences yet" in missing.err
    assert seqmix_command("project", folder, "bulk", "predict").code == 0
    with open_project(folder) as project:
        assert project.store.read_note(PREDICT_NOW) is not None


def test_python_accepts_and_takes_back(folder):
    with seqmix.Project(folder) as project:
        assert project.guarantee(0.05).accepted == 200
        accepted = project.accept(0.05, "anna")
        assert accepted.accepted == project.status().labeled - 200 == 200
        assert project.undo(accepted.batch).cancelled == 200
        assert project.status().labeled == 200
        with pytest.raises(NotFoundError, match="eve"):
            project.accept(0.05, "eve")
