"""brat standoff."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.formats.brat import file_name
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError

TEXT = "Lena left Oslo.\n\nShe saw New York.\n"
ANN = (
    "T1\tPER 0 4\tLena\nR1\tLives-In Arg1:T1 Arg2:T2\nT2\tLOC 10 14\tOslo\n"
    "#1\tAnnotatorNotes T1\tx\nT3\tLOC 25 33\tNew York\n"
)


def put(tmp_path: Path, text: str = TEXT, ann: str | None = ANN, name: str = "a") -> Path:
    (tmp_path / f"{name}.txt").write_bytes(text.encode())
    if ann is not None:
        (tmp_path / f"{name}.ann").write_bytes(ann.encode())
    return tmp_path


def read(path: Path, **options: object) -> list[Sentence]:
    return list(formats.read(path, options=Options(**options)))


def test_each_line_is_a_sentence_with_its_own_offsets(tmp_path: Path) -> None:
    first, second = read(put(tmp_path))

    assert (first.id, first.text, first.tags) == (
        "a:1",
        "Lena left Oslo.",
        ("B-PER", "O", "B-LOC", "O"),
    )
    assert (second.id, second.text, second.tags) == (
        "a:3",
        "She saw New York.",
        ("O", "O", "B-LOC", "I-LOC", "O"),
    )


@pytest.mark.parametrize("name", ["a.txt", "a.ann"])
def test_one_file_of_a_pair_stands_for_both(name: str, tmp_path: Path) -> None:
    assert len(read(put(tmp_path) / name)) == 2


def test_a_document_without_annotations_is_unlabeled_and_one_with_none_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "b").mkdir()
    put(tmp_path, ann=None, name="b/x")
    actual = list(formats.read(put(tmp_path, ann="", name="a"), "brat"))

    assert [(s.id, s.labeled) for s in actual] == [
        ("a:1", True),
        ("a:3", True),
        ("b/x:1", False),
        ("b/x:3", False),
    ]


def test_offsets_count_both_characters_of_a_line_end_and_a_byte_order_mark(tmp_path: Path) -> None:
    put(tmp_path, "\ufeffLena\r\nleft Oslo\r\n", "T1\tPER 1 5\tLena\nT2\tLOC 12 16\tOslo\n")

    assert [(s.tokens, s.tags) for s in read(tmp_path)] == [
        (("Lena",), ("B-PER",)),
        (("left", "Oslo"), ("O", "B-LOC")),
    ]


def test_a_span_in_pieces_follows_the_option(tmp_path: Path) -> None:
    put(tmp_path, "left and right lung\n", "T1\tORGAN 0 4;15 19\tleft lung\n")

    with pytest.raises(TagError, match=r"a\.ann:1: .* a span in pieces"):
        read(tmp_path)
    options = Options(misaligned="expand")
    assert next(formats.read(tmp_path, options=options)).tags == (
        "B-ORGAN",
        "I-ORGAN",
        "I-ORGAN",
        "I-ORGAN",
    )
    assert options.counts == {"discontinuous": 1}
    assert read(tmp_path, misaligned="drop")[0].tags == ("O",) * 4


def test_a_span_over_a_line_end_is_an_error_or_dropped(tmp_path: Path) -> None:
    put(tmp_path, "New\nYork\n", "T1\tLOC 0 8\tNew York\n")

    with pytest.raises(TagError, match=r"a\.ann:1: a span must end on its line"):
        read(tmp_path)
    assert [s.tags for s in read(tmp_path, misaligned="drop")] == [("O",), ("O",)]


@pytest.mark.parametrize(
    ("ann", "match"),
    [
        ("T1\tPER 0\tLena", "expected T, a number, a tab"),
        ("T1 PER 0 4 Lena", "expected T, a number, a tab"),
        ("T1\tPER x 4\tLena", "expected T, a number, a tab"),
        ("T1\tPER 0 99\tLena", "inside its text of 35 characters"),
        ("T1\tPER 4 4\t", "inside its text"),
        ("T1\tPER 0 4\tLene", "expected 'Lene' at 0-4"),
        ("T1\tPER 0 3\tLen", "must start and end where tokens do"),
        ("T1\tPER 16 17", "must end on its line.*found 'PER 16 17'"),
    ],
)
def test_a_broken_annotation_is_named_with_its_line(ann: str, match: str, tmp_path: Path) -> None:
    put(tmp_path, ann=f"T9\tLOC 10 14\tOslo\n{ann}\n")

    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path)
    assert (caught.value.path, caught.value.line) == (tmp_path / "a.ann", 2)


def test_annotations_without_their_text_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.ann").write_text("")

    with pytest.raises(DataError, match=r"expected the text a\.txt beside"):
        read(tmp_path)


def test_bytes_that_are_no_utf8_are_named(tmp_path: Path) -> None:
    put(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"Lena\nleft \xe9\n")

    with pytest.raises(DataError, match=r"a\.txt:2: expected UTF-8"):
        read(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"\n\xe9")
    with pytest.raises(DataError, match=r"a\.txt:2: expected UTF-8"):
        read(tmp_path)


def test_sentences_are_grouped_by_document_and_labels(tmp_path: Path) -> None:
    sentences = [
        Sentence.from_text("Lena left", id).with_tags(["B-PER", "O"])
        for id in ("d:1", "d:2", "e", "d:3")
    ]
    formats.write([*sentences, Sentence.from_text("unseen", "d:4")], tmp_path / "out", "brat")

    assert {file.name: file.read_text() for file in (tmp_path / "out").iterdir()} == {
        "d.txt": "Lena left\nLena left\n",
        "d.ann": "T1\tPER 0 4\tLena\nT2\tPER 10 14\tLena\n",
        "e.txt": "Lena left\n",
        "e.ann": "T1\tPER 0 4\tLena\n",
        "d-2.txt": "Lena left\n",
        "d-2.ann": "T1\tPER 0 4\tLena\n",
        "d-3.txt": "unseen\n",
    }


def test_ids_never_lead_out_of_the_folder(tmp_path: Path) -> None:
    ids = [
        "../../etc/passwd",
        "..",
        ".",
        "",
        "/abs",
        "a/b:1",
        "C:\\x",
        "\x00",
        ".hidden",
        "é" * 300,
        "nul\n",
        "-",
        "d-2",
        "d",
        "d",
    ]
    formats.write(
        [Sentence.from_text("Lena left", id).with_tags(["B-PER", "O"]) for id in ids],
        tmp_path / "in" / "out",
        "brat",
    )

    assert [file.name for file in tmp_path.iterdir()] == ["in"]
    assert [file.name for file in (tmp_path / "in").iterdir()] == ["out"]
    assert all(file.is_file() for file in (tmp_path / "in" / "out").iterdir())
    assert sum(
        len(line) > 0
        for file in (tmp_path / "in" / "out").glob("*.txt")
        for line in file.read_text().split("\n")
    ) == len(ids)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_file_name_is_always_safe(document: str) -> None:
    name = file_name(document)

    assert name
    assert not name.startswith(".")
    assert len(name) <= 120
    assert all(c.isascii() and (c.isalnum() or c in "._-%") for c in name)


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("dear")

    with pytest.raises(DataError, match=r"holds other files.*thesis\.tex"):
        formats.write([Sentence.from_text("b", "a")], tmp_path / "home", "brat")
    assert (tmp_path / "home" / "thesis.tex").read_text() == "dear"


def test_a_file_is_never_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("dear")

    with pytest.raises(DataError, match="a file has the name of the folder"):
        formats.write([Sentence.from_text("b", "a")], tmp_path / "x", "brat")
    with pytest.raises(DataError, match="name a folder"):
        formats.write([Sentence.from_text("b", "a")], tmp_path / "y.ann", "brat")
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


def test_a_label_with_white_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TagError, match="a label with white space"):
        formats.write([Sentence("x", ("a",), ("B-creative work",))], tmp_path / "out", "brat")


def test_line_ends_in_a_text_become_spaces(tmp_path: Path) -> None:
    formats.write(
        [Sentence.from_text("Lena\nleft", "x").with_tags(["O", "B-X"])], tmp_path / "out", "brat"
    )

    assert [(s.tokens, s.tags) for s in formats.read(tmp_path / "out")] == [
        (("Lena", "left"), ("O", "B-X"))
    ]
