"""What stands around a sentence in its document, in both databases."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError
from seqmix.serve.answers.neighbors import neighbors
from seqmix.serve.store.sentences import add_sentences


@pytest.fixture
def documents(store):
    """Two documents of six sentences, and one sentence without a document."""
    texts = [(f"{name}:{i}", (name, "line", str(i))) for name in ("red", "blue") for i in range(6)]
    add_sentences(store, [Sentence(id, tokens) for id, tokens in (*texts, ("alone", ("alone",)))])
    return store


def around(store, id, **more):
    near = neighbors(store, id, **more)
    return [s.id for s in near.before], [s.id for s in near.after]


def test_neighbors_are_the_nearest_of_the_same_document_in_its_order(documents):
    assert around(documents, "red:4") == (["red:1", "red:2", "red:3"], ["red:5"])
    assert around(documents, "blue:0") == ([], ["blue:1", "blue:2", "blue:3"])
    assert around(documents, "blue:1", near=1) == (["blue:0"], ["blue:2"])
    assert neighbors(documents, "red:4").document == "red"


def test_a_sentence_without_a_document_has_no_neighbors(documents):
    assert (neighbors(documents, "alone").document, around(documents, "alone")) == (None, ([], []))


@pytest.mark.parametrize("id", ["nobody", "", "a\0b", "x" * 2000])
def test_an_unknown_sentence_is_not_found(documents, id):
    with pytest.raises(NotFoundError):
        neighbors(documents, id)
