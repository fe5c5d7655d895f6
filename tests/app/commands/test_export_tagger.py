"""What `seqmix export` takes for a tagger, and where it writes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.data.latest_model import name_newest
from seqmix.serve.project import create_project
from seqmix.serve.settings import ProjectSettings
from seqmix.tagger import Settings, Tagger
from tests.support import tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    encoder = tiny.write_bert(folder / "bert")
    tagger = Tagger(encoder, "linear", Settings(steps=2, batch_size=4))
    tagger.fit(tiny.toy(8), np.random.default_rng(0)).save(folder / "ner")
    return folder / "ner"


@pytest.fixture(scope="module")
def project(tmp_path_factory, model) -> Path:
    folder = tmp_path_factory.mktemp("projects") / "names"
    create_project(folder, tiny.toy(4), ProjectSettings("names", ("PER", "LOC")))
    shutil.copytree(model, folder / "models" / "003")
    name_newest(folder / "models", "003")
    return folder


def test_the_place_may_stand_without_its_option(model, tmp_path):
    assert run(["export", str(model), str(tmp_path / "hf"), "--to", "hf"]) == 0
    assert (tmp_path / "hf" / "decode.py").is_file()


@pytest.mark.parametrize(
    ("places", "message"),
    [([], "say where to write"), (["a", "--out", "b"], "give OUT or --out, not both; got a and b")],
)
def test_there_is_one_place(model, places, message, capsys):
    assert run(["export", str(model), *places, "--to", "hf"]) == 2
    assert message in capsys.readouterr().err


def test_a_name_that_ends_in_onnx_says_what_to_write(model, project, tmp_path):
    pytest.importorskip("onnxscript", reason="needs the extra onnx")
    for number, source in enumerate((model, project)):
        assert run(["export", str(source), "--out", str(tmp_path / f"{number}.onnx")]) == 0

    assert (tmp_path / "0.onnx").stat().st_size == (tmp_path / "1.onnx").stat().st_size


def test_hf_of_a_project_is_its_labels_and_of_its_newest_model_the_tagger(project, tmp_path):
    pytest.importorskip("datasets", reason="needs the extra hf")
    latest = project / "models" / "latest"
    assert (
        run(["export", str(project), "--to", "hf", "--split", "all", str(tmp_path / "labels")]) == 0
    )
    assert run(["export", str(latest), "--to", "hf", "--out", str(tmp_path / "tagger")]) == 0

    assert (tmp_path / "labels" / "dataset_info.json").is_file()
    assert (tmp_path / "tagger" / "transitions.json").is_file()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("ner.onnx", "cannot be exported; give the folder of a tagger that seqmix train wrote"),
        ("hf:ner", "hf:ner cannot be exported"),
        ("nowhere", "nor a tagger, which seqmix train writes"),
    ],
)
def test_what_cannot_be_exported_is_named(source, message, tmp_path, capsys):
    assert run(["export", source, "--to", "hf", "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("to", "got"), [([], ""), (["--to", "conll"], "; got 'conll'")])
def test_what_a_tagger_can_become_is_named(model, to, got, tmp_path, capsys):
    assert run(["export", str(model), *to, "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.endswith(f"or --to spacy-onnx{got}\n")


def test_a_project_without_a_tagger_says_so(tmp_path, capsys):
    settings = ProjectSettings("names", ("PER", "LOC"))
    create_project(tmp_path / "new", tiny.toy(4), settings)

    assert run(["export", str(tmp_path / "new"), "--out", str(tmp_path / "ner.onnx")]) == 2
    assert "has no model yet" in capsys.readouterr().err
