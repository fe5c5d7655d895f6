from collections import defaultdict
from importlib.resources import files

import pytest

from seqmix.data.samples import is_sample, sample
from seqmix.data.scheme import detect, is_legal
from seqmix.data.spans import spans
from seqmix.errors import DataError

SPLITS = ("train", "dev", "test", "reserve")
ENTITIES = {split: sample(f"gazette:{split}") for split in SPLITS}
TRIGGERS = {split: sample(f"gazette-triggers:{split}") for split in SPLITS}
BOTH = pytest.mark.parametrize("corpus", [ENTITIES, TRIGGERS], ids=["entities", "triggers"])


def everything(corpus):
    return [(split, sentence) for split in SPLITS for sentence in corpus[split]]


def places(names):
    """Where each name stands, from (name, split, sentence id): {name: {(split, id), …}}."""
    actual = defaultdict(set)
    for name, split, id in names:
        actual[name].add((split, id))
    return actual


def mentions():
    """Every entity as (type, lower-case tokens, split, sentence id): London and LONDON are one."""
    for split, sentence in everything(ENTITIES):
        for span in spans(sentence.tags):
            yield (
                span.type,
                tuple(token.casefold() for token in sentence.tokens[span.start : span.end]),
                split,
                sentence.id,
            )


def scattered(actual):
    return {name: where for name, where in actual.items() if len({split for split, _ in where}) > 1}


@BOTH
def test_the_splits_have_their_sizes(corpus):
    assert {split: len(sentences) for split, sentences in corpus.items()} == {
        "train": 500,
        "dev": 100,
        "test": 200,
        "reserve": 100,
    }


@BOTH
def test_ids_differ_and_name_their_split(corpus):
    ids = [sentence.id for _, sentence in everything(corpus)]

    assert len(set(ids)) == len(ids) == 900
    assert all(sentence.id.startswith(f"{split}:") for split, sentence in everything(corpus))


def test_both_corpora_label_the_same_sentences():
    assert [(s.id, s.tokens) for _, s in everything(ENTITIES)] == [
        (s.id, s.tokens) for _, s in everything(TRIGGERS)
    ]


def test_no_sentence_stands_twice():
    texts = [" ".join(sentence.tokens).casefold() for _, sentence in everything(ENTITIES)]

    assert len(set(texts)) == len(texts)


def test_no_rare_entity_stands_in_two_splits():
    actual = places((mention, split, id) for _, mention, split, id in mentions())

    rare = {mention: where for mention, where in actual.items() if len(where) <= 3}
    assert len(rare) > 500
    assert scattered(rare) == {}
    assert scattered(actual)  # frequent names may be shared, as in life


def test_no_surname_stands_in_two_splits():
    actual = places(
        (mention[-1], split, id) for type, mention, split, id in mentions() if type == "PER"
    )

    assert len(actual) > 100
    assert scattered(actual) == {}


@BOTH
def test_every_tag_is_hard_and_legal_bio(corpus):
    for _, sentence in everything(corpus):
        assert sentence.hard
        assert is_legal(sentence.tags, "BIO"), sentence
    assert (
        detect(tag for _, sentence in everything(corpus) for tag in (*sentence.tags, "O")) == "BIO"
    )


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_has_every_type_and_no_other(split):
    def types(corpus):
        return {span.type for sentence in corpus[split] for span in spans(sentence.tags)}

    assert types(ENTITIES) == {"PER", "ORG", "LOC", "MISC"}
    assert types(TRIGGERS) == {
        "Life",
        "Movement",
        "Transaction",
        "Conflict",
        "Contact",
        "Personnel",
        "Justice",
        "Contest",
    }


@pytest.mark.parametrize("split", SPLITS)
def test_every_split_is_as_hard_as_real_text(split):
    sentences = ENTITIES[split]

    assert sum(set(sentence.tags) == {"O"} for sentence in sentences) >= 0.2 * len(sentences)
    assert any(len(sentence) > 40 for sentence in sentences)
    assert any(
        len(sentence) > 3 and " ".join(sentence.tokens).isupper() and spans(sentence.tags)
        for sentence in sentences
    )


def test_no_token_is_empty_or_holds_white_space():
    assert all(
        token.split() == [token]
        for _, sentence in everything(ENTITIES)
        for token in sentence.tokens
    )


def test_the_guidelines_travel_with_the_corpus_and_explain_every_type():
    guidelines = (files("seqmix.data.samples") / "gazette" / "GUIDELINES.md").read_text(
        encoding="utf-8"
    )

    for corpus in (ENTITIES, TRIGGERS):
        for type in {
            span.type for _, sentence in everything(corpus) for span in spans(sentence.tags)
        }:
            assert f"\n| {type} |" in guidelines


def test_without_a_split_a_sample_is_the_training_set():
    assert sample("gazette") == ENTITIES["train"]
    assert sample("gazette-triggers") == TRIGGERS["train"]


def test_a_sample_is_told_from_a_file():
    assert is_sample("gazette")
    assert is_sample("gazette-triggers:dev")
    assert not is_sample("gazette.conll")
    assert not is_sample("data/gazette")


@pytest.mark.parametrize("name", ["gazete", "gazette:training", "gazette:train:1"])
def test_an_unknown_sample_is_an_error_that_names_the_known_ones(name):
    with pytest.raises(DataError) as caught:
        sample(name)

    assert repr(name) in str(caught.value)
    assert "gazette-triggers" in str(caught.value)
    assert ":reserve" in str(caught.value)
