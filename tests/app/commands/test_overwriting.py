"""No command writes over what is not its own, or over what it reads."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.tagger import Settings, Tagger
from tests.support import tiny

FOLDERS = ("hf", "spacy", "spacy-onnx")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    encoder = tiny.write_bert(folder / "bert")
    tagger = Tagger(encoder, "linear", Settings(steps=2, batch_size=4))
    tagger.fit(tiny.toy(8), np.random.default_rng(0)).save(folder / "ner")
    return folder / "ner"


@pytest.fixture
def mine(tmp_path) -> Path:
    """A folder of the user's, which may be a project."""
    folder = tmp_path / "names"
    folder.mkdir()
    (folder / "project.toml").write_text("mine")
    return folder


def needed(target: str) -> None:
    if target.startswith("spacy"):
        pytest.importorskip("spacy", reason="needs the extra spacy")
    if target.endswith("onnx"):
        pytest.importorskip("onnxscript", reason="needs the extra onnx")


def content(place: Path) -> dict[str, bytes]:
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    return {str(file): file.read_bytes() for file in files if file.is_file()}


@pytest.mark.parametrize("target", FOLDERS)
def test_an_export_replaces_its_like_and_no_other_folder(model, mine, tmp_path, target, capsys):
    needed(target)
    command = ["export", str(model), "--to", target, "--out"]

    assert run([*command, str(mine)]) == 2
    assert "name a new or empty one; found 'project.toml'" in capsys.readouterr().err
    assert content(mine) == {str(mine / "project.toml"): b"mine"}

    assert [run([*command, str(tmp_path / "out")]) for _ in range(2)] == [0, 0]


def test_training_replaces_a_tagger_and_no_other_folder(model, mine, tmp_path, capsys):
    formats.write(tiny.toy(4), tmp_path / "train.conll")
    command = ["train", str(tmp_path / "train.conll"), "--encoder", str(model.parent / "bert")]

    assert run([*command, "--out", str(mine)]) == 2
    said = capsys.readouterr().err
    assert "found 'project.toml'" in said and "training on" not in said
    assert content(mine) == {str(mine / "project.toml"): b"mine"}

    out = ["--steps", "1", "--out", str(tmp_path / "new")]
    assert [run([*command, *out]) for _ in range(2)] == [0, 0]


def test_a_tagger_can_be_saved_where_it_was_loaded_from(model, tmp_path):
    tagger = Tagger.load(model, "cpu")
    tagger.save(tmp_path / "ner")
    Tagger.load(tmp_path / "ner", "cpu").save(tmp_path / "ner")

    assert Tagger.load(tmp_path / "ner", "cpu").tags == tagger.tags


def test_an_onnx_file_replaces_its_like_and_no_other_file(model, mine, tmp_path, capsys):
    needed("onnx")
    command = ["export", str(model), "--to", "onnx", "--out"]

    assert run([*command, str(mine / "project.toml")]) == 2
    assert "not a tagger exported by seqmix, and is kept" in capsys.readouterr().err
    assert content(mine) == {str(mine / "project.toml"): b"mine"}

    assert [run([*command, str(tmp_path / "ner.onnx")]) for _ in range(2)] == [0, 0]


@pytest.mark.parametrize("target", [*FOLDERS, "onnx"])
@pytest.mark.parametrize("inside", ["", "hf"])
def test_an_export_does_not_erase_the_tagger_that_it_reads(model, target, inside, capsys):
    before = content(model)

    assert run(["export", str(model), "--to", target, "--out", str(model / inside)]) == 2

    assert "is read; name another place" in capsys.readouterr().err
    assert content(model) == before


READERS = {
    "convert": ["convert", "{data}", "{out}"],
    "predict": ["predict", "{model}", "{data}", "--out", "{out}"],
    "confidence": ["predict", "{model}", "{data}", "--confidence", "--out", "{out}"],
    "augment": ["augment", "{data}", "--variant", "mention", "--out", "{out}"],
    "page": ["augment", "{data}", "--variant", "mention", "--explain", "{out}.html"],
    "rank": ["rank", "{data}", "--model", "{model}", "--out", "{out}"],
    "train": ["train", "{data}", "--out", "{out}"],
    "adapt": ["adapt", "{data}", "--out", "{out}"],
}


def call(name: str, **places: Path) -> int:
    return run([part.format(**places) for part in READERS[name]])


@pytest.mark.parametrize("name", READERS)
def test_what_a_command_reads_is_not_written_over(model, tmp_path, name, capsys):
    ending = ".html" if name == "page" else ""
    data = tmp_path / f"a.jsonl{ending}"
    formats.write(tiny.toy(6), data, "jsonl-tokens")
    before = content(data)

    assert call(name, data=data, model=model, out=tmp_path / "a.jsonl") == 2

    assert "a.jsonl" in (said := capsys.readouterr().err) and "is read; name another place" in said
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", ["convert", "predict", "augment", "page", "rank"])
def test_a_file_of_another_kind_is_kept(model, tmp_path, name, capsys):
    formats.write(tiny.toy(6), tmp_path / "data.conll")
    out = tmp_path / ("a" if name == "page" else "a.jsonl")
    (tmp_path / "a.html").write_text("my notes")
    (tmp_path / "a.jsonl").write_text('{"my": "notes"}')
    before = content(tmp_path)

    assert call(name, data=tmp_path / "data.conll", model=model, out=out) == 2
    assert "and is kept; name another" in capsys.readouterr().err
    assert content(tmp_path) == before

    (tmp_path / "a.html").unlink()
    (tmp_path / "a.jsonl").unlink()
    again = [call(name, data=tmp_path / "data.conll", model=model, out=out) for _ in range(2)]
    assert again == [0, 0]


def test_a_folder_with_the_name_of_a_jobs_is_kept(model, tmp_path, capsys):
    formats.write(tiny.toy(6), tmp_path / "data.conll")
    (tmp_path / "top.jsonl.parts").mkdir()
    (tmp_path / "top.jsonl.parts" / "mine.txt").write_text("mine")

    assert call("rank", data=tmp_path / "data.conll", model=model, out=tmp_path / "top.jsonl") == 2

    assert "holds other files" in capsys.readouterr().err
    assert (tmp_path / "top.jsonl.parts" / "mine.txt").read_text() == "mine"


def test_a_project_given_as_the_first_tagger_lends_its_newest_one(model, tmp_path):
    from seqmix.app.commands.label.labelstudio import build_backend

    (tmp_path / "old" / "models").mkdir(parents=True)
    shutil.copytree(model, tmp_path / "old" / "models" / "001")
    (tmp_path / "old" / "project.toml").touch()

    build_backend(tmp_path / "new", {}, tmp_path / "old").parts.create(("PER",), "names")
    with build_backend(tmp_path / "new", {}, tmp_path / "old").parts.open() as project:
        copied = project.models / "start"

        assert {f.name for f in copied.iterdir()} == {f.name for f in model.iterdir()}
