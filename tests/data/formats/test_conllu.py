"""CoNLL-U."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError

SAMPLE = """# newdoc
# sent_id = fr-7
# text = Elle va au port.
1\tElle\til\tPRON\tPRP\t_\t2\tnsubj\t_\tNER=O
2\tva\taller\tVERB\tVB\t_\t0\troot\t_\tNER=O
3-4\tau\t_\t_\t_\t_\t_\t_\t_\t_
3\tà\tà\tADP\tIN\t_\t5\tcase\t_\tNER=O
4\tle\tle\tDET\tDT\t_\t5\tdet\t_\tNER=O
4.1\tle\t_\t_\t_\t_\t_\t_\t_\t_
5\tport\tport\tNOUN\tNN\t_\t2\tobl\t_\tSpaceAfter=No|NER=B-LOC
6\t.\t.\t_\t.\t_\t2\tpunct\t_\t_

# text = Non!
1\tNon\tnon\tINTJ\tUH\t_\t0\troot\t_\tSpaceAfter=No
2\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\t_
"""


def read(tmp_path: Path, content: str, **options: object) -> list[Sentence]:
    (tmp_path / "a.conllu").write_text(content, encoding="utf-8")
    return list(formats.read(tmp_path / "a.conllu", options=Options(**options)))


def word(number: int | str, form: str, misc: str = "_") -> str:
    return f"{number}\t{form}\t_\t_\t_\t_\t_\t_\t_\t{misc}\n"


def test_words_and_upos_are_read_and_the_rest_is_passed_over(tmp_path: Path) -> None:
    first, second = read(tmp_path, SAMPLE)

    assert first == Sentence(
        "fr-7", ("Elle", "va", "à", "le", "port", "."), ("PRON", "VERB", "ADP", "DET", "NOUN", None)
    )
    assert second == Sentence("a:2", ("Non", "!"), ("INTJ", "PUNCT"), "Non!", ((0, 3), (3, 4)))


def test_the_key_names_another_column_or_a_key_of_misc(tmp_path: Path) -> None:
    assert read(tmp_path, SAMPLE, key="XPOS")[1].tags == ("UH", ".")
    assert read(tmp_path, SAMPLE, key="NER")[0].tags == ("O", "O", "O", "O", "B-LOC", None)
    assert not read(tmp_path, SAMPLE, key="NER")[1].labeled


def test_space_after_gives_the_text_where_no_comment_does(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, word(1, "Go", "SpaceAfter=No") + word(2, "!") + word(3, "Now"))

    assert (sentence.text, sentence.offsets) == ("Go! Now", ((0, 2), (2, 3), (4, 7)))


def test_without_either_there_is_no_text(tmp_path: Path) -> None:
    assert read(tmp_path, word(1, "Go") + word(2, "on"))[0].text is None


def test_a_text_that_does_not_fit_the_words_is_not_used(tmp_path: Path) -> None:
    assert read(tmp_path, "# text = Stop now\n" + word(1, "Go") + word(2, "on"))[0].text is None


def test_ranges_that_count_from_the_start_of_the_document_are_not_taken_for_ours(
    tmp_path: Path,
) -> None:
    words = enumerate(["Go", "on", "and", "on"], 1)
    content = "# text = Go on and on\n" + "".join(
        word(i, form, f"TokenRange={i + 2}:{i + 4}") for i, form in words
    )

    assert read(tmp_path, content)[0].offsets == ((0, 2), (3, 5), (6, 9), (10, 12))


@pytest.mark.parametrize(
    ("content", "line", "match"),
    [
        (word(1, "a") + "2\tb\n", 2, "expected 10 columns separated by tabs, found 2"),
        (word(1, "a") + word(1, "b"), 2, "expected word 2 of the sentence, or an empty line"),
        (word("x", "a"), 1, "expected word 1"),
        ("1 a _ _ _ _ _ _ _ _\n", 1, "expected 10 columns"),
    ],
)
def test_a_broken_line_is_named(content: str, line: int, match: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path, content)
    assert caught.value.line == line


def test_an_empty_tag_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TagError, match="expected a tag or _ in NER"):
        read(tmp_path, word(1, "a", "NER="), key="NER")


def test_tags_are_written_where_the_key_says(tmp_path: Path) -> None:
    sentence = Sentence(
        "s 1", ("Lena", "left", "."), ("B-PER", None, "O"), "Lena left.", ((0, 4), (5, 9), (9, 10))
    )
    formats.write([sentence], tmp_path / "a.conllu", options=Options(key="NER"))

    assert (tmp_path / "a.conllu").read_text() == (
        "# sent_id = s 1\n# text = Lena left.\n"
        + word(1, "Lena", "NER=B-PER")
        + word(2, "left", "SpaceAfter=No")
        + word(3, ".", "NER=O")
        + "\n"
    )
    assert list(formats.read(tmp_path / "a.conllu", options=Options(key="NER"))) == [sentence]


def test_text_between_the_tokens_is_kept_by_ranges(tmp_path: Path) -> None:
    sentence = Sentence("x", ("a", "b"), ("O", "B-X"), "b a -- b!", ((2, 3), (7, 8)))
    formats.write([sentence], tmp_path / "a.conllu", options=Options(key="XPOS"))

    assert list(formats.read(tmp_path / "a.conllu", options=Options(key="XPOS"))) == [sentence]


def test_line_ends_in_a_text_become_spaces_and_are_counted(tmp_path: Path) -> None:
    options = Options()
    formats.write(
        [Sentence("x", ("a", "b"), ("O", "O"), "a\r\nb", ((0, 1), (3, 4)))],
        tmp_path / "a.conllu",
        options=options,
    )

    assert next(formats.read(tmp_path / "a.conllu")).text == "a  b"
    assert options.counts == {"line end in a text": 1}


@pytest.mark.parametrize("key", ["", "a b", "a=b", "a|b", "SpaceAfter", "x\n"])
def test_a_key_that_misc_cannot_have_is_refused(key: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected the key"):
        formats.write([], tmp_path / "a.conllu", options=Options(key=key))


def test_what_has_no_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TagError, match=r"a tag with \|"):
        formats.write(
            [Sentence("x", ("a",), ("B-A|B",))], tmp_path / "a.conllu", options=Options(key="NER")
        )
    with pytest.raises(DataError, match="a comment cannot hold a line end"):
        formats.write([Sentence("x\ny", ("a",), ("O",))], tmp_path / "a.conllu")
    assert list(tmp_path.iterdir()) == []
