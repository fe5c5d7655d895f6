"""What the heartbeat notes of a long training: how much is done and how long the rest will take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from seqmix.serve.trainer import process
from seqmix.serve.trainer.process import Heartbeat


class Hall:
    """A heartbeat with a clock that stands still between its ticks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.notes = 100.0, list[dict[str, Any]]()
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now)
        monkeypatch.setattr(process, "time", clock)
        store = SimpleNamespace(write_note=lambda key, note: self.notes.append(note))
        self.heart = Heartbeat(SimpleNamespace(store=store), lambda job: job())

    def tick(self, seconds: float) -> None:
        self.now += seconds

    @property
    def state(self) -> tuple[str, float | None, float | None]:
        return self.heart.phase, self.heart.share, self.heart.left


@pytest.fixture
def hall(monkeypatch: pytest.MonkeyPatch) -> Hall:
    return Hall(monkeypatch)


def test_a_training_has_a_share_and_a_time_left_from_its_first_step(hall):
    progress = hall.heart.watch("the encoder reads your text")
    hall.tick(2)
    progress(1, 10, 0.5)

    assert hall.state == ("the encoder reads your text", 0.1, 18)
    hall.tick(4)
    progress(2, 10, 0.5)
    assert hall.state[1:] == (0.2, 24)
    hall.heart.note()
    assert (hall.notes[-1]["share"], hall.notes[-1]["left"]) == (0.2, 24)


def test_another_phase_begins_without_a_share(hall):
    progress = hall.heart.watch("training")
    hall.tick(1)
    progress(10, 10, 0.5)
    assert hall.state == ("training", 1, 0)
    hall.heart.report("ranking")

    assert hall.state == ("ranking", None, None)
    assert (hall.notes[-1]["phase"], hall.notes[-1]["share"]) == ("ranking", None)


def test_a_model_in_between_is_not_time_of_the_stage(hall):
    stage = hall.heart.watch("teacher 1 of 3")
    hall.tick(2)
    stage(1, 10, 0.5)
    for done in range(2, 6):
        hall.heart.report("mixing")
        model = hall.heart.watch("training")
        hall.tick(7)
        model(1, 2, 0.5)
        assert hall.state == ("training", 0.5, 7)
        hall.tick(53)
        stage(done, 10, 0.5)

        assert hall.state == ("teacher 1 of 3", done / 10, 2 * (10 - done))
    hall.tick(6)
    stage(6, 10, 0.5)
    assert hall.state[2] == 16, "two steps were timed, of 2 and of 6 seconds"


def test_a_training_that_goes_on_from_a_checkpoint_is_timed_from_there(hall):
    progress = hall.heart.watch("the encoder reads your text")
    hall.tick(3)
    progress(51, 60, 0.5)

    assert hall.state[1:] == (51 / 60, 27)
    hall.tick(3)
    progress(52, 60, 0.5)
    assert hall.state[2] == 24


def test_before_the_first_step_nobody_knows_how_long(hall):
    progress = hall.heart.watch("the teachers tag your text")
    progress(0, 10, 0.0)

    assert hall.state == ("the teachers tag your text", 0, None)
