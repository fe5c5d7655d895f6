import copy
import math
import pickle
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data import formats
from seqmix.data.sentence import Sentence, heaviest, unique_ids
from seqmix.data.spans import Entity
from seqmix.errors import DataError, TagError

tags = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])


@st.composite
def soft_rows(draw):
    parts = draw(st.dictionaries(tags, st.integers(1, 1000), min_size=2))
    return {tag: part / sum(parts.values()) for tag, part in parts.items()}


def one(row):
    """The row as a sentence of one token keeps it."""
    return Sentence("s1", ("Oslo",), (row,)).tags[0]


@given(soft_rows())
def test_a_soft_row_keeps_its_weights(row):
    assert one(row) == row
    assert sum(one(row).values()) == pytest.approx(1)


@given(soft_rows(), st.one_of(st.floats(0, 0.99), st.floats(1.01, 10)))
def test_a_row_that_does_not_sum_to_one_is_refused(row, factor):
    with pytest.raises(TagError):
        one({tag: weight * factor for tag, weight in row.items()})


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"O": 0.0},
        {"O": 0.5},
        {"O": 1.5, "B-PER": -0.5},
        {"O": 1.0, "B-PER": 0.5, "B-LOC": -0.5},
        {"O": 1.0, "B-PER": math.nan},
        {"O": math.inf},
        {"O": 1.0, "B-PER": 1.0},
    ],
    ids=str,
)
def test_a_row_that_is_no_distribution_is_refused_with_its_weights_shown(row):
    with pytest.raises(TagError) as caught:
        Sentence("s7", ("Oslo",), (row,))

    assert "'s7'" in str(caught.value)
    assert "sum to 1" in str(caught.value)
    assert str(row) in str(caught.value)


def test_rounding_in_the_weights_is_forgiven():
    assert one({"O": 0.33333, "B-PER": 0.33333, "B-LOC": 0.33333}) == {
        "O": 0.33333,
        "B-PER": 0.33333,
        "B-LOC": 0.33333,
    }


@given(tags)
def test_all_of_the_weight_on_one_tag_is_a_hard_row(tag):
    assert one({tag: 1}) == tag
    assert one({"X": 0.0, tag: 1.0, "Y": 0}) == tag


def test_a_tag_without_weight_is_no_part_of_the_row():
    assert one({"O": 0.5, "B-PER": 0.5, "B-LOC": 0.0}) == {"O": 0.5, "B-PER": 0.5}


def test_a_row_does_not_follow_the_mapping_it_came_from():
    given_row = {"O": 0.5, "B-PER": 0.5}
    sentence = Sentence("s1", ("Oslo",), (given_row,))
    given_row["O"] = 7

    assert sentence.tags[0] == {"O": 0.5, "B-PER": 0.5}


def test_nothing_in_a_sentence_can_be_changed():
    sentence = Sentence("s1", ["Oslo"], [{"O": 0.5, "B-PER": 0.5}])

    with pytest.raises(FrozenInstanceError):
        sentence.id = "s2"
    with pytest.raises(TypeError):
        sentence.tags[0]["O"] = 1.0
    assert sentence.tokens == ("Oslo",)


def test_no_tags_mean_that_no_token_is_labeled():
    sentence = Sentence("s1", ("Lena", "left"))

    assert sentence.tags == (None, None)
    assert not sentence.labeled
    assert not sentence.hard


def test_one_tag_row_a_token_is_needed():
    with pytest.raises(TagError, match="'s1' must have one tag row per token; got 2 tokens and 1"):
        Sentence("s1", ("Lena", "left"), ("B-PER",))


def test_an_empty_sentence_is_a_sentence():
    assert len(Sentence("s1", ())) == 0
    assert Sentence("s1", ()).tags == ()


def test_text_and_offsets_come_together_or_not_at_all():
    for text, offsets in (("Lena left", None), (None, ((0, 4), (5, 9))), ("Lena left", ((0, 4),))):
        with pytest.raises(DataError, match="'s1'"):
            Sentence("s1", ("Lena", "left"), text=text, offsets=offsets)


def test_labeled_and_hard_tell_whole_part_and_soft_labels_apart():
    def of(*rows):
        sentence = Sentence("s1", ("x",) * len(rows), rows)
        return sentence.labeled, sentence.hard

    assert of("O", "O") == (True, True)
    assert of("O", None) == (True, False)
    assert of("O", {"O": 0.5, "B-PER": 0.5}) == (True, False)
    assert of(None, None) == (False, False)


def test_a_sentence_is_labeled_anew_and_keeps_all_the_rest():
    before = Sentence("s1", ("Lena", "left"), ("B-PER", "O"), "Lena  left", ((0, 4), (6, 10)))
    after = before.with_tags(["O", None])

    assert after.tags == ("O", None)
    assert (after.id, after.tokens, after.text, after.offsets) == (
        before.id,
        before.tokens,
        before.text,
        before.offsets,
    )
    assert before.unlabeled() == Sentence(
        "s1", ("Lena", "left"), (), "Lena  left", ((0, 4), (6, 10))
    )
    with pytest.raises(TagError):
        before.with_tags(["O"])


def test_hardening_keeps_the_heaviest_tag_and_leaves_missing_rows_missing():
    sentence = Sentence("s1", ("Lena", "left", "Oslo"), ({"O": 0.4, "B-PER": 0.6}, None, "B-LOC"))

    assert sentence.hardened().tags == ("B-PER", None, "B-LOC")


@given(soft_rows())
def test_the_heaviest_tag_is_the_first_by_name_among_the_heaviest(row):
    assert heaviest(row) == sorted(tag for tag in row if row[tag] == max(row.values()))[0]


@given(st.lists(st.text(min_size=1, max_size=5)))
def test_tokens_are_found_at_their_offsets_when_the_text_is_not_known(tokens):
    text, offsets = Sentence("s1", tokens).located()

    assert text == " ".join(tokens)
    assert [text[start:end] for start, end in offsets] == tokens


def test_the_raw_text_is_used_where_it_is_known():
    assert Sentence("s1", ("do", "n't"), text="don't", offsets=((0, 2), (2, 5))).located() == (
        "don't",
        ((0, 2), (2, 5)),
    )


def test_two_sentences_with_one_id_are_refused():
    sentences = [Sentence("a", ("x",)), Sentence("b", ("y",))]

    assert unique_ids(iter(sentences)) == sentences
    with pytest.raises(DataError, match=r"the id 'a'.*found 'z z'"):
        unique_ids([*sentences, Sentence("a", ("z", "z"))])


@given(st.lists(st.one_of(st.none(), tags, soft_rows()), max_size=4))
def test_a_sentence_goes_to_a_worker_and_comes_back_the_same(rows):
    sentence = Sentence("s1", ("x",) * len(rows), tuple(rows))

    assert pickle.loads(pickle.dumps(sentence)) == sentence
    assert copy.deepcopy(sentence) == sentence


# From text, and back to entities


def test_entities_come_back_from_the_text_they_were_given_with():
    text, marked = "Lena Okafor left  Oslo.", [(0, 11, "PER"), (18, 22, "LOC")]

    sentence = Sentence.from_text(text, entities=marked)

    assert sentence.tags == ("B-PER", "I-PER", "O", "B-LOC", "O")
    assert sentence.entities() == [
        Entity("Lena Okafor", "PER", 0, 11),
        Entity("Oslo", "LOC", 18, 22),
    ]
    assert Sentence.from_text(text, entities=sentence.entities()) == sentence


def test_text_without_entities_is_not_labeled_and_named_after_its_text():
    sentence, same, other = (Sentence.from_text(t) for t in ("Lena left.", "Lena left.", "Lena."))

    assert not sentence.labeled and sentence.entities() == []
    assert sentence.id == same.id != other.id
    assert Sentence.from_text("Lena left.", "notes:1").id == "notes:1"
    assert Sentence.from_text("She left.", entities=[]).tags == ("O", "O", "O")


def test_an_entity_that_cuts_a_token_is_refused_or_expanded():
    with pytest.raises(TagError, match="must start and end where tokens do"):
        Sentence.from_text("Lena left", entities=[(0, 3, "PER")])

    sentence = Sentence.from_text("Lena left", entities=[(0, 3, "PER")], misaligned="expand")
    assert sentence.entities() == [Entity("Lena", "PER", 0, 4)]


@pytest.mark.parametrize(
    ("tags", "labels"),
    [
        (("I-PER", "B-PER", None), ["PER", "PER"]),
        (({"B-LOC": 0.7, "O": 0.3}, "O", "O"), ["LOC"]),
        (("NOUN", "NOUN", "VERB"), ["NOUN", "NOUN", "VERB"]),
        ((), []),
    ],
)
def test_entities_follow_the_tags(tags, labels):
    entities = Sentence("s1", ("Lena", "Bo", "left"), tags).entities()

    assert [entity.label for entity in entities] == labels
    assert all(entity.text in ("Lena", "Bo", "left") for entity in entities)


@pytest.mark.parametrize(
    ("tokens", "tags", "message"),
    [
        ("Lena left", (), "must be a list of words; Sentence.from_text"),
        (("Lena", "left"), "B-PER O", "must be a list with one tag per token"),
        (("Lena", 7), (), "must be strings; 's1' has 7"),
        (("Lena", "left"), (1, 0), "a tag must be a name such as B-PER"),
        (("Lena", "left"), ("O",), "one tag row per token; got 2 tokens and 1 tag rows"),
    ],
)
def test_other_types_are_refused(tokens, tags, message):
    with pytest.raises(DataError, match=message):
        Sentence("s1", tokens, tags)


@pytest.mark.parametrize("weight", [0, -0.5, 1.5, "much", float("nan")])
def test_a_weight_that_is_no_share_is_refused(weight):
    with pytest.raises(DataError, match="above 0 and at most 1; 's' has"):
        Sentence("s", ("Lena",), ("B-PER",), weight=weight)


def test_a_weight_is_written_and_read_where_it_is_not_one(tmp_path):
    sentences = [Sentence("a", ("Lena",), ("B-PER",), weight=0.3), Sentence("b", ("left",), ("O",))]

    formats.write(sentences, tmp_path / "weighted.jsonl", "jsonl-tokens")

    assert list(formats.read(tmp_path / "weighted.jsonl")) == sentences
    assert (tmp_path / "weighted.jsonl").read_text().count("weight") == 1
