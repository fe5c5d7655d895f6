"""A project as Python sees it: labels, status, the newest tagger."""

from __future__ import annotations

from pathlib import Path

import pytest

import seqmix
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation, Mark
from seqmix.serve.store.sentences import read_audit_sentences

PER = Mark(0, 1, "PER")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ten sentences of text and a labeled one, and an annotator who answered none."""
    text = [seqmix.Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(10)]
    seed = [seqmix.Sentence("seed:1", ("Bo", "stayed"), ("B-PER", "O"))]
    settings = ProjectSettings("names", ("PER", "LOC"), audit_share=0.5)
    create_project(tmp_path / "names", text, settings, "Mark names.", seed)
    with open_project(tmp_path / "names") as project:
        add_annotator(project.store, "anna", admin=True)
    return tmp_path / "names"


def test_what_people_answered_comes_out_as_sentences_to_learn_from(folder, encoder):
    with open_project(folder) as opened:
        save_answer(opened.store, "s:3", 1, "label", [PER])
        save_answer(opened.store, "s:4", 1, "label", [PER], sure=[(0, 2)])
        save_answer(opened.store, "s:5", 1, "skip")

    with seqmix.Project(folder) as project:
        labels = {sentence.id: sentence.tags for sentence in project.labels()}
        tagger = seqmix.Tagger(encoder, settings=seqmix.Settings(steps=2)).fit(project.labels())
        texts = list(project.sentences())

    assert labels == {
        "seed:1": ("B-PER", "O"),
        "s:3": ("B-PER", "O", "O", "O", "O"),
        "s:4": ("B-PER", "O", None, None, None),
    }
    assert tagger.labels == ("PER",)
    assert len(texts) == 11 and not any(sentence.labeled for sentence in texts)


def test_a_project_says_how_far_it_is(folder):
    with seqmix.Project(folder) as project:
        before = project.status()
        described = repr(project)
        with open_project(folder) as opened:
            audit = read_audit_sentences(opened.store)[:4]
            for sentence in audit:
                save_answer(opened.store, sentence.id, 1, "label", [PER])
            marks = [{"id": s.id, "marks": [PER] if n else []} for n, s in enumerate(audit)]
            publish_generation(opened.store, Generation(1, 5, audit=marks))
        after = project.status()

    assert (before.sentences, before.labeled, before.left, before.seed) == (10, 0, 10, 1)
    assert (before.models, before.audit) == (0, None)
    assert (after.labeled, after.left, after.models) == (4, 6, 1)
    assert after.audit is not None and after.audit.f1 == pytest.approx(2 * 3 / (4 + 3))
    assert after.audit.low < after.audit.f1 < after.audit.high
    assert described == f"Project({str(folder)!r}, tags=['PER', 'LOC'], 0 of 10 sentences labeled)"
    assert (project.name, project.tags, project.guidelines) == (
        "names", ("PER", "LOC"), "Mark names.",
    )  # fmt: skip


def test_its_tagger_is_the_newest(folder, trained):
    trained.save(folder / "models" / "001")
    with seqmix.Project(folder) as project:
        assert project.tagger()("Lena lives in Oslo.") == trained("Lena lives in Oslo.")
    assert seqmix.Tagger.load(folder).labels == trained.labels


def test_what_is_no_project_or_has_no_tagger_is_said(folder, tmp_path):
    calls = {
        "expected the folder of a project, as a path; got 7": lambda: seqmix.Project(7),
        "seqmix init": lambda: seqmix.Project(tmp_path),
        "has no model yet; seqmix annotate trains": lambda: seqmix.Project(folder).tagger(),
        "expected the folder of a tagger, as a path": lambda: seqmix.Tagger.load(None),
    }
    for message, call in calls.items():
        with pytest.raises(seqmix.SeqMixError) as raised:
            call()
        assert message in str(raised.value), str(raised.value)
