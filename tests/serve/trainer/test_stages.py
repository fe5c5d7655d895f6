"""The later stages: what is due comes first, what was learned survives, settings are obeyed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.trainer import stages
from seqmix.serve.trainer.lessons import FOLDER, Lessons, read_lessons, write_lessons
from tests.serve.trainer.test_trainer import Class
from tests.support.served import project as new_project


@dataclass
class Reader:
    """An encoder that reads the text in ten steps."""

    name: str = ""
    size: int = 0
    steps: int = 0
    error: Exception | None = None

    def due(self, size: int) -> bool:
        return not self.name or size >= 2 * self.size

    def read(self, size, between) -> None:
        if self.error is not None:
            raise self.error
        for _ in range(10):
            between()
            self.steps += 1
        self.name, self.size = f"read-{size}", size


class Staged(Class):
    """A project whose trainer has all stages; teachers begin with four sentences."""

    def __init__(self, own, reading=None, **parts) -> None:
        self.reading, self.taught = reading or Reader(), []
        self.during = lambda: None  # what happens while the teachers learn
        super().__init__(
            own,
            **{
                "reading": self.reading,
                "teach": self.teach,
                "student": lambda lessons: self.student(lessons),
                "least": 4,
                **parts,
            },
        )

    def teach(self, sentences, unlabeled, rng, last, between):
        self.taught.append(sorted(s.id for s in sentences))
        self.during()
        for _ in range(3):
            between()
        return [replace(s, tags=("O",) * len(s)) for s in unlabeled[:5]]

    def student(self, lessons):
        def fit(sentences, steps, rng, last):
            return self.fit([*sentences, *lessons], steps, rng, last)

        return fit

    @property
    def history(self) -> list[tuple[int, int, int]]:
        return [
            (one.number, one.labeled, one.notes.stage)
            for one in read_generations(self.project.store)
            if one.number
        ]

    def settle(self) -> None:
        """Go on until nothing is left to do."""
        for _ in range(30):
            if not self.trainer.step():
                return
        raise AssertionError("the trainer never rests")


@pytest.fixture
def staged(tmp_path, monkeypatch):
    monkeypatch.setattr(stages, "LOOK_EVERY", 0.0)
    with new_project(tmp_path / "staged", n=60, batch=4) as own:
        yield Staged(own)


def test_a_plain_model_comes_first_then_one_that_has_read_then_a_student(staged: Staged):
    staged.trainer.step()
    assert not staged.trainer.step(), "before there is a model, nothing is read"
    ids = staged.answer(4)
    staged.settle()

    assert staged.history == [(1, 4, 1), (2, 4, 2), (3, 4, 3)]
    assert set(ids) <= set(staged.taught[0])
    assert len([id for id in staged.trained_on[2] if id not in staged.trained_on[0]]) >= 5
    assert staged.reading.steps == 10
    assert staged.phases[-1] == "waiting"


def test_the_text_is_read_again_only_when_it_has_doubled(staged: Staged):
    staged.answer(4)
    staged.settle()
    staged.reading.size = 31
    staged.answer(4)
    staged.settle()
    assert staged.reading.steps == 10
    staged.reading.size = 30
    assert staged.trainer.step()
    assert staged.reading.steps == 20


def test_teachers_begin_again_when_a_tenth_of_the_answers_is_new(staged: Staged):
    staged.answer(44)
    staged.settle()
    assert (len(staged.taught), staged.history[-1]) == (1, (3, 44, 3))
    staged.answer(4)
    staged.settle()
    assert (len(staged.taught), staged.history[-1]) == (1, (4, 48, 3)), "4 of 48 are too few"
    staged.answer(4)
    staged.settle()
    assert (len(staged.taught), staged.history[-1]) == (2, (6, 52, 3))


def test_with_few_answers_there_are_no_teachers(tmp_path):
    with new_project(tmp_path / "few", n=60, batch=4) as own:
        staged = Staged(own, least=5)
        staged.answer(4)
        staged.settle()
    assert (staged.taught, staged.history) == ([], [(1, 4, 1), (2, 4, 2)])


def test_a_model_that_is_due_is_trained_between_two_steps_of_a_stage(staged: Staged, monkeypatch):
    monkeypatch.setattr(stages, "SHARE", 0.0)  # however slow this machine trains the first model
    staged.answer(4)
    staged.trainer.step()
    due = iter([4])

    def answer(size=0) -> None:
        staged.answer(next(due, 0))

    staged.during = answer
    staged.settle()

    assert staged.history == [(1, 4, 1), (2, 4, 2), (3, 8, 2), (4, 8, 3), (5, 8, 3)]
    assert [len([id for id in ids if id[0] == "s"]) for ids in staged.taught] == [4, 8]


def test_after_a_model_a_stage_has_half_its_time_for_itself(staged: Staged):
    staged.answer(4)
    staged.trainer.step()
    staged.trainer.stages.take_turn(1000.0)  # as after a model that took so long
    staged.answer(4)
    assert staged.trainer.step()
    assert (staged.reading.steps, staged.history) == (10, [(1, 4, 1)])
    staged.trainer.stages.take_turn(0.0)
    assert staged.trainer.step()
    assert staged.history[-1] == (2, 8, 2)


def test_a_new_tag_ends_a_stage(staged: Staged):
    staged.answer(4)
    staged.trainer.step()
    store = staged.project.store
    staged.during = lambda: store.write_note("tags", [*store.tags, "NEW"])
    for _ in range(4):
        staged.trainer.step()
    assert staged.history == [(1, 4, 1), (2, 4, 2)]
    assert read_lessons(staged.project.models) is None


def test_settings_without_stages_stop_after_the_plain_model(tmp_path):
    with new_project(tmp_path / "plain", n=60, batch=4) as own:
        staged = Staged(own, teach=None)
        staged.parts = staged.trainer.parts = replace(staged.parts, reading=None)
        staged.answer(4)
        staged.settle()
    assert (staged.reading.steps, staged.history) == (0, [(1, 4, 1)])


def test_an_encoder_that_cannot_read_is_told_to_the_log_and_left_as_it_is(tmp_path):
    with new_project(tmp_path / "headless", n=60, batch=4) as own:
        staged = Staged(own, Reader(error=ModelError("it has no masked-LM head")))
        told: list[str] = []
        staged.trainer.say = told.append
        staged.answer(4)
        staged.settle()
    assert told == ["stage 2 is skipped: it has no masked-LM head"]
    assert staged.history == [(1, 4, 1), (2, 4, 3)]


def test_another_trainer_goes_on_with_the_lessons_and_does_not_teach_again(staged: Staged):
    staged.answer(4)
    staged.settle()
    again = Staged(staged.project, staged.reading)
    again.settle()
    assert (again.taught, again.trained_on) == ([], [])
    again.answer(4)
    again.trainer.step()
    assert again.history[-1] == (4, 8, 3)


def test_lessons_are_written_whole_and_damaged_ones_are_none(tmp_path):
    soft = Sentence("a", ("Lena", "left"), ({"B-PER": 0.75, "O": 0.25}, "O"))
    write_lessons(tmp_path, Lessons(7, "abc", ("PER",), [soft]))
    assert read_lessons(tmp_path) == Lessons(7, "abc", ("PER",), [soft])
    (tmp_path / FOLDER / "lessons.jsonl").write_text("{")
    assert read_lessons(tmp_path) is None


def test_the_first_student_learns_from_copies_of_all_answers(staged: Staged):
    staged.answer(4)
    staged.trainer.step()
    staged.answer(4)
    staged.settle()
    batches = [len(batch) for batch in staged.mixer.batches]
    # new answers twice, none for the model that has read, all for the teachers and their student
    assert batches == [4, 4, 8, 8]
