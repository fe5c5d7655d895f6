"""A project's stages with their real parts, on an encoder small enough to train in a blink."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from seqmix.app.project_config import project_config
from seqmix.app.stages.reading import AdaptedEncoder
from seqmix.app.stages.teaching import fit_of, teach
from seqmix.app.trainer_process import build_parts
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.loop.selftraining import self_trained
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.store.sentences import add_sentences
from seqmix.serve.trainer.stages import InterruptedStageError
from seqmix.serve.trainer.trainer import Trainer
from seqmix.tagger import Tagger
from tests.support import tiny

TAGS = ("PER", "LOC", "ORG")
QUICK = """
[training]
min_steps = 6
epochs = 1
[adapt]
epochs = 2
[self_training]
teachers = 2
steps = 6
sentences = 12
"""


def text(n: int) -> list[Sentence]:
    return [
        Sentence(f"text/{i}", (*sentence.tokens, f"x{i}")) for i, sentence in enumerate(tiny.toy(n))
    ]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_masked_lm(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture
def project(tmp_path, encoder):
    settings = ProjectSettings("toys", TAGS, batch=6, audit_share=0.2, encoder=encoder)
    create_project(tmp_path / "toys", text(40), settings)
    (tmp_path / "toys" / "training.toml").write_text(QUICK)
    with open_project(tmp_path / "toys") as opened:
        yield opened


def answer(project, n: int = 8) -> None:
    add_annotator(project.store, "ada")
    for i in range(n):
        save_answer(project.store, f"text/{i}", 1, "label", [(0, 1, "PER")])


def test_a_project_goes_through_all_stages_and_its_taggers_need_no_other_folder(project, encoder):
    names: list[str] = []

    def watch(name: str):
        names.append(name)
        return lambda done, total, loss: None

    answer(project)
    trainer = Trainer(project, replace(build_parts(project, watch), least=4))
    for _ in range(20):
        if not trainer.step():
            break

    assert [g.notes.stage for g in read_generations(project.store)] == [1, 2, 3]
    assert [name for name in names if name != "training"] == [
        "the encoder reads your text", "teacher 1 of 2", "teacher 2 of 2",
        "the teachers tag your text",
    ]  # fmt: skip
    assert sorted(path.name for path in project.models.iterdir() if path.is_dir()) == [
        "002", "003", "encoder", "lessons",
    ]  # fmt: skip
    assert Tagger.load(project.models / "003").encoder == encoder


def test_the_text_is_read_once_without_the_audit_and_again_when_it_has_doubled(project, encoder):
    config = project_config(project.folder, project.settings)
    reading = AdaptedEncoder(project, config)
    assert (reading.encoder, reading.name, reading.due(40)) == (encoder, "", True)
    audit = sum(sentence.id not in {s.id for s in reading.text(None)} for sentence in text(40))
    assert audit == 8

    reading.read(40, lambda: None)
    first = reading.name
    assert first and not reading.due(79) and reading.due(80)
    assert not list((project.models / "encoder").glob("*.checkpoint"))
    add_sentences(project.store, (Sentence(f"late/{s.id}", (*s.tokens, "!")) for s in text(40)))

    again = AdaptedEncoder(project, config)
    assert (again.name, again.due(79), again.due(80)) == (first, False, True)
    again.read(80, lambda: None)
    assert again.name != first
    folders = {path.name for path in (project.models / "encoder").iterdir() if path.is_dir()}
    assert folders == {again.name, f"{again.name}.lock"}
    other = AdaptedEncoder(project, config.model_copy(update={"seed": 5}))
    assert other.due(80), "other settings mean another encoder"


def test_teachers_that_were_trained_before_a_kill_are_not_trained_again(project, encoder):
    config = project_config(project.folder, project.settings)
    labeled, pool = tiny.toy(8), text(20)
    tag_set = TagSet.of(labeled)
    names: list[str] = []

    def watch(name: str):
        names.append(name)
        return lambda done, total, loss: None

    def stop_in_the_second() -> None:
        if names[-1:] == ["teacher 2 of 2"]:
            raise InterruptedStageError

    place = project.models / "teachers"
    learn = partial(teach, config, tag_set, lambda: encoder, place, watch, labeled, pool)
    with pytest.raises(InterruptedStageError):
        learn(np.random.default_rng(3), None, stop_in_the_second)
    names.clear()
    lessons = learn(np.random.default_rng(3), None, lambda: None)

    assert names == ["teacher 2 of 2", "the teachers tag your text"]
    assert len(lessons) == 12
    whole = partial(teach, config, tag_set, lambda: encoder, place / "whole", watch, labeled, pool)
    assert whole(np.random.default_rng(3), None, lambda: None) == lessons


def test_teachers_are_those_of_the_recipe(project, encoder):
    """The student of a simulation learns from the same sentences, tagged in the same way."""
    config = project_config(project.folder, project.settings)
    labeled, pool = tiny.toy(8), text(20)
    learned: list[list[Sentence]] = []

    def watch(name: str):
        return lambda done, total, loss: None

    fit = fit_of(config, TagSet.of(labeled), lambda: encoder)

    def noted(sentences, steps, rng, last):
        learned.append(list(sentences))
        return fit(sentences, steps, rng, last)

    self_trained(noted, lambda: pool, config.self_training)(
        labeled, 6, np.random.default_rng(3), None
    )
    lessons = teach(
        config, TagSet.of(labeled), lambda: encoder, project.models / "teachers", watch,
        labeled, pool, np.random.default_rng(3), None, lambda: None,
    )  # fmt: skip

    assert learned[-1] == [*labeled, *lessons]
