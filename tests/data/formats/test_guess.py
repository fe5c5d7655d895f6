"""Which format a file has, when nobody says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.errors import DataError

WORD = "1\tLena\t_\t_\t_\t_\t_\t_\t_\t_\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.conll", "", "conll"),
        ("a.TSV", "", "conll"),
        ("a.conllu", "", "conllu"),
        ("a.spacy", "", "docbin"),
        ("a.jsonl", "", "jsonl-tokens"),
        ("a.json", "", "labelstudio"),
        ("a.sgm", "", "ace05"),
        ("a.apf.xml", "", "ace05"),
        ("a.ann", "", "brat"),
        ("a.txt", "Lena left.\nShe went to Oslo by train.\n", "text"),
        ("a.txt", "Hello world\n", "text"),
        ("a.txt", "Lena B-PER\nleft O\n\nOslo B-LOC\n", "conll"),
        ("a.txt", "\ufeffLena\tB-PER\r\nleft\tO\r\n\r\n", "conll"),
        ("a.txt", "-DOCSTART- -X- -X- O\n\nLena NNP B-NP B-PER\n", "conll"),
        ("a.txt", "Lena NNP\nleft VBD\n" * 15, "conll"),
        ("a.txt", "[\tO\nLena\tB-PER\n", "conll"),
        ("a.txt", "{ O\nLena B-PER\n", "conll"),
        ("a.txt", "a\u00a0b O\nLena B-PER\n", "conll"),
        ("a", f"# sent_id = 1\n# text = Lena\n{WORD}\n", "conllu"),
        ("a", WORD, "conllu"),
        ("a", "", "conll"),
    ],
)
def test_names_and_columns(name: str, content: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content.encode())

    assert formats.guess(tmp_path / name).name == expected


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"tokens": ["a"], "ner_tags": ["O"]}, "jsonl-tokens"),
        ({"tokens": ["a"], "text": "a", "offsets": [[0, 1]]}, "jsonl-tokens"),
        ({"text": "a"}, "jsonl-spans"),
        ({"text": "a", "spans": []}, "jsonl-spans"),
        ({"text": "a", "tokens": [[0, 1]], "spans": []}, "jsonl-spans"),
        ({"text": "a", "tokens": [[0, 1]], "tags": ["O"]}, "jsonl-spans"),
        (
            {"text": "a", "tokens": [{"text": "a", "start": 0, "end": 1, "id": 0}], "spans": []},
            "prodigy",
        ),
        ({"text": "a", "spans": [], "answer": "accept"}, "prodigy"),
        ({"text": "a", "label": []}, "doccano"),
        ({"text": "a", "labels": []}, "doccano"),
        ({"text": "a", "entities": [], "relations": []}, "doccano"),
        ({"text": "a", "tokens": [[0, 1]], "label": []}, "doccano"),
        ({"data": {"text": "a"}}, "labelstudio"),
        ({"id": 1, "data": {"text": "a"}, "annotations": [], "predictions": []}, "labelstudio"),
    ],
)
@pytest.mark.parametrize("shape", ["a.jsonl", "a.json", "a", "array.json", "array"])
def test_records(record: dict[str, object], expected: str, shape: str, tmp_path: Path) -> None:
    content = (
        json.dumps([record], indent=1) if shape.startswith("array") else json.dumps(record) + "\n"
    )
    (tmp_path / shape).write_text(content)

    assert formats.guess(tmp_path / shape).name == expected


def test_a_first_record_that_tells_nothing_is_not_the_last_word(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a"}\n{"text": "a", "label": [[0, 1, "X"]]}\n')

    assert formats.guess(tmp_path / "a.jsonl").name == "doccano"


def test_one_huge_line_is_guessed_too(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"id": "x" * 200_000, "data": {"text": "a"}}]))

    assert formats.guess(tmp_path / "a.json").name == "labelstudio"


def test_a_text_with_annotations_beside_it_is_brat(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Lena left\n")
    assert formats.guess(tmp_path / "a.txt").name == "text"

    (tmp_path / "a.ann").write_text("")
    assert formats.guess(tmp_path / "a.txt").name == "brat"
    assert formats.guess(tmp_path).name == "brat"


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("sub/x.ann", "brat"),
        ("nw/x.apf.xml", "ace05"),
        ("dataset_dict.json", "hf"),
        ("state.json", "hf"),
    ],
)
def test_folders(file: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("")

    assert formats.guess(tmp_path).name == expected


def test_what_cannot_be_guessed_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a.jsonx").write_text('{"question": 1}\n')

    with pytest.raises(
        DataError, match=r"no known format has such records; name one of conll, .*found '\{"
    ):
        formats.guess(tmp_path / "a.jsonx")
    with pytest.raises(
        DataError, match="no known format is recognized in this folder; name one of conll, "
    ):
        formats.guess(tmp_path)
    with pytest.raises(DataError, match="there is no format 'xml'; there are conll, "):
        formats.read(tmp_path / "a.jsonx", "xml")
    with pytest.raises(DataError, match="which format should it have"):
        formats.write([], tmp_path / "a.xyz")
