from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from seqeval.metrics.sequence_labeling import get_entities

from seqmix.data.scheme import SCHEMES, convert, detect, is_legal, legal_moves, repair, tag
from seqmix.data.spans import Span, spans, token_spans
from seqmix.data.tagset import TagSet
from seqmix.errors import TagError

SPELLED = SCHEMES[:-1]  # all but 'tokens', which has no spans
EXACT = ("BIO", "IOB1", "BIOES", "BILOU")  # those that can tell neighbors apart
TYPES = ("PER", "LOC", "A-B")  # a hyphen inside a type is no prefix
PREFIXES = {"BIO": "BI", "IOB1": "BI", "BIOES": "BIES", "BILOU": "BILU", "IO": "I"}


@st.composite
def sentences(draw):
    """Spans in order, none overlapping, some touching; and the length of their sentence."""
    actual, at = [], 0
    for gap, width, type in draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(TYPES)), max_size=6
        )
    ):
        actual.append(Span(at + gap, at + gap + width, type))
        at += gap + width
    return actual, at + draw(st.integers(0, 2))


def any_tags(prefixes="BIESLU"):
    return st.lists(
        st.sampled_from(["O", *(f"{prefix}-{type}" for prefix in prefixes for type in TYPES)]),
        max_size=8,
    )


def joined(actual):
    """What IO can say: neighbors of one type are one span."""
    whole = []
    for span in actual:
        if whole and whole[-1].end == span.start and whole[-1].type == span.type:
            whole[-1] = Span(whole[-1].start, span.end, span.type)
        else:
            whole.append(span)
    return whole


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("BIO", "B-PER I-PER B-PER B-LOC O B-LOC"),
        ("IOB1", "I-PER I-PER B-PER I-LOC O I-LOC"),
        ("BIOES", "B-PER E-PER S-PER S-LOC O S-LOC"),
        ("BILOU", "B-PER L-PER U-PER U-LOC O U-LOC"),
    ],
)
def test_each_scheme_spells_the_same_spans_in_its_own_way(scheme, tags):
    actual = [Span(0, 2, "PER"), Span(2, 3, "PER"), Span(3, 4, "LOC"), Span(5, 6, "LOC")]

    assert tag(actual, 6, scheme) == tags.split()
    assert spans(tags.split()) == actual


def test_io_joins_neighbors_of_one_type():
    assert tag([Span(0, 2, "PER"), Span(2, 3, "PER"), Span(3, 4, "LOC")], 4, "IO") == [
        "I-PER",
        "I-PER",
        "I-PER",
        "I-LOC",
    ]
    assert spans(["I-PER", "I-PER", "I-PER", "I-LOC"]) == [Span(0, 3, "PER"), Span(3, 4, "LOC")]


def test_three_words_and_more_have_an_inside_in_every_scheme():
    assert tag([Span(0, 4, "X")], 4, "BIOES") == ["B-X", "I-X", "I-X", "E-X"]
    assert tag([Span(0, 4, "X")], 4, "BILOU") == ["B-X", "I-X", "I-X", "L-X"]


@pytest.mark.parametrize("scheme", SPELLED)
@given(sentences())
def test_spans_come_back_from_their_tags(scheme, sentence):
    actual, length = sentence
    tags = tag(actual, length, scheme)

    assert len(tags) == length
    assert spans(tags) == (joined(actual) if scheme == "IO" else actual)


@pytest.mark.parametrize("scheme", SPELLED)
@given(sentences())
def test_tags_come_back_from_their_spans(scheme, sentence):
    tags = tag(*sentence, scheme)

    assert tag(spans(tags), len(tags), scheme) == tags


@given(st.sampled_from(EXACT), st.sampled_from(SPELLED), sentences())
def test_a_conversion_between_any_two_schemes_keeps_the_spans(source, target, sentence):
    actual, length = sentence
    converted = convert(tag(actual, length, source), target)

    assert converted == tag(actual, length, target)
    assert spans(converted) == (joined(actual) if target == "IO" else actual)


@given(any_tags(), st.sampled_from(EXACT))
def test_a_conversion_keeps_what_conlleval_sees_in_any_tags_legal_or_not(tags, scheme):
    assert spans(convert(tags, scheme)) == spans(tags)


def test_tokens_are_converted_to_themselves():
    assert convert(["NOUN", "VERB"], "tokens") == ["NOUN", "VERB"]


@given(any_tags("BIES"))
@example(["I-PER", "B-PER", "I-LOC", "E-LOC", "E-LOC", "S-PER", "I-PER"])
def test_the_spans_of_any_tags_are_those_seqeval_sees(tags):
    assert spans(tags) == [Span(start, end + 1, type) for type, start, end in get_entities(tags)]


@given(any_tags())
def test_last_and_unit_read_as_end_and_single(tags):
    assert spans(tags) == spans(
        [{"L": "E", "U": "S"}.get(name[0], name[0]) + name[1:] for name in tags]
    )


@given(any_tags())
def test_spans_are_in_order_do_not_overlap_and_leave_out_exactly_the_outside(tags):
    actual = spans(tags)
    covered = [at for span in actual for at in range(span.start, span.end)]

    assert covered == [at for at, name in enumerate(tags) if name != "O"]
    assert all(name[2:] == span.type for span in actual for name in tags[span.start : span.end])


def test_a_bare_tag_among_outside_reads_as_inside():
    assert spans(["PER", "PER", "O", "B-LRB", "-LRB-"]) == [
        Span(0, 2, "PER"),
        Span(3, 4, "LRB"),
        Span(4, 5, "-LRB-"),
    ]
    assert spans(["N-1", "V-1", "O"]) == [Span(0, 1, "N-1"), Span(1, 2, "V-1")]


def test_each_token_is_a_span_where_tags_are_parts_of_speech():
    assert token_spans(["NOUN", "NOUN"]) == [Span(0, 1, "NOUN"), Span(1, 2, "NOUN")]


def test_spans_may_come_in_any_order():
    assert tag([Span(2, 3, "LOC"), Span(0, 1, "PER")], 3) == ["B-PER", "O", "B-LOC"]


@pytest.mark.parametrize(
    "span",
    [Span(-1, 1, "X"), Span(1, 1, "X"), Span(2, 1, "X"), Span(2, 4, "X"), Span(3, 4, "X")],
    ids=str,
)
def test_a_span_outside_its_sentence_is_refused(span):
    with pytest.raises(TagError) as caught:
        tag([span], 3)

    assert "3 tokens" in str(caught.value)
    assert str(span) in str(caught.value)


def test_overlapping_spans_are_refused_and_both_are_named():
    with pytest.raises(TagError, match=r"start=0, end=2, type='PER'.*start=1, end=3, type='LOC'"):
        tag([Span(1, 3, "LOC"), Span(0, 2, "PER")], 3)


def test_the_scheme_tokens_has_no_spans_to_spell():
    with pytest.raises(TagError, match="tokens"):
        tag([Span(0, 1, "NOUN")], 1, "tokens")


@given(sentences())
def test_a_scheme_is_recognized_from_all_it_can_spell(sentence):
    actual, length = sentence
    touching = any(a.end == b.start and a.type == b.type for a, b in pairwise(actual))

    assert detect(tag(actual, length, "BIO")) == "BIO"
    assert detect(tag(actual, length, "BIOES")) == ("BIOES" if actual else "BIO")
    assert detect(tag(actual, length, "BILOU")) == ("BILOU" if actual else "BIO")
    assert detect(tag(actual, length, "IO")) == ("IO" if actual else "BIO")
    assert detect(tag(actual, length, "IOB1")) == (
        "IOB1" if touching else "IO" if actual else "BIO"
    )


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O O", "BIO"),
        ("B-PER O", "BIO"),
        ("B-PER O I-LOC", "BIO"),  # a stray I- makes no IOB1
        ("I-PER B-LOC", "BIO"),  # IOB1 needs no B- behind another type
        ("I-PER B-PER", "IOB1"),
        ("I-PER O", "IO"),
        ("PER PER O", "IO"),
        ("NOUN VERB", "tokens"),
        ("-LRB- NOUN", "tokens"),
        ("N-1 V-2", "tokens"),
        ("S-PER O", "BIOES"),
        ("U-PER O", "BILOU"),
        ("", "BIO"),
    ],
)
def test_a_scheme_is_recognized_from_its_marks(tags, scheme):
    assert detect(tags.split()) == scheme


@pytest.mark.parametrize("scheme", SPELLED)
@given(sentences())
def test_what_a_scheme_spells_is_legal_in_it(scheme, sentence):
    assert is_legal(tag(*sentence, scheme), scheme)


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("BIO", "I-PER"),
        ("BIO", "O I-PER"),
        ("BIO", "B-PER I-LOC"),
        ("BIO", "S-PER"),
        ("BIO", "PER"),
        ("IOB1", "B-PER"),
        ("IOB1", "I-PER B-LOC"),
        ("IOB1", "I-PER O B-PER"),
        ("BIOES", "B-PER"),
        ("BIOES", "B-PER O"),
        ("BIOES", "B-PER I-PER"),
        ("BIOES", "E-PER"),
        ("BIOES", "B-PER E-LOC"),
        ("BIOES", "S-PER E-PER"),
        ("BIOES", "U-PER"),
        ("BILOU", "B-PER"),
        ("BILOU", "L-PER"),
        ("BILOU", "S-PER"),
        ("IO", "B-PER"),
    ],
)
def test_misspelled_tags_are_illegal(scheme, tags):
    assert not is_legal(tags.split(), scheme)


def test_parts_of_speech_are_always_legal():
    assert is_legal(["NOUN", "VERB", "O", "I-PER"], "tokens")


@given(any_tags())
def test_repair_gives_legal_bio_with_the_spans_conlleval_sees(tags):
    repaired = repair(tags)

    assert is_legal(repaired, "BIO")
    assert spans(repaired) == spans(tags)


@given(any_tags("BI"))
def test_repair_changes_nothing_but_stray_inside_tags(tags):
    repaired = repair(tags)

    assert all(
        new == old or (old[0], new[0], old[2:]) == ("I", "B", new[2:])
        for old, new in zip(tags, repaired, strict=True)
    )
    assert (repaired == tags) == is_legal(tags)


def moves_are_legal(tags, start, moves, end):
    return bool(start[tags[0]] and end[tags[-1]] and moves[tags[:-1], tags[1:]].all())


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "BILOU"])
def test_tags_are_legal_exactly_when_all_their_moves_are(scheme):
    tag_set = TagSet.ordered(
        ["O", *(f"{prefix}-{type}" for prefix in PREFIXES[scheme] for type in ("PER", "LOC"))]
    )
    allowed = legal_moves(tag_set)
    legal = 0

    for length in (1, 2, 3, 4):  # every sequence there is
        for ids in product(range(len(tag_set)), repeat=length):
            expected = is_legal([tag_set.tags[i] for i in ids], scheme)
            assert moves_are_legal(list(ids), *allowed) == expected, [tag_set.tags[i] for i in ids]
            legal += expected
    assert legal > 100


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "BILOU"])
@given(sentences())
def test_the_moves_allow_whatever_the_scheme_spells(scheme, sentence):
    tag_set = TagSet.ordered(
        ["O", *(f"{prefix}-{type}" for prefix in PREFIXES[scheme] for type in TYPES)]
    )
    tags = tag(*sentence, scheme)

    assert not tags or moves_are_legal([tag_set.id(name) for name in tags], *legal_moves(tag_set))


@pytest.mark.parametrize("tags", [["O", "I-PER", "I-LOC"], ["NOUN", "VERB"], ["O", "PER"]], ids=str)
def test_a_tag_set_without_begin_tags_allows_every_move(tags):
    start, moves, end = legal_moves(TagSet.ordered(tags))

    assert start.all()
    assert moves.all()
    assert end.all()


def test_moves_are_masks_of_the_size_of_the_tag_set():
    start, moves, end = legal_moves(TagSet.ordered(["O", "B-PER", "I-PER"]))

    assert start.tolist() == [True, True, False]
    assert moves.tolist() == [[True, True, False], [True, True, True], [True, True, True]]
    assert end.tolist() == [True, True, True]
    assert start.dtype == moves.dtype == end.dtype == np.bool_
