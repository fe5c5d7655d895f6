"""A model folder that changes under a server: what answers, and what is said about it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from seqmix.app.commands.train.serve import load_model
from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError
from seqmix.serve.predictor.model import ServedModel, ServedTagger, state_of
from seqmix.tagger import Tagger
from tests.support import tiny


@pytest.fixture(scope="module")
def newer(tagger_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same tagger, trained on."""
    tagger = Tagger.load(tagger_folder, "cpu")
    folder = tmp_path_factory.mktemp("newer") / "ner"
    tagger.fit(tiny.toy()[:4], np.random.default_rng(1), tagger.tag_set, warm=True).save(folder)
    return folder


@pytest.fixture
def folder(tagger_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tagger_folder, tmp_path / "ner"))


def look_twice(served: ServedModel) -> str:
    served.check()
    served.check()
    return served.current.version


def tag(model: ServedTagger) -> float:
    ((path,),) = model.best_paths([Sentence("a", ("Ada", "left", "Oslo"))], 1)
    return path.probability


def test_a_folder_that_is_replaced_takes_over_once(folder: Path, newer: Path) -> None:
    served = ServedModel(folder, load_model)
    old = served.current
    assert look_twice(served) == old.version and served.current is old

    Tagger.load(newer, "cpu").save(folder)

    served.check()
    assert served.current is old  # it might still be changing
    served.check()
    assert served.current.version == load_model(newer).version != old.version
    assert tag(served.current) != tag(old)
    assert (served.trouble, served.reloads.done, served.reloads.failed) == (None, 1, 0)
    now = served.current
    assert look_twice(served) and served.current is now


@pytest.mark.parametrize("last", ["tagger.json", "model.safetensors", "config.json"])
def test_a_folder_that_is_copied_file_by_file_is_never_read_by_halves(
    folder: Path, newer: Path, last: str
) -> None:
    served = ServedModel(folder, load_model)
    wanted = load_model(newer)
    whole = {served.current.version: tag(served.current), wanted.version: tag(wanted)}
    names = sorted((file.name for file in newer.iterdir()), key=lambda name: name == last)

    for name in names:
        content = (newer / name).read_bytes()
        for size in (len(content) // 2, len(content)):
            (folder / name).write_bytes(content[:size])
            assert whole[look_twice(served)] == tag(served.current)

    assert (served.current.version, served.trouble) == (wanted.version, None)


def test_a_broken_model_is_reported_once_and_the_old_one_answers(folder: Path) -> None:
    served = ServedModel(folder, load_model)
    old, before = served.current, tag(served.current)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))

    for _ in range(3):
        look_twice(served)
    assert served.current is old and tag(old) == before
    assert served.trouble is not None and "checksum" in served.trouble
    assert served.reloads.failed == 1

    (folder / "model.safetensors").write_bytes(weights)
    look_twice(served)
    assert served.trouble is None and served.current.version == old.version


def test_a_folder_that_is_gone_is_reported_and_comes_back(folder: Path) -> None:
    served = ServedModel(folder, load_model)
    folder.rename(folder.with_name("away"))
    old = served.current

    look_twice(served)
    assert served.current is old and "tagger" in (served.trouble or "")
    folder.with_name("away").rename(folder)
    look_twice(served)
    assert served.trouble is None


def test_a_folder_that_changes_while_it_is_read_is_read_again(folder: Path, newer: Path) -> None:
    loads = []

    def load(path: Path) -> ServedTagger:
        model = load_model(path)
        loads.append(model.version)
        if len(loads) == 2:
            shutil.copytree(newer, path, dirs_exist_ok=True)
        return model

    served = ServedModel(folder, load)
    old = served.current
    (folder / "model.safetensors").touch()

    look_twice(served)
    assert len(loads) == 2 and served.current is old
    assert look_twice(served) == loads[-1] == load_model(newer).version


def test_a_model_that_cannot_tag_does_not_take_over(folder: Path) -> None:
    def load(path: Path) -> ServedTagger:
        model = load_model(path)
        if (path / "tagger.json").stat().st_mtime_ns == 0:
            return ServedTagger("empty", (), lambda sentences, n: [[][0]])
        return model

    served = ServedModel(folder, load)
    os.utime(folder / "tagger.json", ns=(0, 0))
    assert look_twice(served) != "empty" and served.trouble == "list index out of range"


def test_a_project_serves_its_newest_model(folder: Path, newer: Path, tmp_path: Path) -> None:
    models = tmp_path / "project" / "models"
    models.mkdir(parents=True)
    (tmp_path / "project" / "project.toml").write_text("")
    with pytest.raises(ModelError, match="no model yet"):
        ServedModel(tmp_path / "project", load_model)
    for number, source in (("001", folder), ("002", newer)):
        shutil.copytree(source, models / number)
        (models / "latest").write_text(f"{number}\n")
        if number == "001":
            served = ServedModel(tmp_path / "project", load_model)
    shutil.rmtree(models / "001")

    assert look_twice(served) == load_model(newer).version
    assert state_of(tmp_path / "project")[0] == models / "002"
