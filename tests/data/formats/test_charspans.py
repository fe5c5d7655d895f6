"""Character spans onto tokens."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.spans import Span, spans
from seqmix.data.text import CharSpan, align, tags_from_text, tokenize
from seqmix.errors import TagError

TEXT = "New York fell"
OFFSETS = tokenize(TEXT)


def aligned(misaligned: str, *labels: CharSpan) -> tuple[list[Span], Counter[str]]:
    counts: Counter[str] = Counter()
    return align(OFFSETS, labels, misaligned, counts, TEXT), counts  # type: ignore[arg-type]


def test_spans_that_end_where_tokens_do_are_taken_as_they_are() -> None:
    assert aligned("error", CharSpan(9, 13, "X"), CharSpan(0, 8, "LOC")) == (
        [Span(0, 2, "LOC"), Span(2, 3, "X")],
        Counter(),
    )


@pytest.mark.parametrize(
    "span",
    [CharSpan(1, 8, "LOC"), CharSpan(0, 7, "LOC"), CharSpan(5, 6, "LOC"), CharSpan(3, 4, "LOC")],
)
def test_a_span_that_cuts_a_token_is_refused_with_its_text(span: CharSpan) -> None:
    with pytest.raises(TagError, match="must start and end where tokens do") as caught:
        aligned("error", span)

    assert caught.value.text == TEXT[span.start : span.end]


def test_a_span_that_cuts_a_token_is_grown_or_dropped_and_counted() -> None:
    assert aligned("expand", CharSpan(1, 6, "LOC")) == ([Span(0, 2, "LOC")], Counter(misaligned=1))
    assert aligned("drop", CharSpan(1, 6, "LOC")) == ([], Counter(misaligned=1))


def test_a_span_of_white_space_only_cannot_grow() -> None:
    assert aligned("expand", CharSpan(3, 4, "LOC")) == ([], Counter(misaligned=1))


def test_white_space_at_the_edge_of_a_span_cuts_nothing() -> None:
    assert aligned("error", CharSpan(0, 9, "LOC")) == ([Span(0, 2, "LOC")], Counter())


@pytest.mark.parametrize("span", [(-1, 3), (0, 14), (3, 3), (5, 4), (20, 30)])
@pytest.mark.parametrize("misaligned", ["error", "expand", "drop"])
def test_a_span_outside_its_text_is_always_an_error(span: tuple[int, int], misaligned: str) -> None:
    with pytest.raises(TagError, match="inside its text of 13 characters"):
        aligned(misaligned, CharSpan(*span, "X"))


def test_of_overlapping_spans_the_longest_stays_or_it_is_an_error() -> None:
    pair = CharSpan(4, 8, "A"), CharSpan(0, 8, "B")

    assert aligned("drop", *pair) == ([Span(0, 2, "B")], Counter(overlapping=1))
    assert aligned("expand", *pair) == ([Span(0, 2, "B")], Counter(overlapping=1))
    with pytest.raises(TagError, match="two spans overlap at token 1"):
        aligned("error", *pair)


def test_the_same_span_twice_is_one_span() -> None:
    assert aligned("error", CharSpan(0, 8, "A"), CharSpan(0, 8, "A")) == (
        [Span(0, 2, "A")],
        Counter(),
    )


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 13), st.sampled_from("AB")), max_size=6)
)
def test_whatever_the_spans_what_is_kept_are_legal_tags(labels: list[tuple[int, int, str]]) -> None:
    chars = [CharSpan(a, b, kind) for a, b, kind in labels if a < b]
    tags = tags_from_text(OFFSETS, chars, "expand", Counter(), TEXT)

    assert len(tags) == len(OFFSETS)
    assert {(s.start, s.type) for s in spans(tags)} <= {
        (s.start, s.type) for c in chars for s in aligned("expand", c)[0]
    }
