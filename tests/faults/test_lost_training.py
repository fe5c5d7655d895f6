"""A loss that is no number, in each command that trains.

One line names the batch, and the last good model stays in use.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from seqmix.serve.project import open_project
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.rankings import read_generations
from seqmix.tagger import Tagger
from seqmix.tagger.network import Network
from tests.faults.scenes import Background, Scene, Simulate, Stage, Train


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Stage:
    return Stage.set_up(tmp_path_factory.mktemp("stage"))


@pytest.fixture
def poison(monkeypatch):
    """`poison(n)`: from the n-th step on, every loss is NaN; `poison(None)`: no longer."""
    real = Network.loss

    def spoil(step: int | None) -> None:
        count = 0

        def loss(self, scores, rows, lengths, weights=None):
            nonlocal count
            count += 1
            return real(self, scores, rows, lengths, weights) * (
                float("nan") if step is not None and count >= step else 1.0
            )

        monkeypatch.setattr(Network, "loss", loss)

    return spoil


def lost(scene: Scene, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert scene.command(root) == 2
    line = capfd.readouterr().err.splitlines()[-1]
    assert (
        line.startswith("error: the loss became nan at step ") and ", whose sentences are " in line
    )


def test_a_simulation_keeps_its_finished_rounds_and_goes_on(
    stage: Stage, tmp_path: Path, poison, capfd
) -> None:
    scene = Simulate(stage)
    for name in ("whole", "lost"):
        (tmp_path / name).mkdir()
    scene.command(tmp_path / "whole")
    poison(5)
    lost(scene, tmp_path / "lost", capfd)

    assert scene.complaints(tmp_path / "lost", "round 0 of 2\n") == []
    last = max((tmp_path / "lost" / "run" / "rounds").glob("*/model"))
    assert Tagger.load(last).tag_set is not None
    poison(None)
    assert scene.command(tmp_path / "lost") == 0
    assert scene.result(tmp_path / "lost") == scene.result(tmp_path / "whole")


def test_training_over_an_old_model_leaves_it(stage: Stage, tmp_path: Path, poison, capfd) -> None:
    scene = Train(stage, over=True)
    scene.prepare(tmp_path)
    before = scene.result(tmp_path)
    poison(2)

    lost(scene, tmp_path, capfd)

    assert scene.result(tmp_path) == before and Tagger.load(tmp_path / "ner").tag_set is not None


def test_a_project_goes_on_with_its_last_model(stage: Stage, tmp_path: Path, poison, capfd) -> None:
    scene = Background(stage)
    scene.prepare(tmp_path)
    assert scene.command(tmp_path) == 0
    first = scene.result(tmp_path)
    with open_project(tmp_path / "project") as own:
        for id in unlabeled_ids(own.store, 8):
            save_answer(own.store, id, 1, "label", [])
    poison(3)

    lost(scene, tmp_path, capfd)

    with open_project(tmp_path / "project") as own:
        last = read_generations(own.store, 1)[0]
        assert last.number == 3 and last.model is not None
        weights = tmp_path / "project" / last.model / "model.safetensors"
        assert hashlib.sha256(weights.read_bytes()).hexdigest() == first["003/model.safetensors"]
    poison(None)
    assert scene.command(tmp_path) == 0
    with open_project(tmp_path / "project") as own:
        assert (
            read_generations(own.store, 1)[0].number == 5
        )  # one that was due, one of new teachers
