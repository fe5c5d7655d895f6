"""The tagger for tests does all that a tagger does, the same way each time."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.scheme import legal_moves
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import DataError, ModelError
from seqmix.protocols import Tagger
from seqmix.query.uncertainty import token_entropy
from seqmix.testing import WordTagger

LABELED = [
    Sentence("a", ("Lena", "left", "New", "York"), ("B-PER", "O", "B-LOC", "I-LOC")),
    Sentence("b", ("York", "left"), ({"B-LOC": 0.75, "O": 0.25}, None)),
]
TAGS = TagSet.of(LABELED)
NEW = [Sentence("c", ("Lena", "saw", "New", "York")), Sentence("d", ())]


def trained() -> WordTagger:
    return WordTagger().fit(LABELED, np.random.default_rng(0))


def test_it_is_a_tagger() -> None:
    tagger: Tagger = trained()  # checked by mypy where tests are; here by use

    assert tagger.tag_set == TAGS
    answers = (
        tagger.probabilities(NEW),
        tagger.unsure(NEW, "margin"),
        tagger.best_paths(NEW),
        tagger.predict(NEW),
        tagger.embeddings(NEW),
        tagger.dropped(NEW, 3, np.random.default_rng(0)),
    )
    assert [len(list(each)) for each in answers] == [len(NEW)] * 6


def test_a_probability_is_a_count_and_an_unseen_word_may_be_anything() -> None:
    lena, saw, _, york = next(trained().probabilities(NEW))

    assert lena[TAGS.id("B-PER")] == pytest.approx(10 / 14)
    assert saw == pytest.approx([1 / 5] * 5)
    assert york[TAGS.id("B-LOC")] == pytest.approx((1 + 9 * 0.75) / (5 + 9 * 2))


def test_words_are_counted_anew_or_on_top_and_a_twin_is_left_alone() -> None:
    tagger = trained()
    twin = tagger.twin()
    more = [Sentence("e", ("Bo",), ("B-PER",))]

    assert set(tagger.fit(more, warm=True).counts) == {"Lena", "left", "New", "York", "Bo"}
    assert set(tagger.fit(more).counts) == {"Bo"}
    assert set(twin.counts) == {"Lena", "left", "New", "York"}
    assert twin.start(TAGS).counts == {}


def test_the_same_sentences_and_seed_are_the_same_file_and_it_is_read_back(tmp_path: Path) -> None:
    trained().save(tmp_path / "one")
    trained().save(tmp_path / "two")
    WordTagger().fit(LABELED, np.random.default_rng(1)).save(tmp_path / "three")

    one, two, three = (
        (tmp_path / name / "words.json").read_bytes() for name in ("one", "two", "three")
    )
    assert one == two != three
    assert vars(WordTagger.load(tmp_path / "one")) == vars(trained())


def test_before_training_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="not trained yet"):
        WordTagger().save(tmp_path)
    with pytest.raises(DataError, match="no labeled sentence"):
        WordTagger().fit(NEW)


def test_dropout_follows_the_generator() -> None:
    def passes(seed: int) -> np.ndarray:
        return next(trained().dropped(NEW, 4, np.random.default_rng(seed)))

    assert passes(0).sum(axis=2) == pytest.approx(1)
    assert (passes(0) == passes(0)).all() and not (passes(0) == passes(1)).all()
    assert not (passes(0)[0] == passes(0)[1]).all()


def test_how_unsure_it_is_follows_from_its_probabilities() -> None:
    tagger = trained()

    assert next(tagger.unsure(NEW, "entropy")) == token_entropy(next(tagger.probabilities(NEW)))


class Random(WordTagger):
    """Any probabilities."""

    def odds(self, word: str) -> list[float]:
        return list(np.random.default_rng(int(word)).dirichlet(np.ones(len(TAGS))))


@given(st.lists(st.integers(0, 9999), max_size=4), st.integers(1, 6), st.booleans())
def test_the_best_paths_are_those_of_brute_force(words: list[int], n: int, legal: bool) -> None:
    sentence = Sentence("x", tuple(map(str, words)))
    tagger = Random(TAGS)
    (paths,) = tagger.best_paths([sentence], n, legal, by_token=True)

    (probs,) = tagger.probabilities([sentence])
    start, moves, end = legal_moves(TAGS)
    every = []
    for ids in product(range(len(TAGS)), repeat=len(words)):
        allowed = not ids or (
            start[ids[0]] and end[ids[-1]] and all(moves[a, b] for a, b in pairwise(ids))
        )
        if allowed or not legal:
            every.append(float(np.prod([probs[at, id] for at, id in enumerate(ids)])))
    assert [path.probability for path in paths] == pytest.approx(sorted(every)[::-1][:n], rel=1e-5)
    for path in paths:
        assert path.by_token == tuple(
            float(probs[at, TAGS.id(tag)]) for at, tag in enumerate(path.tags)
        )
