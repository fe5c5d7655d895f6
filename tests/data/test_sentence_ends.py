"""Raw text is cut into sentences in many languages, and loses nothing but white space."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.sentence_ends import sentence_spans


def cut(text: str) -> list[str]:
    return [text[a:b] for a, b in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Ada left.", "She was late!", "Why?", "Nobody knows…", "Yet"],
        ["Dr. Ada met J. R. Smith vs. Mr. Bo at 5 St. James Street.", "It rained."],
        ["He works for Acme Inc. in the U.S. Army.", "It pays."],
        ["He lives in the U.S.", "The rent is high."],
        ["They came at 5 p.m.", "We left."],
        ["“Is it?” he asked.", "(Really.)", "“No.”", "'Yes!'", "So what?"],
        ["Version 2.0 costs $4.50, i.e. less.", "3 people bought it."],
        ["1. Heat the oven.", "2. Add the eggs."],
        ["Is it?", "No.", "He said so."],
        ["See No. 5 and Fig. 3.", "Both are old."],
        ["Am 3. Mai kam Hr. Meier, z.B. aus Köln.", "Er blieb bis zum 12. Jahrhundert.", "Schön."],
        ["M. Dupont habite à Paris.", "Il y travaille, etc.", "Elle part."],
        ["¿Quién es?", "¡Nadie!", "La Sra. López lo sabe."],
        ["Москва велика.", "Кто там?", "Никого."],
        ["مرحبا؟", "نعم.", "حسنا"],
        ["यह एक वाक्य है।", "दूसरा भी।"],
    ],
)
def test_sentences_joined_by_a_space_are_cut_where_they_were_joined(sentences: list[str]):
    assert cut(" ".join(sentences)) == sentences


def test_text_with_spaces_around_punctuation_is_cut_too():
    assert cut('" Ask me in May . " He left at 3 a.m. , c. 1760 ( why ? ) , alone .') == [
        '" Ask me in May .',
        '" He left at 3 a.m. , c. 1760 ( why ? ) , alone .',
    ]
    assert cut('" We were awful . "') == ['" We were awful . "']


def test_chinese_and_japanese_need_no_space():
    assert cut("東京は大きい。大阪も。「はい。」と言った。") == [
        "東京は大きい。",
        "大阪も。",
        "「はい。」と言った。",
    ]
    assert cut("你好！“好。”他走了。") == ["你好！", "“好。”", "他走了。"]


def test_an_empty_line_ends_a_sentence_and_a_line_end_does_not():
    assert cut("A headline\n\nA sentence that\ngoes on. \n \nEnd") == [
        "A headline",
        "A sentence that\ngoes on.",
        "End",
    ]


@given(st.text(st.sampled_from('aB1.!?。”") \n\tä。“U')) | st.text())
def test_nothing_but_white_space_is_lost(text: str):
    spans = list(sentence_spans(text))
    ends = [0, *(place for span in spans for place in span), len(text)]

    assert ends == sorted(ends)
    assert all(text[a:b] == text[a:b].strip() != "" for a, b in spans)
    gaps = zip(ends[::2], ends[1::2], strict=True)
    assert not "".join(text[a:b] for a, b in gaps).strip()


@pytest.mark.parametrize(
    "part", [". ", "Dr. ", '."', "\n", " ", "! ", "a.b. ", "1. ", "。」", "(“ "]
)
def test_hostile_text_takes_time_in_proportion(part: str):
    def seconds(n: int) -> float:
        text = "x" + part * n
        start = time.perf_counter()
        list(sentence_spans(text))
        return time.perf_counter() - start

    assert min(seconds(64_000) for _ in range(3)) < 40 * max(
        1e-3, min(seconds(8_000) for _ in range(3))
    )
