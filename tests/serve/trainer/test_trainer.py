"""The trainer over a real store: what it learns from and publishes; a dead one starts again."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.augmented import Augmentation, Augmented, Lineage
from seqmix.data.latest_model import using_model
from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.data.tagset import TagSet
from seqmix.errors import ModelError
from seqmix.loop.learner import ActiveLearner
from seqmix.query.selection import with_quota
from seqmix.query.spec import PolicySpec
from seqmix.serve.project import TRAIN_NOW, Project, create_project, open_project
from seqmix.serve.project_status import NOTE, model_status
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator, annotator_by_token, find_annotator
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.rankings import read_generated, read_generations, set_veto
from seqmix.serve.store.records import Mark, digest
from seqmix.serve.store.sentences import (
    add_sentences,
    read_audit_sentences,
    read_labeled,
    read_sentences,
)
from seqmix.serve.tags.changes import Wish, change_tags
from seqmix.serve.trainer import process as background
from seqmix.serve.trainer.parts import Parts
from seqmix.serve.trainer.suggestions import Guess, suggestion
from seqmix.serve.trainer.supervisor import Supervisor
from seqmix.serve.trainer.trainer import Trainer
from seqmix.testing import WordTagger
from tests.support.served import project as new_project
from tests.support.stores import suggestion_of, unlabeled
from tests.support.waiting import until

TAGS = TagSet.ordered(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])


class Repeater:
    """An augmenter that says what it was given, and makes one sentence from each two."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def augment(self, sentences, n, rng) -> Augmentation:
        self.batches.append([s.id for s in sentences])
        made = []
        for one, other in zip(sentences[::2], sentences[1::2], strict=False):
            sentence = Sentence(f"mix({one.id},{other.id})", (*one.tokens, "+"), (*one.tags, "O"))
            made.append(
                Augmented(sentence, Lineage("sub", (one.id, other.id), ((0, 1), (0, 1)), 0, 0.5))
            )
        return Augmentation(tuple(made), n, "that is all")


def unsure(view, n, rng) -> dict[str, float]:
    scored = [(id, float(1 - probs.max(axis=1).min())) for id, probs in view.probs()]
    return dict(sorted(scored, key=lambda pair: -pair[1])[:n])


def guesses(tagger, sentences):
    for (best,) in tagger.best_paths(sentences, by_token=True):
        yield Guess(best.tags, best.probability, best.by_token)


class Class:
    """A project with a trainer made of the parts above, and somebody who answers."""

    def __init__(self, own: Project, **parts) -> None:
        self.project, self.mixer, self.trained_on = own, Repeater(), []
        self.steps: list[int | None] = []
        learner = partial(
            ActiveLearner,
            tagger=self.fit,
            policy=unsure,
            augmenter=lambda round: self.mixer,
            rate=1.0,
        )
        self.parts = Parts(
            learner,
            lambda rng: WordTagger(TAGS),
            PolicySpec(
                selector=lambda view, n, rng: [
                    id for id, _ in sorted(view.embeddings(), key=lambda x: (float(x[1][0]), x[0]))
                ][:n]
            ),
            guesses,
            **parts,
        )
        self.phases: list[str] = []
        self.trainer = Trainer(own, self.parts, self.phases.append)
        if find_annotator(own.store, "Ada") is None:
            add_annotator(own.store, "Ada", admin=True)
        self.ada = find_annotator(own.store, "Ada").id

    def fit(self, sentences, steps, rng, last) -> WordTagger:
        self.trained_on.append(sorted(s.id for s in sentences))
        self.steps.append(steps)
        return WordTagger(TAGS).fit(sentences)

    def answer(self, n: int = 1) -> list[str]:
        """Label the next n sentences; their ids."""
        done = []
        for _ in range(n):
            given_now = next_sentence(self.project.store, self.ada, self.project.rules)
            places = [
                i
                for i, token in enumerate(given_now.sentence.tokens)
                if token in ("Lena", "Ada", "Bo")
            ]
            marks = [Mark(i, i + 1, "PER") for i in places]
            save_answer(
                self.project.store,
                given_now.sentence.id,
                self.ada,
                "label",
                marks,
                version=given_now.version,
            )
            done.append(given_now.sentence.id)
        return done

    @property
    def last(self):
        return read_generations(self.project.store, 1)[-1]


@pytest.fixture
def school(tmp_path):
    with new_project(tmp_path / "school", n=60, batch=4) as own:
        yield Class(own)


def test_before_there_are_labels_the_first_ranking_spreads_over_the_pool(school: Class):
    assert school.trainer.step()
    assert (school.last.number, school.last.labeled, school.last.model) == (0, 0, None)
    first = next_sentence(school.project.store, school.ada).sentence
    lengths = [float(np.mean([len(t) for t in s.tokens])) for s in unlabeled(school.project.store)]
    assert np.mean([len(t) for t in first.tokens]) == min(lengths)
    assert not school.trainer.step()
    assert school.phases[-1] == "waiting"


def test_it_trains_when_enough_answers_came_and_not_before(school: Class):
    school.trainer.step()
    school.answer(3)
    assert not school.trainer.step()
    ids = school.answer(1) + [s.id for s in read_labeled(school.project.store)]
    assert school.trainer.step()
    assert (school.last.number, school.last.labeled, school.last.model) == (1, 4, "models/001")
    assert set(ids) <= set(school.trained_on[0])
    assert (school.project.folder / school.last.model / "words.json").exists()
    assert not school.trainer.step()
    assert school.last.seconds.keys() == {"mixing", "training", "ranking", "auditing", "saving"}


def test_the_first_model_is_quick_and_one_with_all_its_steps_follows_at_once(tmp_path):
    with new_project(tmp_path / "quick", n=60, batch=4) as own:
        school = Class(own, quick=5, steps=lambda labeled: 100 * labeled)
        school.trainer.step()
        school.answer(4)

        assert school.trainer.step()
        assert (school.last.number, school.steps) == (1, [5])
        assert school.trainer.step()
        assert (school.last.number, school.steps) == (2, [5, 400]), "generated ones do not count"
        assert len(school.trained_on[1]) > 4
        assert school.trained_on[0] == school.trained_on[1]
        assert not school.trainer.step()


def test_the_first_model_ranks_a_part_of_a_large_pool_and_the_next_one_all(tmp_path):
    with new_project(tmp_path / "brief", n=620, batch=4, audit_share=0.1) as own:
        school = Class(own, quick=5)
        school.answer(6)
        assert school.trainer.step()
        assert (school.last.number, school.last.notes.pool["ranked"]) == (1, 500)
        assert school.trainer.step()
        assert school.last.notes.pool["ranked"] == 553


def test_the_queue_follows_the_new_ranking_with_suggestions_and_their_confidence(school: Class):
    school.trainer.step()
    school.answer(4)
    school.trainer.step()
    shown = next_sentence(school.project.store, school.ada)

    assert shown.generation == 1
    assert set(shown.suggestion) == {"spans", "confidence"}
    assert all(
        0 < span["confidence"] <= 1 and span["tag"] == "PER" for span in shown.suggestion["spans"]
    )


def test_only_new_labels_are_mixed_and_what_was_generated_accumulates(school: Class):
    first = school.answer(4)
    school.trainer.step()
    second = school.answer(5)
    school.trainer.step()

    assert [sorted(batch) for batch in school.mixer.batches] == [sorted(first), sorted(second)]
    generated = [id for id in school.trained_on[1] if id.startswith("r")]
    assert len(generated) == 2 + 2
    assert {id.partition("/")[0] for id in generated} == {"r1", "r2"}
    assert set(first + second) <= set(school.trained_on[1])
    assert school.last.notes.augmentation == {
        "asked": 5,
        "generated": 2,
        "in_use": 4,
        "reason": "that is all",
    }


def test_a_vetoed_sentence_never_enters_training_again(school: Class):
    school.answer(4)
    school.trainer.step()
    store = school.project.store
    vetoed, kept = read_generated(store)[0]
    set_veto(store, vetoed.id, school.ada)
    school.answer(4)
    school.trainer.step()

    names = school.trained_on[1]
    assert kept.record["id"] in names
    assert vetoed.record["id"] not in names
    assert {one.id for one in read_generated(store)[0] if one.vetoed} == {vetoed.id}


def test_an_augmenter_that_makes_a_vetoed_sentence_anew_makes_it_in_vain(school: Class):
    ids = school.answer(4)
    school.trainer.step()
    store = school.project.store
    vetoed = read_generated(store)[0][0]
    set_veto(store, vetoed.id, school.ada)
    for id in ids:  # the same labels, given again: the augmenter sees the batch once more
        answer = current_answers(store, id)[0]
        save_answer(store, id, school.ada, "label", answer.spans, version=answer.seq, seconds=9)
    school.trainer.step()

    tokens = {digest(one.record["tokens"]) for one in read_generated(store)[0] if not one.vetoed}
    assert len(school.mixer.batches) == 2
    assert vetoed.id not in tokens
    assert not [
        name
        for name in school.trained_on[1]
        if name.endswith(vetoed.record["id"].partition("/")[2])
    ]


def test_what_was_made_from_a_label_that_was_corrected_or_undone_is_dropped(school: Class):
    ids = school.answer(4)
    school.trainer.step()
    store = school.project.store
    corrected = read_generated(store)[0][0]
    parent = corrected.record["lineage"]["parents"][0]
    answer = current_answers(store, parent)[0]
    save_answer(store, parent, school.ada, "label", [Mark(0, 2, "LOC")], version=answer.seq)
    school.answer(4)
    school.trainer.step()

    assert corrected.record["id"] not in school.trained_on[1]
    assert read_generated(store)[0]
    assert parent in school.mixer.batches[1]
    assert set(ids) <= set(school.trained_on[1])


def test_corrections_alone_bring_a_new_model_too(school: Class):
    ids = school.answer(4)
    school.trainer.step()
    store = school.project.store
    for id in ids:
        save_answer(
            store, id, school.ada, "label", [], version=answer_version(store, id, school.ada)
        )

    assert school.trainer.step()
    assert school.last.number == 2


def test_skips_and_audit_answers_bring_no_new_model(tmp_path):
    with new_project(tmp_path / "skipped", n=60, batch=4, audit_share=0.5) as own:
        school = Class(own)
        school.answer(8)
        school.trainer.step()
        trained = school.last.labeled
        for _ in range(6):
            shown = next_sentence(own.store, school.ada, own.rules)
            save_answer(own.store, shown.sentence.id, school.ada, "skip", version=shown.version)
        school.answer(6)

        assert (school.last.number, trained) == (1, 4)
        assert not school.trainer.step()


def test_audit_sentences_are_predicted_and_not_learned_from_unless_asked(tmp_path):
    for learns in (False, True):
        with new_project(
            tmp_path / f"audit-{learns}", n=60, batch=4, audit_share=0.3, audit_train=learns
        ) as own:
            school = Class(own)
            school.answer(12)
            school.trainer.step()
            audit = {s.id for s in read_audit_sentences(own.store)}
            assert len(audit) == 18
            assert {one["id"] for one in school.last.audit} == audit
            assert bool(audit & set(school.trained_on[0])) is learns


def test_a_trainer_started_anew_goes_on_where_the_last_one_was(school: Class):
    school.answer(4)
    school.trainer.step()
    again = Class(school.project)
    assert not again.trainer.step()
    second = again.answer(4)
    again.trainer.step()

    assert again.last.number == 2
    assert [sorted(batch) for batch in again.mixer.batches] == [sorted(second)]
    assert len([id for id in again.trained_on[0] if id.startswith("r1/")]) == 2


def test_seed_labels_are_learned_from_before_anybody_answers(tmp_path):
    labeled = [Sentence(f"seed{i}", ("Lena", "met", str(i)), ("B-PER", "O", "O")) for i in range(5)]
    pool = [Sentence(f"p{i}", ("Ada", "left", str(i))) for i in range(20)]
    create_project(
        tmp_path / "seeded", pool, ProjectSettings("seeded", ("PER", "LOC"), batch=4), None, labeled
    )
    with open_project(tmp_path / "seeded") as own:
        school = Class(own)
        assert school.trainer.step()

        assert (school.last.number, school.last.labeled) == (1, 5)
        assert sorted(school.mixer.batches[0]) == [s.id for s in labeled]
        assert not school.trainer.step()


def test_a_training_that_fails_is_said_and_the_last_model_goes_on_serving(
    school: Class, monkeypatch
):
    class Enough(BaseException):
        """Ends a trainer that would try again for ever."""

    def fails() -> bool:
        raise ModelError("the loss became nan at step 3 of 60")

    def pause(seconds: float) -> None:
        raise Enough

    monkeypatch.setattr(school.trainer, "step", fails)
    monkeypatch.setattr(background.time, "sleep", pause)
    with pytest.raises(Enough):
        background.train_until_changed(
            school.trainer, background.Heartbeat(school.project, lambda job: job())
        )

    noted = school.project.store.read_note(NOTE)
    assert (
        noted["failed"]
        and noted["phase"] == "the last training failed: the loss became nan at step 3 of 60"
    )
    assert model_status(None, noted, None)["training"] is False


def test_a_trainer_ends_when_a_tag_is_added_so_that_it_is_built_anew(
    school: Class, monkeypatch: pytest.MonkeyPatch
):
    store = school.project.store
    monkeypatch.setattr(
        background.time, "sleep", lambda seconds: store.write_note("tags", [*store.tags, "NEW"])
    )  # as another process does

    background.train_until_changed(
        school.trainer, background.Heartbeat(school.project, lambda job: job())
    )

    assert store.tags[-1] == "NEW"


def test_a_change_of_the_tags_brings_a_model_that_learns_and_generates_all_anew(
    school: Class, monkeypatch: pytest.MonkeyPatch
):
    first = school.answer(4)
    assert school.trainer.step()
    store, settings = school.project.store, school.project.settings
    change_tags(store, Wish("recolor", "PER", color=5))
    assert not school.trainer.step(), "a color teaches nothing"
    change_tags(store, Wish("rename", "PER", ("Human",)))
    names = ["O", "B-Human", "I-Human", "B-LOC", "I-LOC"]
    monkeypatch.setattr(sys.modules[__name__], "TAGS", TagSet.ordered(names))
    settings = replace(settings, tags=("Human", "LOC"))
    later = Class(replace(school.project, settings=settings))

    assert later.trainer.step()
    assert not later.trainer.step()
    assert later.mixer.batches == [sorted(first, key=later.mixer.batches[0].index)]
    assert later.last.notes.tag_change == 2
    tags = {row for _, record in generated_rows(later) for row in record}
    assert "B-Human" in tags
    assert "B-PER" not in tags


def generated_rows(school: Class):
    page, _ = read_generated(school.project.store, 100, 0)
    return [(g.id, g.record["ner_tags"]) for g in page if g.generation == school.last.number]


def test_a_ranking_that_is_published_after_a_change_suggests_the_tags_of_now(school: Class):
    school.answer(4)
    clock = school.trainer.report

    def rename(phase: str) -> None:
        clock(phase)
        if phase == "publishing":  # the model knows the old name only
            change_tags(school.project.store, Wish("rename", "PER", ("Human",)))

    school.trainer.report = rename
    assert school.trainer.step()
    assert school.last.notes.tag_change == 0
    suggested = [
        suggestion_of(school.project.store, s.id)[0] for s in unlabeled(school.project.store)
    ]
    assert {span["tag"] for some in suggested if some for span in some["spans"]} == {"Human"}


def test_answers_that_a_new_tag_leaves_open_do_not_call_for_a_training_again_and_again(
    school: Class,
):
    for sentence in list(read_sentences(school.project.store))[:4]:
        save_answer(school.project.store, sentence.id, 1, "label", [])
    change_tags(school.project.store, Wish("add", "NEW", earlier="unknown"))
    school.answer(4)
    assert school.trainer.step()
    assert not school.trainer.step()


def test_the_last_two_models_are_kept_and_what_a_killed_trainer_left_is_cleared(school: Class):
    models = school.project.models
    (models / ".003.4242.part").mkdir(parents=True)
    (models / ".latest.4242.part").write_text("00")
    (models / "mine").mkdir()
    for _ in range(4):
        school.answer(4)
        school.trainer.step()

    assert sorted(path.name for path in models.iterdir()) == ["003", "004", "latest", "mine"]
    assert (models / "latest").read_text() == "004\n"
    with using_model(models / "003"):
        school.answer(4)
        school.trainer.step()
        assert sorted(path.name for path in models.iterdir()) == [
            "003",
            "004",
            "005",
            "latest",
            "mine",
        ]
    school.answer(4)
    school.trainer.step()
    assert sorted(path.name for path in models.iterdir()) == ["005", "006", "latest", "mine"]


def test_an_old_model_that_was_half_removed_is_gone_after_the_next_start(school: Class):
    models = school.project.models
    for _ in range(3):
        school.answer(4)
        school.trainer.step()
    (models / "001").mkdir()
    (models / "001" / "model.safetensors").write_bytes(b"what a kill left")

    school.trainer.clean()  # as a trainer that starts does

    assert sorted(path.name for path in models.iterdir()) == ["002", "003", "latest"]


def test_a_pool_larger_than_the_limit_is_ranked_in_part_and_status_can_say_so(tmp_path):
    with new_project(tmp_path / "large", n=80, batch=4) as own:
        school = Class(own, most=30)
        school.answer(4)
        school.trainer.step()

    assert school.last.notes.pool == {"ranked": 30, "of": 76}


def test_a_pool_that_is_empty_still_trains(tmp_path):
    with new_project(tmp_path / "small", n=4, batch=4) as own:
        school = Class(own)
        school.answer(4)
        assert school.trainer.step()
        assert school.last.notes.pool["ranked"] == 0


def test_a_partly_labeled_sentence_is_learned_from_as_far_as_it_goes(school: Class):
    store = school.project.store
    shown = next_sentence(store, school.ada)
    save_answer(store, shown.sentence.id, school.ada, "label", [], [(0, 1)])
    school.answer(3)
    assert school.trainer.step()
    assert school.last.labeled == 4


@given(st.lists(st.booleans(), max_size=60), st.floats(0, 1))
def test_the_quota_reorders_and_keeps_its_share_at_every_place(empty, share):
    order = [str(i) for i in range(len(empty))]
    some = {id for id, own in zip(order, empty, strict=True) if own}
    found = with_quota(order, some, share)

    assert sorted(found) == sorted(order)
    assert [id for id in found if id in some] == [id for id in order if id in some]
    assert [id for id in found if id not in some] == [id for id in order if id not in some]
    for n in range(len(found) + 1):
        seen = sum(id in some for id in found[:n])
        assert seen >= min(len(some), int(share * n))


def test_a_span_is_as_sure_as_its_least_sure_token():
    guess = Guess(("B-PER", "I-PER", "O", "B-LOC"), 0.31234567, (0.9, 0.5, 0.99, 0.7))
    found = suggestion(guess, ("PER", "LOC"))

    assert (
        found["confidence"] == 0.5
    )  # as the whole: the product over a long sentence says nothing to people
    assert found["spans"] == [
        {"start": 0, "end": 2, "tag": "PER", "confidence": 0.5},
        {"start": 3, "end": 4, "tag": "LOC", "confidence": 0.7},
    ]
    assert suggestion(guess, ("LOC",))["spans"] == found["spans"][1:]


def test_who_asks_for_a_training_need_not_wait_for_a_whole_batch(school: Class):
    school.trainer.step()
    school.answer(1)
    assert not school.trainer.step()
    school.project.store.write_note(TRAIN_NOW, 1)

    assert school.trainer.step()
    assert (school.last.number, school.last.labeled) == (1, 1)
    assert not school.trainer.step()


def test_the_first_ranking_is_made_again_when_the_pool_has_doubled(tmp_path):
    with new_project(tmp_path / "growing", n=20) as own:
        school = Class(own)
        school.trainer.step()
        add_sentences(
            own.store, (Sentence.from_text(f"late text {i}", f"late:{i}") for i in range(19))
        )
        assert not school.trainer.step()
        add_sentences(own.store, [Sentence.from_text("one more", "late:19")])
        assert school.trainer.step()
        assert (school.last.number, school.last.notes.pool["of"]) == (0, 40)
        assert not school.trainer.step()


def test_a_tagger_to_begin_with_ranks_suggests_and_is_trained_further(tmp_path):
    start = WordTagger(TAGS, {"Lena": {"B-PER": 9.0}})
    with new_project(tmp_path / "begun", n=20, batch=2) as own:
        school = Class(own, start=start)
        learned_from = []

        def fit(sentences, steps, rng, last):
            learned_from.append(last)
            return school.fit(sentences, steps, rng, last)

        school.trainer.parts = replace(
            school.parts, learner=partial(school.parts.learner, tagger=fit, warm=True)
        )
        school.trainer.step()
        suggested = [suggestion_of(own.store, s.id)[0] for s in unlabeled(own.store)]
        assert all(found is not None for found in suggested)
        assert {m["tag"] for found in suggested for m in found["spans"]} == {"PER"}
        school.answer(2)
        school.trainer.step()
        school.answer(2)
        school.trainer.step()
    assert learned_from == [start, start]


# The real parts.


@pytest.fixture(scope="module")
def gazette(tmp_path_factory):
    """A tiny gazette project with the real trainer, made as by `annotate`, with one epoch."""
    import torch

    from seqmix.app.trainer_process import build_parts

    folder = tmp_path_factory.mktemp("gazette") / "names"
    corpus = [s for s in sample("gazette:train") if len(s) < 25][:60]
    tags = TagSet.of(corpus).types
    create_project(folder, corpus, ProjectSettings("names", tags, batch=8, audit_share=0.1))
    (folder / "training.toml").write_text("[training]\nepochs = 1\n")
    threads = torch.get_num_threads()
    with open_project(folder) as own:
        parts = build_parts(own)
        yield own, parts, {s.id: s for s in corpus}
    torch.set_num_threads(threads)


def test_the_real_parts_rank_train_suggest_and_leave_a_tagger_that_predict_takes(gazette, tmp_path):
    from seqmix.app.cli import run

    own, parts, gold = gazette
    trainer = Trainer(own, replace(parts, first=40))
    assert trainer.step()
    token = add_annotator(own.store, "Ada")
    ada = annotator_by_token(own.store, token).id
    for _ in range(10):
        shown = next_sentence(own.store, ada, own.rules)
        found = [
            Mark(s.start, s.end, s.type)
            for s in spans([str(t) for t in gold[shown.sentence.id].tags])
        ]
        save_answer(own.store, shown.sentence.id, ada, "label", found, version=shown.version)
    assert trainer.step()
    last = read_generations(own.store, 1)[-1]

    assert (last.number, last.model) == (1, "models/001")
    assert last.notes.augmentation["generated"] or last.notes.augmentation["reason"]
    shown = next_sentence(own.store, ada, own.rules)
    assert shown.stream == "audit" or 0 < shown.suggestion["confidence"] <= 1
    text = tmp_path / "notes.txt"
    text.write_text("Lena Meyer left Oslo .\n")
    assert (
        run(
            [
                "predict",
                str(own.folder / last.model),
                str(text),
                "--out",
                str(tmp_path / "notes.jsonl"),
            ]
        )
        == 0
    )
    assert (tmp_path / "notes.jsonl").read_text()


# The process.


def test_a_trainer_that_dies_is_started_again_and_the_trouble_is_told(tmp_path):
    watched = Supervisor(
        [sys.executable, "-c", "import time; print('here', flush=True); time.sleep(60)"],
        tmp_path / "log",
        wait=0.5,
    )
    watched.start()
    try:
        until(lambda: watched.pid is not None and watched.trouble() is None)
        first = watched.pid
        os.kill(watched.pid, signal.SIGKILL)
        until(lambda: watched.trouble() is not None)
        assert "signal 9" in watched.trouble()
        until(lambda: watched.pid not in (None, first))
        assert watched.starts == 2
    finally:
        watched.stop()
    assert watched.pid is None


def test_a_command_that_always_fails_is_tried_less_and_less_often(tmp_path):
    watched = Supervisor(
        [sys.executable, "-c", "raise SystemExit('no good')"], tmp_path / "log", wait=0.2
    )
    watched.start()
    until(lambda: watched.starts >= 3)
    trouble = watched.trouble()
    watched.stop()

    assert trouble is None or "status 1" in trouble
    assert "no good" in (tmp_path / "log").read_text()


def test_a_command_that_does_not_exist_is_no_end_of_the_server(tmp_path):
    watched = Supervisor([str(tmp_path / "nothing")], tmp_path / "log", wait=0.2)
    watched.start()
    until(lambda: watched.trouble() is not None)
    watched.stop()

    assert "No such file" in watched.trouble()


def test_a_template_is_not_asked_again_and_again(tmp_path):
    """Nor by the next model: what people were asked last counts."""
    ovens = [f"Heat the oven to {n} C and line tin {n} with paper" for n in range(40)]
    others = [f"{a}1 {a}2 {a}3 {a}4" for a in "bcdefghijklmnopqrstuvwxyz"]
    text = [Sentence(str(at), tuple(line.split())) for at, line in enumerate([*ovens, *others])]

    def asked(gap: int) -> list[bool]:
        """Whether each question is about an oven, in two rankings that prefer these."""
        settings = ProjectSettings("ovens", ("PER", "LOC"), audit_share=0.0, batch=4)
        folder = tmp_path / f"gap{gap}"
        create_project(folder, text, settings)
        with open_project(folder) as project:
            school = Class(project, apart=gap)
            school.parts = replace(
                school.parts,
                learner=partial(
                    ActiveLearner,
                    tagger=school.fit,
                    policy=lambda view, n, rng: sorted((s.id for s in view.sentences()), key=int)[
                        :n
                    ],
                ),
            )
            school.trainer = Trainer(project, school.parts)
            school.trainer.step()
            school.answer(4)
            ids = []
            for _ in range(2):
                assert school.trainer.step()
                ids += school.answer(7)
            return [int(id) < len(ovens) for id in ids]

    assert sum(asked(0)) == 14
    spread = asked(10)
    assert sum(spread) == 2 and all(sum(spread[at : at + 10]) <= 1 for at in range(5))
