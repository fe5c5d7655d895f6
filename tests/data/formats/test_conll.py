"""CoNLL columns, with the traps real files set."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError


def read(tmp_path: Path, content: str | bytes, **options: object) -> list[Sentence]:
    path = tmp_path / "a.conll"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(formats.read(path, "conll", Options(**options)))


LENA = [(("Lena", "left"), ("B-PER", "O"))]


@pytest.mark.parametrize(
    "content",
    [
        "Lena B-PER\nleft O\n\n",
        "Lena\tB-PER\nleft\tO\n\n",
        "Lena   B-PER\nleft O\n",
        "Lena NNP x B-PER\nleft VBD y O",
        "\n\n \n\t\nLena B-PER\nleft O\n\n\n",
        "Lena B-PER\r\nleft O\r\n\r\n",
        "\ufeffLena B-PER\nleft O\n",
        "-DOCSTART- O\n\nLena B-PER\nleft O\n",
        "-DOCSTART- -X- O\nLena x B-PER\nleft x O\n",
        "Lena I-PER\nleft O\n",
        "Lena S-PER\nleft O\n",
        "Lena U-PER\nleft O\n",
    ],
)
def test_the_same_sentence_in_all_its_spellings(content: str, tmp_path: Path) -> None:
    assert [(s.tokens, s.tags) for s in read(tmp_path, content)] == LENA


def test_ids_count_sentences_and_name_the_file(tmp_path: Path) -> None:
    assert [s.id for s in read(tmp_path, "-DOCSTART- O\n\na O\n\n\nb O")] == ["a:1", "a:2"]


def test_a_hash_is_a_token_unless_it_is_said_to_start_a_comment(tmp_path: Path) -> None:
    assert read(tmp_path, "# O\n#tag O\n")[0].tokens == ("#", "#tag")
    assert read(tmp_path, "# a comment of any width\na O\n", comment="# ")[0].tokens == ("a",)


@pytest.mark.parametrize(
    "token", ["a\u2028b", "a\u00a0b", "\u00a0", "a\x85b", "a\x0cb", "x y", "\ufeffx", "a\u200bb"]
)
def test_odd_characters_inside_a_token_end_neither_line_nor_column(
    token: str, tmp_path: Path
) -> None:
    sentences = [Sentence("a:1", (token, "b"), ("B-X", "O"))]
    formats.write(sentences, tmp_path / "b.conll")

    assert [(s.tokens, s.tags) for s in formats.read(tmp_path / "b.conll")] == [
        ((token, "b"), ("B-X", "O"))
    ]


def test_columns_are_chosen_from_either_end(tmp_path: Path) -> None:
    content = "1 Lena NNP B-PER\n2 left VBD O\n"

    assert read(tmp_path, content, token_column=1)[0] == Sentence(
        "a:1", ("Lena", "left"), ("B-PER", "O")
    )
    assert read(tmp_path, content, token_column=-3, tag_column=2)[0].tags == ("NNP", "VBD")


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"a\.conll:1: there is no column 7; the line has 2.*found 'a O'"
    ):
        read(tmp_path, "a O\n", tag_column=7)


def test_a_line_of_another_width_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError,
        match=r"a\.conll:4: expected 2 columns as in the lines above, found 3; found 'c d O'",
    ):
        read(tmp_path, "a O\nb O\n\nc d O\n")


def test_one_column_is_unlabeled_text(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, "Lena\nleft\n")

    assert sentence.tokens == ("Lena", "left")
    assert not sentence.labeled


def test_an_underscore_is_a_missing_row(tmp_path: Path) -> None:
    assert read(tmp_path, "Lena B-PER\nleft _\n")[0].tags == ("B-PER", None)


def test_an_empty_token_becomes_visible_and_is_counted(tmp_path: Path) -> None:
    options = Options()
    (tmp_path / "a.conll").write_text("a\tB-X\n\tI-X\n  \tO\nb\tO\n")
    (sentence,) = formats.read(tmp_path / "a.conll", options=options)

    assert sentence.tokens == ("a", "\ufffd", "\ufffd", "b")
    assert sentence.tags == ("B-X", "I-X", "O", "O")
    assert options.counts == {"empty token": 2}


def test_an_empty_tag_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.conll:2: expected a tag in column -1"):
        read(tmp_path, "a\tO\nb\t\n")


def test_a_broken_byte_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.conll:2: expected UTF-8 text, byte 2 of the line"):
        read(tmp_path, b"a O\nb\xe9 O\n")


@pytest.mark.parametrize("token", ["", " ", "a\tb", "a\nb", "a\rb", "-DOCSTART-"])
def test_a_token_that_would_not_read_back_is_refused(token: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sentence 'x'"):
        formats.write([Sentence("x", (token,), ("O",))], tmp_path / "a.conll")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tag", ["", "_", " ", "B-a\tb", "B-a\nb", "B-a\r"])
def test_a_tag_that_would_not_read_back_is_refused(tag: str, tmp_path: Path) -> None:
    with pytest.raises(TagError, match="sentence 'x'"):
        formats.write([Sentence("x", ("a",), (tag,))], tmp_path / "a.conll")


def test_stray_i_tags_are_mended_and_counted(tmp_path: Path) -> None:
    options = Options()
    (tmp_path / "a.conll").write_text("a O\nb I-X\n\nc B-X\nd I-Y\n\ne B-X\n")
    actual = list(formats.read(tmp_path / "a.conll", options=options))

    assert [s.tags for s in actual] == [("O", "B-X"), ("B-X", "B-Y"), ("B-X",)]
    assert options.counts == {"rewritten as BIO": 2}


def test_around_missing_rows_only_the_prefixes_become_bio(tmp_path: Path) -> None:
    assert read(tmp_path, "a S-X\nb _\nc E-X\nd O\n")[0].tags == ("B-X", None, "I-X", "O")
