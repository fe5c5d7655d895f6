"""What a policy sees of the pool is what the tagger says of each sentence, under its id."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.testing import WordTagger
from tests.support.small_loops import TAGS, corpus

GOLD = corpus(12)
POOL = Pool.of(GOLD[8:], GOLD[:8])
IDS = list(POOL.unlabeled)


def fitted(sentences=GOLD[:8]) -> WordTagger:
    return WordTagger(TAGS).fit(sentences, np.random.default_rng(0))


def viewed(tagger: WordTagger | None = None, committee=list, history=None) -> TaggerView:
    return TaggerView(POOL, tagger or fitted(), committee, history or {}, np.random.default_rng(0))


def test_every_opinion_is_the_taggers_own_on_that_sentence() -> None:
    view, tagger, unlabeled = viewed(), fitted(), list(POOL.unlabeled.values())

    assert [sentence.id for sentence in view.sentences()] == IDS
    for (id, probs), expected in zip(view.probs(), tagger.probabilities(unlabeled), strict=True):
        assert id in IDS and np.array_equal(probs, expected)
    assert list(view.unsure("entropy")) == list(
        zip(IDS, tagger.unsure(unlabeled, "entropy"), strict=True)
    )
    paths = [best[0] for best in tagger.best_paths(unlabeled)]
    assert list(view.paths()) == [
        (id, path.tags, path.probability) for id, path in zip(IDS, paths, strict=True)
    ]
    assert [(id, probs.shape) for id, probs in view.dropped(3)] == [
        (id, (3, len(POOL.unlabeled[id]), 3)) for id in IDS
    ]


def test_embeddings_are_means_over_tokens_of_the_pool_and_of_what_is_labeled() -> None:
    view, tagger = viewed(), fitted()

    for (id, vector), states in zip(
        view.embeddings(), tagger.embeddings(POOL.unlabeled.values()), strict=True
    ):
        assert vector.tolist() == pytest.approx(states.mean(axis=0).tolist()), id
    expected = [states.mean(axis=0).tolist() for states in tagger.embeddings(POOL.labeled.values())]
    assert view.labeled_embeddings().tolist() == expected and len(expected) == 8


def test_a_committee_is_trained_once_and_only_when_votes_are_asked_for() -> None:
    trained = []

    def committee():
        trained.append(1)
        return [fitted(GOLD[:4]), fitted(GOLD[4:8])]

    view = viewed(committee=committee)
    assert not trained

    first, second = list(view.votes()), list(view.votes())

    assert trained == [1] and [id for id, _ in first] == [id for id, _ in second] == IDS
    members = [list(member.probabilities(POOL.unlabeled.values())) for member in committee()]
    for at, (_, votes) in enumerate(first):
        assert votes.tolist() == [member[at].argmax(axis=1).tolist() for member in members]


class Short(WordTagger):
    """A tagger that forgets the last sentence."""

    def probabilities(self, sentences):
        return islice(super().probabilities(sentences), len(IDS) - 1)

    def embeddings(self, sentences):
        return islice(super().embeddings(sentences), len(IDS) - 1)

    def dropped(self, sentences, passes, rng):
        return islice(super().dropped(sentences, passes, rng), len(IDS) - 1)


@pytest.mark.parametrize(
    "ask",
    [
        TaggerView.probs,
        TaggerView.paths,
        TaggerView.embeddings,
        TaggerView.votes,
        lambda v: v.unsure("entropy"),
        lambda v: v.dropped(2),
    ],
)
def test_a_tagger_that_leaves_a_sentence_out_is_an_error_and_never_another_sentences_score(
    ask,
) -> None:
    tagger = Short(TAGS, fitted().counts)

    with pytest.raises(ValueError, match="shorter"):
        list(ask(viewed(tagger, committee=lambda: [tagger])))


def test_the_past_is_shown_as_it_was_kept_and_a_tagger_without_tags_is_refused() -> None:
    past = {IDS[0]: [["O"]]}
    assert viewed(history=past).history() is past

    tagger = fitted()
    tagger.tag_set = None
    with pytest.raises(ValueError, match="has a tag set"):
        viewed(tagger)
