"""The tokenizer: what stays whole, what is cut, and that nothing is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.data.text import checked_offsets, tokenize
from seqmix.errors import DataError


def cut(text: str) -> list[str]:
    return [text[a:b] for a, b in tokenize(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n\u00a0\u2028", []),
        ("Lena left Oslo.", ["Lena", "left", "Oslo", "."]),
        ("$4.50, 1,000 and 3:", ["$", "4.50", ",", "1,000", "and", "3", ":"]),
        ("don't Lena's 'tis", ["don", "'t", "Lena", "'s", "'", "tis"]),
        ("NF-kappaB p53 snake_case", ["NF", "-", "kappaB", "p53", "snake_case"]),
        ("#tag @name", ["#", "tag", "@", "name"]),
        ("cafe\u0301s", ["cafe\u0301s"]),
        ("\u0301 x", ["\u0301", "x"]),
        ("क्षत्रिय", ["क्षत्रिय"]),
        ("東京に行く", ["東", "京", "に", "行", "く"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("🇳🇴🇸🇪", ["🇳🇴", "🇸🇪"]),
        ("👩‍🚀👍🏽 ok", ["👩‍🚀", "👍🏽", "ok"]),
        ("❤️x", ["❤️", "x"]),
        ("a\u2028b", ["a", "b"]),
    ],
)
def test_what_the_tokenizer_makes_of_it(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@given(st.text(max_size=60))
def test_offsets_go_forward_and_cover_all_but_space_once(text: str) -> None:
    offsets = tokenize(text)

    assert all(a < b for a, b in offsets)
    assert all(b <= c for (_, b), (c, _) in pairwise(offsets))
    covered = [at for a, b in offsets for at in range(a, b)]
    assert all(text[at].isspace() for at in set(range(len(text))) - set(covered))


@given(st.text(max_size=60))
def test_a_sentence_from_text_has_the_text_behind_each_token(text: str) -> None:
    sentence = Sentence.from_text(text, "t")

    assert sentence.offsets is not None
    assert [text[a:b] for a, b in sentence.offsets] == list(sentence.tokens)
    assert not any(token.isspace() for token in sentence.tokens)


@pytest.mark.parametrize(
    "offsets",
    [
        None,
        "ab",
        [[0]],
        [[0, 1.0]],
        [[True, 1]],
        [[0, 9]],
        [[-1, 1]],
        [[2, 3], [0, 1]],
        [[0, 2], [1, 3]],
        [[2, 1]],
    ],
)
def test_offsets_from_outside_are_checked(offsets: object) -> None:
    with pytest.raises(DataError, match="expected offsets"):
        checked_offsets(offsets, "abcd")


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0x0E01, 0x0E30), (0x1000, 0x102A), (0x1780, 0x17B3), (0x2E80, 0x2FD5), (0x3005, 0x3007),
        (0x3041, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAD9),
        (0xFF66, 0xFF9F), (0x20000, 0x3134A),
    ],
)  # fmt: skip
def test_scripts_without_spaces_are_cut_character_by_character_from_their_first_to_their_last(
    first: int, last: int
) -> None:
    assert cut(chr(first) * 2 + "ab" + chr(last) * 2) == [
        chr(first),
        chr(first),
        "ab",
        chr(last),
        chr(last),
    ]


@pytest.mark.parametrize("code", [0x0F00, 0x10A0, 0x3105, 0xA000, 0xFB00])
def test_letters_just_outside_those_scripts_stay_together(code: int) -> None:
    assert cut("a" + chr(code) * 2) == ["a" + chr(code) * 2]


@pytest.mark.parametrize("code", [0x0301, 0x1F3FB, 0x1F3FF, 0xE0020, 0xE007F])
def test_marks_skin_tones_and_tag_characters_sit_on_what_stands_before_them(code: int) -> None:
    assert cut("\U0001f44b" + chr(code) + "a") == ["\U0001f44b" + chr(code), "a"]
