"""Masking: what may be hidden, how it is shown, and that rows lose nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqmix.tagger.adaptation.masking import Rows, Vocabulary, batches, drawn, each_once, rows_of
from seqmix.tagger.windows import WordPieces
from tests.support import tiny

TOKENIZER = tiny.bert_tokenizer()
VOCABULARY = Vocabulary.of(TOKENIZER)
CPU = torch.device("cpu")
PAD, UNK, CLS, SEP, MASK = range(5)
words = st.one_of(
    st.sampled_from(tiny.WORDS),
    st.text("abcXYZ", min_size=1, max_size=6),
    st.sampled_from(["[MASK]", "[UNK]", "é"]),
)
texts = st.lists(st.lists(words, min_size=1, max_size=40), min_size=1, max_size=12)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def laid(sentences, limit: int = 24, **more) -> Rows:
    return rows_of(sentences, WordPieces(TOKENIZER, limit), VOCABULARY.special, **more)


def unit_pieces(rows: Rows) -> list[tuple[int, ...]]:
    """The pieces of each unit that can be hidden, in their order."""
    flat_units, flat_ids = rows.units.ravel(), rows.ids.ravel()
    return [
        tuple(flat_ids[flat_units == unit].tolist())
        for unit in range(1, rows.n_units + 1)
        if (flat_units == unit).any()
    ]


def may_be_hidden(sentences, limit: int = 24) -> list[tuple[int, ...]]:
    pieces = WordPieces(TOKENIZER, limit)
    known = [word for tokens in sentences for word in pieces.words(tokens)]
    return [word[: pieces.room] for word in known if not VOCABULARY.special[list(word)].any()]


@given(texts)
def test_each_word_can_be_hidden_in_exactly_one_place_and_whole(sentences):
    """Long sentences overlap in windows; words with a special or unknown piece are never hidden."""
    assert sorted(unit_pieces(laid(sentences))) == sorted(may_be_hidden(sentences))


@given(texts)
def test_a_unit_stands_in_one_window_without_a_gap(sentences):
    rows = laid(sentences)
    for unit in np.unique(rows.units[rows.units > 0]):
        at = np.flatnonzero(rows.units.ravel() == unit)
        assert at.tolist() == list(range(at[0], at[-1] + 1))
        assert len(set(rows.segments.ravel()[at])) == 1


@given(texts)
def test_every_window_stands_in_a_row_from_its_first_piece_to_its_last(sentences):
    rows = laid(sentences, first_position=5, pad=UNK)
    expected = sorted(
        tuple(w.ids.tolist()) for own in WordPieces(TOKENIZER, 24).encode(sentences) for w in own
    )
    actual = []
    for row in range(len(rows)):
        for number in range(1, rows.segments[row].max() + 1):
            inside = rows.segments[row] == number
            actual.append(tuple(rows.ids[row][inside].tolist()))
            assert rows.positions[row][inside].tolist() == list(range(5, 5 + inside.sum()))

    assert sorted(actual) == expected
    padding = rows.segments == 0
    assert (rows.ids[padding] == UNK).all()
    assert (rows.units[padding] == 0).all()


def test_rows_waste_next_to_nothing():
    lengths = rng().integers(1, 30, 2000)
    rows = laid([["the"] * n for n in lengths], limit=64)

    assert (rows.segments > 0).mean() > 0.98
    assert rows.ids.shape[1] == 64


def test_an_encoder_that_cannot_pack_gets_one_window_a_row_as_wide_as_the_longest():
    rows = laid([["the"] * 3, ["in"] * 7], limit=64, together=False)

    assert rows.ids.shape == (2, 9)
    assert rows.segments.max() == 1


def test_pieces_are_units_when_words_are_not_kept_whole():
    sentences = [["Lena", "xyz"], ["left", "abc", "[MASK]"]]

    assert sorted(unit_pieces(laid(sentences, whole_words=False))) == sorted(
        (piece,) for word in may_be_hidden(sentences) for piece in word
    )


def test_no_sentence_makes_no_row():
    rows = laid([])

    assert (len(rows), rows.n_units) == (0, 0)


def epoch(rows: Rows, hidden, n: int = 1, seed: int = 0):
    return list(
        batches(rows, hidden, rng(seed).permutation(len(rows)), n, VOCABULARY, rng(seed), CPU)
    )


@given(texts, st.integers(1, 5), st.integers(0, 2**32))
def test_a_batch_differs_from_the_text_at_hidden_places_only_and_knows_the_truth(
    sentences, n, seed
):
    rows = laid(sentences)
    n = min(n, len(rows))
    order = rng(seed).permutation(len(rows))
    hidden = drawn(rows, 0.4, rng(seed))
    seen, at_all = [], 0
    for batch in batches(rows, hidden, order, n, VOCABULARY, rng(seed), CPU):
        restored = batch.ids.clone().ravel()
        restored[batch.at] = batch.truth
        seen.append(restored.view_as(batch.ids))
        at_all += len(batch.at)
        assert abs(len(batch.ids) - len(rows) / n) < 1

    assert torch.equal(torch.cat(seen), torch.from_numpy(rows.ids[order]))
    assert at_all == (hidden[rows.units] & (rows.units > 0)).sum()


def test_eight_in_ten_hidden_pieces_show_the_mask_one_another_piece_one_itself():
    rows = laid([["the", "Lena", "xyz", "Oslo"]] * 3000)
    (batch,) = epoch(rows, np.ones(rows.n_units + 1, dtype=bool))
    shown = batch.ids.ravel()[batch.at]

    assert (shown == MASK).float().mean() == pytest.approx(0.8, abs=0.01)
    assert (shown == batch.truth).float().mean() == pytest.approx(0.1, abs=0.01)
    assert not VOCABULARY.special[shown[shown != MASK].numpy()].any()
    assert len(shown[shown != MASK].unique()) == len(VOCABULARY.ordinary)


def test_so_many_words_are_hidden_and_others_each_time():
    rows = laid([["the", "Lena", "xyz", "Oslo"]] * 3000)
    generator = rng()
    first, second = drawn(rows, 0.2, generator), drawn(rows, 0.2, generator)

    assert first[rows.units[rows.units > 0]].mean() == pytest.approx(0.2, abs=0.01)
    assert (first & second).mean() == pytest.approx(0.04, abs=0.01)


@given(texts, st.floats(0.05, 0.95))
def test_the_held_out_masks_hide_each_word_once(sentences, share):
    rows = laid(sentences)
    masks = each_once(rows, share, rng())

    assert (np.sum(masks, axis=0) == 1).all()


def test_special_pieces_are_the_named_ones_and_the_spare_entries():
    tokenizer = tiny.bert_tokenizer()
    tokenizer.add_tokens(["[unused1]"])
    vocabulary = Vocabulary.of(tokenizer)

    assert np.flatnonzero(vocabulary.special).tolist() == [
        PAD,
        UNK,
        CLS,
        SEP,
        MASK,
        len(tokenizer) - 1,
    ]
    assert vocabulary.mask == MASK
    assert len(vocabulary.ordinary) == len(tokenizer) - 6
