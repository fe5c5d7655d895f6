"""Lines of raw text become sentences, also when they were wrapped."""

from __future__ import annotations

import textwrap

from seqmix.app.options import parse_read
from seqmix.app.reading.raw_text import is_wrapped, raw_sentences

TEXT = (
    "Ada Lovelace left London in the spring of that year, and nobody knew for how long she would "
    "be away. She wrote letters from Paris, where the weather was better. "
    "Bo answered two of them.\n"
    "\n"
    "In June the letters stopped, since the post no longer went through the valley. He waited."
)
SENTENCES = [
    "Ada Lovelace left London in the spring of that year, and nobody knew for how long she would "
    "be away.",
    "She wrote letters from Paris, where the weather was better.",
    "Bo answered two of them.",
    "In June the letters stopped, since the post no longer went through the valley.",
    "He waited.",
]


def read(text: str, how: str = "", row: int | None = None) -> list[tuple[str, str]]:
    reading = parse_read(how, "unit")
    lines = enumerate(text.split("\n"), 1)
    return [(s.id, s.text) for s in raw_sentences(lines, "d", reading, row)]


def test_a_paragraph_on_a_line_and_a_wrapped_one_give_the_same_sentences():
    wrapped = "\n\n".join(textwrap.fill(block, 60) for block in TEXT.split("\n\n"))

    assert [text for _, text in read(TEXT)] == SENTENCES
    assert [text for _, text in read(wrapped)] == SENTENCES
    assert [id for id, _ in read(TEXT)] == ["d:1", "d:1.2", "d:1.3", "d:3", "d:3.2"]
    assert [id for id, _ in read(wrapped)] == ["d:1", "d:1.2", "d:1.3", "d:6", "d:6.2"]


def test_lines_that_are_sentences_stay_so():
    lines = ["lena left oslo", "bo stayed at home all day long", "and so did everybody else"] * 5

    assert not is_wrapped(lines)
    assert [text for _, text in read("\n".join(lines))] == lines


def test_lines_of_one_width_are_not_wrapped_if_they_begin_anew():
    assert not is_wrapped(
        [f"2024-01-{day} 12:00:00 the server {day} has started up" for day in range(10, 30)]
    )
    assert not is_wrapped([])


def test_lines_and_paragraphs_are_units_too():
    assert read("One. Two.\nThree.\n\nFour", "unit=line") == [
        ("d:1", "One. Two."),
        ("d:2", "Three."),
        ("d:4", "Four"),
    ]
    assert read("One. Two.\nThree.\n\nFour", "unit=paragraph") == [
        ("d:1", "One. Two.\nThree."),
        ("d:4", "Four"),
    ]


def test_the_sentences_of_a_row_have_its_number():
    assert read("One. Two.\nThree.", row=7) == [
        ("d:7", "One."),
        ("d:7.2", "Two."),
        ("d:7.3", "Three."),
    ]
