"""Jobs of the trainer: what people asked for, while no model is due."""

from __future__ import annotations

from seqmix.serve.review.doubts import JUDGED, REVIEW_NOW, list_reviews
from seqmix.serve.review.model_answers import PREDICT_NOW, read_model_answers
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import accept_answers, untouched
from seqmix.serve.store.records import Annotator
from seqmix.serve.store.sentences import read_audit_sentences, read_labeled
from seqmix.serve.trainer.stages import InterruptedStageError
from tests.serve.trainer.test_trainer import Class
from tests.support.served import project as new_project


def ask(school: Class) -> None:
    school.project.store.write_note(REVIEW_NOW, 1.0)


def test_models_judge_answers_they_have_not_learned_from_but_none_of_the_audit(tmp_path):
    with new_project(tmp_path / "judged", n=60, batch=100, audit_share=0.2) as own:
        school = Class(own)
        school.trainer.step()
        school.answer(30)
        answers = {s.id for s in read_labeled(own.store, "active")}
        odd = sorted(answers)[0]
        save_answer(own.store, odd, school.ada, "label", [], version=answer_version(own.store, odd))
        ask(school)

        assert school.trainer.step()

        folds = school.trained_on
        assert len(folds) == 5
        assert {id for fold in folds for id in fold if "mix" not in id} == answers
        assert all(sum(id in fold for fold in folds) == 4 for id in answers)
        reviews, total = list_reviews(own.store, Annotator(school.ada, "Ada", admin=True))
        assert total == 1
        assert (reviews[0].sentence_id, reviews[0].doubts[0].kind) == (odd, "model")
        assert own.store.read_note(JUDGED)["answers"] == len(answers)
        assert own.store.read_note(REVIEW_NOW) is None
        assert school.phases[-1] == "waiting"
        assert not school.trainer.step()


def test_with_too_few_answers_nothing_is_judged_and_the_request_ends(tmp_path):
    with new_project(tmp_path / "few", n=20, batch=100) as own:
        school = Class(own)
        said = []
        school.trainer.say = said.append
        school.trainer.step()
        school.answer(3)
        ask(school)

        assert school.trainer.step()
        assert own.store.read_note(REVIEW_NOW) is None
        assert "at least 5 of them; there are 3" in said[0]


def test_a_model_that_is_due_comes_first_and_an_interrupted_job_begins_again(tmp_path, monkeypatch):
    with new_project(tmp_path / "due", n=60, batch=12) as own:
        school = Class(own)
        school.trainer.step()
        school.answer(12)
        ask(school)
        assert school.trainer.step()
        assert school.last.number == 1

        def leave() -> None:
            raise InterruptedStageError

        monkeypatch.setattr(school.trainer.stages, "give_way", leave)
        assert school.trainer.step()
        assert own.store.read_note(REVIEW_NOW) is not None
        monkeypatch.undo()
        assert school.trainer.step()
        assert own.store.read_note(REVIEW_NOW) is None


def test_a_model_that_knows_the_answers_alone_predicts_audit_and_open_sentences(tmp_path):
    with new_project(tmp_path / "sure", n=60, batch=100, audit_share=0.2) as own:
        school = Class(own)
        school.trainer.step()
        school.answer(30)
        learned = {s.id for s in read_labeled(own.store, "active")}
        own.store.write_note(PREDICT_NOW, 1.0)

        assert school.trainer.step()

        said = read_model_answers(own.models)
        audit = [s.id for s in read_audit_sentences(own.store)]
        assert [prediction.id for prediction in said.audit] == audit
        assert {prediction.id for prediction in said.open} == untouched(own.store)
        assert {id for id in school.trained_on[0] if "mix" not in id} == learned
        assert said.answers == len(learned)
        assert all(0 <= p.confidence <= 1 for p in (*said.audit, *said.open))
        assert own.store.read_note(PREDICT_NOW) is None


def test_no_model_learns_from_what_was_accepted_in_bulk_nor_is_one_due_for_it(tmp_path):
    with new_project(tmp_path / "bulk", n=60, batch=12) as own:
        school = Class(own)
        school.trainer.step()
        school.answer(12)
        school.trainer.step()
        batch = add_batch(own.store, "accept", school.ada, {})
        chosen = sorted(untouched(own.store))[:20]
        accept_answers(own.store, batch, school.ada, [(id, ()) for id in chosen], lambda: None)
        assert not school.trainer.step()

        school.answer(12)
        assert school.trainer.step()
        assert school.last.labeled == 24
        assert set(chosen).isdisjoint(school.trained_on[-1])
