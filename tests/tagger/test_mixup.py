"""Mixup on the fly: embeddings and tag rows are mixed inside the tagger, not written as text."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.batches import pack
from seqmix.tagger.network import Mixup
from seqmix.tagger.training.schedule import draw_mixup
from tests.support import tiny

TAGS = TagSet.ordered(["O", "B-PER", "B-LOC"])
SENTENCES = [
    Sentence("a", ("Lena", "lives", "in", "Oslo"), ("B-PER", "O", "O", "B-LOC")),
    Sentence("b", ("Ada", "left"), ("B-PER", "O")),
    Sentence(
        "c", ("the", "Rome", "of", "Bo", "and", "Smith"), ("O", "B-LOC", "O", "B-PER", "O", "B-PER")
    ),
]


def started(encoder: str) -> tuple[Tagger, object]:
    tagger = Tagger(encoder).start(TAGS, np.random.default_rng(0))
    return tagger, pack(tagger.pieces.encode(s.tokens for s in SENTENCES))


def test_every_word_has_a_partner_of_another_sentence_at_its_place(bert: str) -> None:
    lengths = (4, 2, 6)
    rows = [np.zeros((length, 3), dtype=np.float32) for length in lengths]
    mixup = draw_mixup(rows, Settings(mixup=8.0), np.random.default_rng(1))
    assert mixup is not None
    starts = [0, 4, 6]

    assert len(mixup.partners) == len(mixup.weights) == 12
    assert float(mixup.weights.min()) >= 0.5 and float(mixup.weights.max()) <= 1
    for own, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        partners = mixup.partners[start : start + length].tolist()
        owner = {max(s for s in starts if s <= p) for p in partners}
        assert len(owner) == 1
        first = owner.pop()
        size = lengths[starts.index(first)]
        assert partners == [first + t % size for t in range(length)]
        assert len(set(mixup.weights[start : start + length].tolist())) == 1, own


def test_a_weight_of_one_changes_nothing_and_a_smaller_one_moves_only_towards_the_partner(
    still_bert: str,
) -> None:
    tagger, batch = started(still_bert)
    network = tagger.network
    partners = torch.arange(11, -1, -1)
    with torch.no_grad():
        plain = network.hidden(batch)
        same = network.hidden(batch, Mixup(partners, torch.ones(12)))
        mixed = network.hidden(batch, Mixup(partners, torch.full((12,), 0.6)))
        states = network.encoder.get_input_embeddings()(batch.ids)
        moved = Mixup(partners, torch.full((12,), 0.6)).states(states, batch.words)
        embedded, words = moved.flatten(0, 1)[batch.words], states.flatten(0, 1)[batch.words]

    torch.testing.assert_close(same, plain)
    assert (mixed - plain).abs().max() > 1e-3
    torch.testing.assert_close(embedded, 0.6 * words + 0.4 * words.flip(0))


def test_words_can_be_mixed_on_their_way_into_a_layer(still_bert: str) -> None:
    tagger, batch = started(still_bert)
    network = tagger.network
    partners = torch.arange(11, -1, -1)
    seen = []
    watch = network.encoder.encoder.layer[1].register_forward_hook(
        lambda _, inputs, __: seen.append(inputs[0].flatten(0, 1)[batch.words])
    )
    with torch.no_grad(), watch:
        network.hidden(batch)
        network.hidden(batch, Mixup(partners, torch.full((12,), 0.6), layer=1))
        network.hidden(batch)

    plain, mixed, after = seen
    torch.testing.assert_close(mixed, 0.6 * plain + 0.4 * plain.flip(0))
    torch.testing.assert_close(after, plain)


def test_partners_of_the_same_tag_may_be_in_any_sentence_and_keep_the_tags() -> None:
    rows = [np.eye(3, dtype=np.float32)[list(tags)] for tags in ((1, 0, 0, 2), (1, 0), (0, 2))]
    settings = Settings(mixup=8.0, mixup_partners="tag", mixup_layer=2)
    pairs = draw_mixup(rows, settings, np.random.default_rng(3))
    tags = np.concatenate(rows).argmax(axis=1)

    assert pairs is not None and pairs.layer == 2
    assert (tags[pairs.partners] == tags).all()
    assert sorted(pairs.partners.tolist()) == list(range(8))
    assert (pairs.partners != np.arange(8)).any()


def test_training_with_mixup_learns_and_repeats(bert: str) -> None:
    corpus = tiny_corpus()
    runs = []
    for _ in range(2):
        tagger = Tagger(bert, settings=Settings(steps=30, lr=1e-3, mixup=8.0, batch_size=4)).fit(
            corpus, np.random.default_rng(0)
        )
        runs.append(next(tagger.probabilities(corpus[:1])))
    plain = Tagger(bert, settings=Settings(steps=30, lr=1e-3, batch_size=4)).fit(
        corpus, np.random.default_rng(0)
    )

    assert np.array_equal(*runs)
    assert not np.allclose(runs[0], next(plain.probabilities(corpus[:1])))


def test_a_missing_row_stays_missing_when_mixed(bert: str) -> None:
    corpus = [
        Sentence("a", ("Lena", "left"), ("B-PER", None)),
        Sentence("b", ("Oslo", "left"), ("B-LOC", "O")),
    ]
    tagger = Tagger(bert, settings=Settings(steps=3, lr=1e-3, mixup=1.0)).fit(
        corpus, np.random.default_rng(0), TAGS
    )

    assert np.isfinite(next(tagger.probabilities(corpus[:1]))).all()


@pytest.mark.parametrize("alpha", [0, -1])
def test_an_alpha_that_is_no_beta_distribution_is_refused(alpha: float) -> None:
    with pytest.raises(ConfigError, match="mixup"):
        Settings(mixup=alpha)


def tiny_corpus() -> list[Sentence]:
    names, places = tiny.WORDS[4:5] + tiny.WORDS[13:17], tiny.WORDS[5:8]
    return [
        Sentence(f"{n}{p}", (n, "lives", "in", p), ("B-PER", "O", "O", "B-LOC"))
        for n in names
        for p in places
    ]
