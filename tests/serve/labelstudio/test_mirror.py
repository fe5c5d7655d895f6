"""A Label Studio project in a seqmix project: sentences, answers, audit, both pages on a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.serve.labelstudio.labeling import parse_labeling
from seqmix.serve.labelstudio.mirror import Mirror
from seqmix.serve.labelstudio.predictions import TaskPredictions
from seqmix.serve.labelstudio.tasks import Annotation
from seqmix.serve.project import Project, create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import current_answers, gold_answers, read_counts
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import in_order, next_sentence
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation, Mark, Rank
from seqmix.serve.store.sentences import read_audit_sentences, read_sentences
from tests.support.labelstudio_fakes import CONFIG, region

LABELING = parse_labeling(CONFIG)
TEXT = "Lena left Oslo"


def new_project(folder: Path, *texts: str, audit: float = 0.0) -> Project:
    settings = ProjectSettings("studio", ("PER", "LOC"), audit_share=audit)
    sentences = (Sentence.from_text(text, f"notes:{n}") for n, text in enumerate(texts))
    create_project(folder, sentences, settings, may_be_empty=True)
    return open_project(folder)


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    with new_project(tmp_path / "p") as project:
        mirror = Mirror(project)
        mirror.configure(CONFIG)
        yield mirror


def answer(
    id: int, task: int, *words: str, text: str = TEXT, label: str = "PER", **more: Any
) -> Annotation:
    values = {"cancelled": False, "truth": False, "updated": f"2026-11-15T12:00:{id:02d}Z", **more}
    return Annotation(id, task, [region(text, word, label) for word in words], **values)


def history(mirror: Mirror) -> list[tuple[str, list[Mark]]]:
    return [(event.kind, list(event.spans)) for event in read_events(mirror.store)]


def test_corrections_skips_and_deletions_are_events_of_one_annotator(mirror: Mirror) -> None:
    tasks = [(1, {"text": TEXT})]
    lena, oslo = Mark(0, 1, "PER"), Mark(2, 3, "PER")
    mirror.keep(tasks, [answer(1, 1, "Lena")])
    mirror.keep(tasks, [answer(1, 1, "Lena")])  # sent twice
    mirror.keep(tasks, [answer(1, 1, "Oslo", updated="2026-11-15T13:00:00Z")])
    mirror.keep(tasks, [answer(1, 1, updated="2026-11-15T14:00:00Z", cancelled=True)])
    assert history(mirror) == [("label", [lena]), ("label", [oslo]), ("skip", [])]
    assert (read_counts(mirror.store).labeled, read_counts(mirror.store).skipped) == (0, 1)

    mirror.delete("annotation", [1])
    assert current_answers(mirror.store) == []
    assert (read_counts(mirror.store).held, read_counts(mirror.store).left) == (0, 1)
    assert {event.annotator_id for event in read_events(mirror.store)} == {mirror.annotator_id}


def test_the_ground_truth_counts_and_when_it_goes_the_last_annotation(mirror: Mirror) -> None:
    annotations = [answer(1, 1, "Lena", truth=True), answer(2, 1, "Oslo"), answer(3, 1, "left")]
    mirror.keep([(1, {"text": TEXT})], annotations)
    assert gold_answers(mirror.store)[0].spans == (Mark(0, 1, "PER"),)

    mirror.delete("annotation", [1])
    assert gold_answers(mirror.store)[0].spans == (Mark(1, 2, "PER"),)


def test_tasks_with_the_same_tokens_share_a_sentence_and_a_deleted_one_leaves(
    mirror: Mirror,
) -> None:
    mirror.keep([(1, {"text": TEXT}), (2, {"text": "Lena  left Oslo"}), (3, {"text": "Bo left"})])
    mirror.keep([(2, {"text": "Lena  left Oslo"})], [answer(1, 2, "Oslo", text="Lena  left Oslo")])
    assert read_counts(mirror.store).sentences == 2
    assert gold_answers(mirror.store)[0].spans == (Mark(2, 3, "PER"),)

    mirror.delete("task", [2, 3])
    assert (read_counts(mirror.store).sentences, read_counts(mirror.store).labeled) == (1, 0)
    assert (mirror.counts().tasks, mirror.counts().labeled) == (1, 0)
    mirror.keep([(3, {"text": "Bo left"}), (4, {"text": "Bo left"})])  # 3 is gone for good
    assert (mirror.counts().tasks, read_counts(mirror.store).sentences) == (2, 2)


def test_a_task_whose_text_changes_takes_its_annotation_along(mirror: Mirror) -> None:
    mirror.keep([(1, {"text": TEXT})], [answer(1, 1, "Lena")])
    mirror.keep([(1, {"text": "Lena was here"})])
    (gold,) = gold_answers(mirror.store)
    assert (gold.sentence_id.startswith("label-studio:1:"), gold.spans) == (
        True,
        (Mark(0, 1, "PER"),),
    )
    assert read_counts(mirror.store).sentences == 1


def test_labels_that_are_added_become_tags_and_other_first_labels_are_refused(
    mirror: Mirror, tmp_path: Path
) -> None:
    more = CONFIG.replace('<Label value="PER"/>', '<Label value="PER"/><Label value="Home Town"/>')
    mirror.keep([(1, {"text": TEXT})], [answer(1, 1, "Oslo", label="Home Town")])
    assert gold_answers(mirror.store)[0].spans == ()

    assert mirror.configure(more)
    assert mirror.realign()
    assert not mirror.realign()
    assert mirror.store.read_tags() == ("PER", "LOC", "Home_Town")
    assert gold_answers(mirror.store)[0].spans == (Mark(2, 3, "Home_Town"),)
    with (
        new_project(tmp_path / "other", TEXT) as project,
        pytest.raises(DataError, match="must be the tags of the project"),
    ):
        Mirror(project).configure(more)


def test_a_project_made_before_gets_its_tasks_and_people_answer_on_both_pages(
    tmp_path: Path,
) -> None:
    with new_project(tmp_path / "p", TEXT, "Bo met Ada", "Ada is in Rome") as project:
        mirror, store = Mirror(project), project.store
        mirror.configure(CONFIG)
        tasks = [(1, {"text": TEXT}), (2, {"text": "Bo met Ada"}), (3, {"text": "Ada is in Rome"})]
        mirror.keep(tasks, [answer(1, 1, "Lena")])
        assert len(list(read_sentences(store))) == 3

        add_annotator(store, "anna")
        anna = find_annotator(store, "anna")
        assert anna is not None
        first = next_sentence(store, anna.id)
        assert first is not None
        assert first.sentence.id != "notes:0"  # answered in Label Studio
        save_answer(store, first.sentence.id, anna.id, "label", [Mark(0, 1, "LOC")])
        publish_generation(store, Generation(0, 0), [])
        predictions = list(
            TaskPredictions(mirror, lambda folder: lambda s: iter(())).ordered(LABELING)
        )
        task = 1 + int(first.sentence.id.removeprefix("notes:"))
        assert [prediction.task for prediction in predictions] == [5 - task, task]
        assert [r["value"]["labels"] for r in predictions[1].result] == [["LOC"]]

        text = dict(tasks)[task]["text"]
        mirror.keep([(task, {"text": text})], [answer(2, task, text.split()[0], text=text)])
        assert [a.annotator for a in current_answers(store, first.sentence.id)] == [
            "anna",
            "label-studio",
        ]
        gold = {a.sentence_id: a.annotator for a in gold_answers(store)}
        assert gold == {"notes:0": "label-studio", first.sentence.id: "anna"}


def test_audit_tasks_are_among_the_others_and_have_no_suggestion(tmp_path: Path) -> None:
    with new_project(tmp_path / "p", audit=0.3) as project:
        mirror, store = Mirror(project), project.store
        mirror.configure(CONFIG)
        mirror.keep([(n, {"text": f"Lena {n} left"}) for n in range(40)])
        audit = {s.id for s in read_audit_sentences(store)}
        assert 4 <= len(audit) <= 22
        found = {"spans": [{"start": 0, "end": 1, "tag": "PER", "confidence": 0.9}]}
        ids = [s.id for s in read_sentences(store)]
        ranks = [Rank(id, 1.0, {**found, "confidence": 0.9}) for id in ids]
        publish_generation(store, Generation(1, 5), ranks)
        predictions = list(
            TaskPredictions(mirror, lambda folder: lambda s: iter(())).ordered(LABELING)
        )

        by_task = dict(mirror.unanswered())
        order = [by_task[prediction.task] for prediction in predictions]
        assert order == in_order(store, 0.3)
        assert 1 <= sum(id in audit for id in order[:10]) <= 4
        empty = {by_task[p.task] for p in predictions if not p.result}
        assert empty == audit
        scores = [prediction.score for prediction in predictions]
        assert scores == pytest.approx([(n + 0.5) / 40 for n in range(40)])
