"""Dictionaries and regular expressions find what people mean, and a bad pattern stops nobody."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError
from seqmix.serve.sources.dictionary import Dictionary
from seqmix.serve.sources.patterns import Patterns, check_patterns
from seqmix.serve.sources.terms import Terms, parse_terms, read_terms
from seqmix.serve.store.records import Mark

TAGS = ("PER", "LOC", "Dose")


def parsed(text: str, **more) -> Terms:
    return parse_terms(enumerate(text.splitlines(), 1), TAGS, **more)


def in_tokens(*tokens: str) -> Sentence:
    return Sentence("s", tokens)


def test_a_file_of_terms_is_read_and_a_wrong_line_is_named(tmp_path):
    path = tmp_path / "terms.tsv"
    path.write_text("Oslo\tLOC\n\nre:\\d+ mg\tDose\nNew  York\tLOC\n")

    terms = read_terms(path, TAGS)

    assert terms.texts == (("Oslo", "LOC"), ("New  York", "LOC"))
    assert terms.patterns == (("\\d+ mg", "Dose"),)
    assert Terms.from_json(terms.to_json()) == terms
    path.write_text("Oslo\tLOC\nRome LOC\n")
    with pytest.raises(DataError, match=r"terms.tsv:2: expected a text .* a tab and a tag"):
        read_terms(path, TAGS)
    with pytest.raises(TagError, match="unknown tag; this project has PER, LOC, Dose; found 'ORG'"):
        parsed("Nokia\tORG")
    with pytest.raises(DataError, match="there are none"):
        parsed("\n")


@pytest.mark.parametrize(
    ("sentence", "marks"),
    [
        (in_tokens("in", "New", "York", "."), [(1, 3, "LOC")]),
        (Sentence.from_text("in New York."), [(1, 3, "LOC")]),
        (in_tokens("the", "U.S.", "left"), [(1, 2, "LOC")]),
        (Sentence.from_text("the U.S. left"), [(1, 5, "LOC")]),
        (in_tokens("York", "and", "New"), [(0, 1, "PER")]),
        (in_tokens("York-based", "new york"), []),
        (in_tokens("a", "York", "New", "York"), [(1, 2, "PER"), (2, 4, "LOC")]),
    ],
)
def test_a_dictionary_finds_whole_tokens_however_they_are_cut_and_the_longest(sentence, marks):
    dictionary = Dictionary([("New York", "LOC"), ("York", "PER"), ("U.S.", "LOC"), (" ", "PER")])

    assert dictionary.marks(sentence) == [Mark(*mark) for mark in marks]


def test_case_counts_unless_it_is_ignored():
    sentence = in_tokens("NEW", "york")

    assert Dictionary([("New York", "LOC")]).marks(sentence) == []
    assert Dictionary([("New York", "LOC")], ignore_case=True).marks(sentence) == [(0, 2, "LOC")]
    assert Patterns([("new york", "LOC")], ignore_case=True).marks(sentence) == [(0, 2, "LOC")]


WORDS = st.lists(st.sampled_from(["a", "b", "c.", "3.5", "U.S.", "-", "é"]), min_size=1, max_size=8)


@given(WORDS, WORDS)
def test_matches_are_in_order_apart_and_spelled_like_a_text(tokens, text):
    dictionary = Dictionary([(" ".join(text), "LOC"), ("a b", "PER")])
    marks = dictionary.marks(in_tokens(*tokens))

    assert all(a.end <= b.start for a, b in pairwise(marks))
    for mark in marks:
        spelled = "".join(tokens[mark.start : mark.end])
        assert spelled == ("".join(text) if mark.tag == "LOC" else "ab")
    if tokens == text and " ".join(text) != "a b":
        assert marks == [(0, len(tokens), "LOC")]


def test_patterns_match_whole_tokens_of_the_text_and_the_longest():
    sentence = Sentence.from_text("Take 20 mg, not 5mg or 1 mg.")
    patterns = Patterns([(r"\d+ ?mg", "Dose"), (r"\d", "PER"), ("ak", "LOC"), ("x*", "LOC")])

    texts = [(" ".join(sentence.tokens[m.start : m.end]), m.tag) for m in patterns.marks(sentence)]

    assert texts == [("20 mg", "Dose"), ("5mg", "Dose"), ("1 mg", "Dose")]


def test_a_pattern_without_end_costs_milliseconds_and_is_then_left_out():
    patterns = Patterns([("(a|aa)+$", "PER"), ("Oslo", "LOC")])
    sentence = in_tokens("a" * 60 + "b", "Oslo")
    begin = time.monotonic()

    for _ in range(50):
        assert patterns.marks(sentence) == [(1, 2, "LOC")]

    assert time.monotonic() - begin < 5.0  # each would take years
    assert patterns.slow == ["(a|aa)+$"]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(", "missing \\)"),
        ("(a|aa)+$", "more than 20 ms"),
        ("(?:(?:a{1000}){1000}){1000}", "too much memory"),
        ("(?:" * 3000 + ")" * 3000, "recursion"),
    ],
)
def test_a_wrong_endless_or_huge_pattern_is_refused_when_it_is_added(pattern, why):
    texts = ["a" * 60 + "b"] * 5

    with pytest.raises(DataError, match=f"cannot be used: .*{why}"):
        check_patterns(["fine", pattern, "fine"], texts, False)
    check_patterns(["fine", r"\d+"], texts, False)
