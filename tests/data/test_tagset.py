import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.data.tagset import TagSet
from seqmix.errors import TagError

BIO = TagSet.ordered(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
tags = st.sampled_from(BIO.tags)


def sentence(*rows, id="s1"):
    return Sentence(id, ("x",) * len(rows), rows)


@st.composite
def soft_rows(draw):
    parts = draw(st.dictionaries(tags, st.integers(1, 1000), min_size=2))
    return {tag: part / sum(parts.values()) for tag, part in parts.items()}


def test_outside_comes_first_and_the_rest_by_name():
    assert BIO.tags == ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")


@given(st.permutations(["O", "B-PER", "I-PER", "B-LOC", "NOUN", "b-per"]))
def test_the_order_does_not_depend_on_the_order_of_the_data(names):
    assert TagSet.ordered(names) == TagSet.ordered(reversed(names))
    assert TagSet.of([sentence(*names)]) == TagSet.of([sentence(name) for name in sorted(names)])


def test_a_tag_set_can_be_kept_in_the_order_of_a_saved_model():
    kept = TagSet(("B-PER", "O"))

    assert (kept.id("B-PER"), kept.id("O")) == (0, 1)


@pytest.mark.parametrize("names", [(), ("O", ""), ("O", "B-PER", "O")], ids=str)
def test_no_tag_an_empty_tag_or_one_twice_is_refused(names):
    with pytest.raises(TagError) as caught:
        TagSet(names)

    assert str(list(names)) in str(caught.value)


def test_the_matching_inside_tag_joins_every_begin_tag():
    assert TagSet.of([sentence("B-PER", "O")]).tags == ("O", "B-PER", "I-PER")
    assert TagSet.of([sentence("B-PER")]).tags == ("B-PER", "I-PER")
    assert TagSet.of([sentence("I-PER", "O")]).tags == ("O", "B-PER", "I-PER")


@given(st.sets(st.sampled_from(["PER", "LOC", "A-B", "Ö"]), min_size=1))
def test_a_tag_set_of_bio_data_can_spell_any_span_of_its_types(types):
    actual = TagSet.of([sentence("O", *(f"B-{type}" for type in types))])

    assert set(actual.tags) == {"O"} | {f"{prefix}-{type}" for prefix in "BI" for type in types}


def test_tags_of_other_schemes_are_taken_as_they_are():
    assert TagSet.of([sentence("S-PER", "O", "B-LOC", "E-LOC")]).tags == (
        "O",
        "B-LOC",
        "E-LOC",
        "S-PER",
    )
    assert TagSet.of([sentence("NOUN", "VERB")]).tags == ("NOUN", "VERB")


def test_tags_are_collected_from_soft_rows_and_missing_rows_add_none():
    assert TagSet.of([sentence({"O": 0.5, "B-PER": 0.5}, None)]).tags == ("O", "B-PER", "I-PER")


def test_there_is_no_tag_set_without_a_label():
    with pytest.raises(TagError, match="no sentence has a label"):
        TagSet.of([sentence(None), sentence()])


def test_a_tag_set_knows_its_size_and_its_tags():
    assert len(BIO) == 5
    assert "B-PER" in BIO
    assert "B-ORG" not in BIO
    assert [BIO.id(tag) for tag in BIO.tags] == [0, 1, 2, 3, 4]


def test_an_unknown_tag_is_named_beside_the_known_ones():
    with pytest.raises(TagError) as caught:
        BIO.id("B-ORG")

    assert (
        str(caught.value)
        == "unknown tag; this tag set has O, B-LOC, B-PER, I-LOC, I-PER; found 'B-ORG'"
    )
    for row in ("B-ORG", {"O": 0.5, "B-ORG": 0.5}):
        with pytest.raises(TagError, match="'B-ORG'"):
            BIO.rows(sentence("O", row))


def test_of_many_known_tags_only_some_are_named():
    with pytest.raises(TagError, match=r"T00, .*T11, …; found 'X'"):
        TagSet.ordered([f"T{i:02}" for i in range(30)]).id("X")


def test_types_are_what_stands_behind_the_prefixes():
    assert BIO.types == ("LOC", "PER")
    assert TagSet.ordered(["O", "U-PER", "L-A-B", "MISC"]).types == ("A-B", "MISC", "PER")


def test_a_tag_set_of_types_has_what_spells_their_spans():
    assert TagSet.of_types(["PER", "LOC"]) == BIO


@given(st.text(min_size=1, max_size=4).filter(lambda tag: tag != "O"))
@example("N-1")
@example("E-A-B")
def test_the_type_of_a_tag_is_the_type_of_its_span(tag):
    assert TagSet((tag,)).types == (spans([tag])[0].type,)


@given(st.lists(st.one_of(tags, soft_rows())))
def test_rows_sum_to_one_and_hold_the_weights(rows):
    array = BIO.rows(sentence(*rows))

    assert array.shape == (len(rows), 5)
    assert array.dtype == np.float32
    np.testing.assert_allclose(array.sum(axis=1), 1, atol=1e-5)
    for own, row in zip(array, rows, strict=True):
        expected = {row: 1.0} if isinstance(row, str) else row
        assert {
            tag: weight for tag, weight in zip(BIO.tags, own.tolist(), strict=True) if weight
        } == pytest.approx(expected)


def test_a_missing_row_is_all_nan_and_no_other_row_is():
    array = BIO.rows(sentence("O", None, {"O": 0.5, "B-PER": 0.5}))

    assert np.isnan(array).all(axis=1).tolist() == [False, True, False]
    assert np.isnan(array).any(axis=1).tolist() == [False, True, False]


@given(st.lists(st.one_of(st.none(), tags, soft_rows())))
def test_row_inverts_rows(rows):
    back = sentence(*(BIO.row(array) for array in BIO.rows(sentence(*rows))))

    for row, own in zip(rows, back.tags, strict=True):
        assert (own == row) if not isinstance(row, dict) else (dict(own) == pytest.approx(row))


def test_an_array_with_all_of_its_weight_on_one_tag_is_a_hard_row():
    assert BIO.row(np.array([0, 0, 1, 0, 0], dtype=np.float32)) == "B-PER"


def test_a_row_of_many_small_weights_is_still_a_row_that_sums_to_one():
    many = TagSet.ordered([f"T{i}" for i in range(1000)])
    weights = np.random.default_rng(0).dirichlet(np.full(1000, 0.1)).astype(
        np.float32
    ) * np.float32(1.001)

    assert sum(sentence(many.row(weights)).tags[0].values()) == pytest.approx(1, abs=1e-9)


def test_tag_sets_with_the_same_tags_are_equal():
    names = list(BIO.tags)
    random.Random(0).shuffle(names)

    assert TagSet.ordered(names) == BIO
    assert hash(TagSet.ordered(names)) == hash(BIO)
