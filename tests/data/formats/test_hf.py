"""Hugging Face datasets on disk."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError

datasets = pytest.importorskip("datasets", reason="the format hf needs datasets")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    datasets.disable_progress_bars()


def saved(path: Path, columns: dict[str, list[object]], features: object = None) -> Path:
    datasets.Dataset.from_dict(columns, features=features).save_to_disk(str(path))
    return path


def labels(*names: str) -> object:
    return datasets.Sequence(datasets.ClassLabel(names=list(names)))


@pytest.mark.parametrize("key", ["ner_tags", "tags", "pos_tags"])
def test_integers_are_decoded_by_the_names_the_dataset_has(key: str, tmp_path: Path) -> None:
    features = datasets.Features(
        {"tokens": datasets.Sequence(datasets.Value("string")), key: labels("O", "B-PER")}
    )
    path = saved(
        tmp_path / "d", {"tokens": [["Lena", "left"], ["x"]], key: [[1, 0], [-1]]}, features
    )

    assert list(formats.read(path)) == [
        Sentence("d:1", ("Lena", "left"), ("B-PER", "O")),
        Sentence("d:2", ("x",)),
    ]


def test_strings_are_taken_as_they_are_and_other_columns_left_alone(tmp_path: Path) -> None:
    path = saved(
        tmp_path / "d", {"id": [7], "tokens": [["a", ""]], "tags": [["B-X", "O"]], "image": [b"x"]}
    )

    assert list(formats.read(path)) == [Sentence("7", ("a", "\ufffd"), ("B-X", "O"))]


def test_hard_tags_are_written_as_class_labels(tmp_path: Path) -> None:
    formats.write(
        [Sentence("x", ("Lena", "left"), ("B-PER", "O")), Sentence("y", ("a",))],
        tmp_path / "d",
        "hf",
    )
    data = datasets.load_from_disk(str(tmp_path / "d"))

    assert data.features["ner_tags"].feature.names == ["O", "B-PER"]
    assert data[0]["ner_tags"] == [1, 0]
    assert data[1]["ner_tags"] is None
    assert sorted(file.name for file in (tmp_path / "d").iterdir()) == [
        "data-00000-of-00001.arrow",
        "dataset_info.json",
        "state.json",
    ]


def test_a_folder_of_splits_asks_for_one_of_them(tmp_path: Path) -> None:
    split = datasets.Dataset.from_dict({"tokens": [["a"]]})
    datasets.DatasetDict(train=split, test=split).save_to_disk(str(tmp_path / "d"))

    assert formats.guess(tmp_path / "d").name == "hf"
    with pytest.raises(DataError, match="name one of its subfolders: test, train"):
        list(formats.read(tmp_path / "d"))
    assert [s.tokens for s in formats.read(tmp_path / "d" / "train")] == [("a",)]


@pytest.mark.parametrize(
    ("columns", "error", "match"),
    [
        ({"words": [["a"]]}, DataError, 'expected a column "tokens".*words'),
        ({"tokens": ["a b"]}, DataError, '"tokens" to be a list of strings'),
        ({"tokens": [["a"]], "tags": ["O"]}, DataError, '"tags" to be a list'),
        (
            {"tokens": [["a"]], "tags": [[4]]},
            TagError,
            "an integer that the dataset's ClassLabel names",
        ),
        ({"tokens": [["a"]], "tags": [["O", "O"]]}, TagError, "1 tokens and 2 tag rows"),
    ],
)
def test_columns_of_another_kind_are_named(
    columns: dict[str, list[object]], error: type[DataError], match: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=match) as caught:
        list(formats.read(saved(tmp_path / "d", columns)))
    assert caught.value.path == tmp_path / "d"


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear")

    with pytest.raises(DataError, match="holds other files"):
        formats.write([], tmp_path, "hf")
    assert (tmp_path / "thesis.tex").read_text() == "dear"


def test_progress_bars_are_left_as_they_were(tmp_path: Path) -> None:
    datasets.enable_progress_bars()
    formats.write([Sentence("x", ("a",), ("O",))], tmp_path / "d", "hf")

    assert not datasets.are_progress_bars_disabled()
