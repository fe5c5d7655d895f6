"""Words to pieces to rows and back: no word is lost or read twice, and packing changes nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AlbertConfig, AlbertModel

from seqmix.data.sentence import Sentence
from seqmix.starter import load_encoder
from seqmix.tagger import Settings, Tagger, windows
from seqmix.tagger.batches import pack, spread
from seqmix.tagger.network import Network
from seqmix.tagger.windows import Window, WordPieces, by_length, special_pieces
from tests.support import tiny

TOKENIZER = tiny.bert_tokenizer()
CLS, SEP, UNK = TOKENIZER.cls_token_id, TOKENIZER.sep_token_id, TOKENIZER.unk_token_id

words = (
    st.text("abcXYZ019", min_size=1, max_size=12) | st.sampled_from(tiny.WORDS) | st.just("\u200b")
)
sentences = st.lists(words, max_size=40)


@given(sentences, st.integers(3, 24), st.integers(0, 12))
def test_every_word_is_owned_exactly_once_by_a_window_that_holds_its_first_piece(
    tokens, limit, overlap
):
    cutter = WordPieces(TOKENIZER, limit, overlap)
    (windows,) = cutter.encode([tokens])

    owned = [int(word) for window in windows for word in window.words]
    assert owned == list(range(len(tokens)))  # each once, and in order
    for window in windows:
        assert len(window.ids) <= limit
        assert (window.ids[0], window.ids[-1]) == (CLS, SEP)
        firsts = [cutter.words([tokens[word]])[0][0] for word in window.words]
        assert window.ids[window.at].tolist() == firsts


@given(sentences, st.integers(3, 24))
def test_a_window_is_a_stretch_of_the_sentence(tokens, limit):
    cutter = WordPieces(TOKENIZER, limit)
    pieces = [piece for word in cutter.words(tokens) for piece in word[: cutter.room]]
    (windows,) = cutter.encode([tokens])

    for window in windows:
        inner = window.ids[1:-1].tolist()
        assert any(pieces[start : start + len(inner)] == inner for start in range(len(pieces)))


@given(st.integers(1, 200), st.integers(8, 40), st.integers(0, 12))
def test_a_word_in_an_overlap_is_read_where_it_has_surroundings(n, limit, overlap):
    cutter = WordPieces(TOKENIZER, limit, overlap)
    (windows,) = cutter.encode([["the"] * n])

    half = cutter.overlap // 2
    for window in windows:
        left, right = window.at - 1, len(window.ids) - 2 - window.at
        assert (left >= np.minimum(window.words, half)).all()
        assert (right >= np.minimum(n - 1 - window.words, half)).all()


def test_neighboring_windows_overlap_by_as_many_pieces_as_asked():
    (windows,) = WordPieces(TOKENIZER, limit=22, overlap=4).encode([[*tiny.LETTERS]])

    for before, behind in itertools.pairwise(windows):
        assert before.ids[-5:-1].tolist() == behind.ids[1:5].tolist()


def test_a_sentence_that_fits_is_one_window_as_the_tokenizer_has_it():
    (windows,) = WordPieces(TOKENIZER, limit=64).encode([["Lena", "visited", "Bergen", "."]])

    (window,) = windows
    assert window.ids.tolist() == TOKENIZER("Lena visited Bergen .").input_ids
    assert window.at.tolist() == [1, 2, 3, 9]


def test_a_giant_word_is_cut_and_its_neighbors_stay():
    cutter = WordPieces(TOKENIZER, limit=16)
    (windows,) = cutter.encode([["the", "x" * 500, "of"]])

    assert max(len(window.ids) for window in windows) <= 16
    assert [int(w) for window in windows for w in window.words] == [0, 1, 2]


@pytest.mark.parametrize("token", ["\u200b", "\x01", "\ufeff", "\u00ad", " ", ""])
def test_a_word_without_pieces_is_the_unknown_piece(token):
    assert (
        TOKENIZER.backend_tokenizer.encode(
            [token], is_pretokenized=True, add_special_tokens=False
        ).ids
        == []
    )  # or this tests nothing

    assert WordPieces(TOKENIZER, limit=16).words(["Lena", token]) == [
        (TOKENIZER.convert_tokens_to_ids("Lena"),),
        (UNK,),
    ]


def test_an_empty_sentence_has_no_window():
    assert WordPieces(TOKENIZER, limit=16).encode([[], ["Lena"], []])[::2] == [[], []]


def test_padding_and_truncation_of_the_tokenizer_file_do_not_reach_words():
    """Some folders on the hub ship a tokenizer.json that pads to a fixed length."""
    padding = tiny.bert_tokenizer()
    padding.backend_tokenizer.enable_padding(length=20)
    padding.backend_tokenizer.enable_truncation(max_length=2)

    assert WordPieces(padding, limit=16).words(["Bergen"]) == WordPieces(TOKENIZER, limit=16).words(
        ["Bergen"]
    )


def test_special_pieces_are_what_the_tokenizer_puts_around():
    assert special_pieces(TOKENIZER) == ((CLS,), (SEP,))
    assert special_pieces(tiny.roberta_tokenizer()) == ((0,), (2,))


TEXTS = [
    ("Lena", "left", "Oslo", "."),
    ("Ada",),
    tuple("abcdefghij"),
    ("Mary", "Smith", "works", "in", "Bergen"),
    ("the", "Acme"),
]


def laid(windows, together, first_position):
    return (
        pack(windows, first_position)
        if together
        else spread(windows, torch.device("cpu"), first_position)[0]
    )


def network_of(folder: str) -> tuple[Network, WordPieces]:
    model, tokenizer = load_encoder(folder)
    return Network(model, 3, "linear", 0.1, torch.Generator().manual_seed(0)).eval(), WordPieces(
        tokenizer, 64
    )


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("together", [True, False])
def test_a_packed_row_gives_the_states_of_the_model_called_plainly_on_each_sentence(
    kind, together, request
):
    network, cutter = network_of(request.getfixturevalue(kind))
    windows = cutter.encode(TEXTS)

    with torch.inference_mode():
        batch = laid(windows, together, network.first_position)
        actual = network.hidden(batch).split(batch.lengths)
        for (window,), states in zip(windows, actual, strict=True):
            plain = network.encoder(input_ids=torch.from_numpy(window.ids)[None]).last_hidden_state[
                0
            ]
            torch.testing.assert_close(
                states, plain[torch.from_numpy(window.at)], atol=1e-5, rtol=0
            )
    assert (batch.ids.shape[0] < len(TEXTS)) == together


def test_the_starter_gives_packed_states_equal_to_single_ones():
    model, tokenizer = load_encoder()
    network = Network(model, 3, "linear", 0.1, torch.Generator().manual_seed(0)).eval()
    windows = WordPieces(tokenizer, 128).encode(TEXTS)

    with torch.inference_mode():
        batch = laid(windows, network.packs, network.first_position)
        for (window,), states in zip(
            windows, network.hidden(batch).split(batch.lengths), strict=True
        ):
            plain = network.encoder(input_ids=torch.from_numpy(window.ids)[None]).last_hidden_state[
                0
            ]
            torch.testing.assert_close(
                states, plain[torch.from_numpy(window.at)], atol=1e-5, rtol=1e-5
            )


def test_an_encoder_that_cannot_be_packed_gets_a_window_a_row_and_the_same_states():
    config = AlbertConfig(
        vocab_size=len(TOKENIZER),
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    network = Network(
        AlbertModel(config, add_pooling_layer=False),
        3,
        "linear",
        0.1,
        torch.Generator().manual_seed(0),
    ).eval()
    windows = WordPieces(TOKENIZER, 64).encode(TEXTS)

    with torch.inference_mode():
        batch = laid(windows, network.packs, network.first_position)
        assert batch.ids.shape[0] == len(TEXTS)
        for (window,), states in zip(
            windows, network.hidden(batch).split(batch.lengths), strict=True
        ):
            plain = network.encoder(input_ids=torch.from_numpy(window.ids)[None]).last_hidden_state[
                0
            ]
            torch.testing.assert_close(
                states, plain[torch.from_numpy(window.at)], atol=1e-5, rtol=0
            )


@given(
    st.lists(sentences, min_size=1, max_size=12),
    st.integers(3, 24),
    st.booleans(),
    st.integers(0, 3),
)
def test_a_batch_points_at_the_first_piece_of_each_word_in_the_sentences_order(
    texts, limit, together, first_position
):
    cutter = WordPieces(TOKENIZER, limit)
    batch = laid(cutter.encode(texts), together, first_position)

    assert batch.lengths == tuple(len(tokens) for tokens in texts)
    assert batch.positions.is_contiguous()  # torch does not pin a view that repeats itself
    expected = [pieces[0] for tokens in texts for pieces in cutter.words(tokens)]
    assert batch.ids.flatten()[batch.words].tolist() == expected
    assert (batch.segments.flatten()[batch.words] > 0).all()
    for segments, positions in zip(batch.segments, batch.positions, strict=True):
        for number in set(segments.tolist()) - {0}:
            own = positions[segments == number]
            assert own.tolist() == list(range(first_position, first_position + len(own)))


lengths = st.lists(st.lists(st.integers(3, 40), max_size=3), max_size=30)


@given(lengths, st.integers(1, 200))
def test_groups_by_length_cover_each_sentence_once_and_keep_to_the_budget(sizes, budget):
    windows = [
        [Window(np.zeros(n, dtype=np.int64), np.array([0]), np.array([1])) for n in own]
        for own in sizes
    ]
    groups = by_length(windows, budget)

    assert sorted(i for group in groups for i in group) == [i for i, own in enumerate(sizes) if own]
    for group in groups:
        padded = sum(len(sizes[i]) for i in group) * max(max(sizes[i]) for i in group)
        assert padded <= budget or len(group) == 1


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_a_sentence_longer_than_the_limit_gets_one_prediction_a_token(bert, head):
    tagger = Tagger(bert, head, Settings(steps=2)).fit(tiny.toy(4), np.random.default_rng(0))
    long = Sentence("long", tuple(["Lena", "visited", "Bergen", "and"] * 150))

    (probabilities,) = tagger.probabilities([long])
    (predicted,) = tagger.predict([long])

    assert probabilities.shape == (600, len(tagger.tag_set))
    assert probabilities.sum(1) == pytest.approx(1, abs=1e-4)
    assert len(predicted.tags) == 600
    assert predicted.hard


def test_a_long_sentence_trains_every_one_of_its_words(bert):
    tokens = tuple(["Lena", "left", "Oslo", "."] * 40)
    long = Sentence("long", tokens, tuple(["B-PER", "O", "B-LOC", "O"] * 40))
    tagger = Tagger(bert, "linear", Settings(steps=40, lr=1e-2)).fit(
        [long], np.random.default_rng(0)
    )

    (predicted,) = tagger.predict([long.unlabeled()])

    assert predicted.tags == long.tags


def test_a_roberta_reads_up_to_its_last_position_and_not_beyond(tmp_path):
    """66 positions hold 64 pieces: the first two are taken. The tokenizer tells no length here."""
    folder = tiny.write_roberta(tmp_path / "roberta", max_length=None)
    tagger = Tagger(folder, "linear", Settings(steps=1, max_pieces=128)).fit(
        tiny.toy(4), np.random.default_rng(0)
    )

    (probabilities,) = tagger.probabilities([Sentence("long", ("a",) * 100)])

    assert probabilities.shape[0] == 100


def test_a_tokenizer_that_pads_and_cuts_does_neither_here():
    plain, strange = tiny.bert_tokenizer(), tiny.bert_tokenizer()
    strange.backend_tokenizer.enable_padding(length=7)
    strange.backend_tokenizer.enable_truncation(2)
    cut = WordPieces(strange, 32)
    text = ("unaffable", "Lena", "left")

    strange(["Lena", "Lena left Oslo"], padding=True, truncation=True)  # as a pipeline does

    assert cut.words(text) == WordPieces(plain, 32).words(text)


def test_no_more_sentences_are_remembered_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(windows, "MAX_SENTENCES", 3)
    own = WordPieces(TOKENIZER, 20)
    texts = [(f"w{i}", "in", "Lena") for i in range(8)]

    several = [
        [len(windows[0].ids) for windows in own.encode(texts[i : i + 2])] for i in range(0, 8, 2)
    ]
    assert len(own.cached_windows) <= 3
    at_once = [len(windows[0].ids) for windows in own.encode(texts)]

    assert [size for pair in several for size in pair] == at_once
    assert len(own.cached_windows) <= 3


def test_no_more_words_are_known_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(windows, "MAX_WORDS", 5)
    own, free = WordPieces(TOKENIZER, 20), WordPieces(TOKENIZER, 20)
    free.words(f"w{i}" for i in range(12))

    for first in range(0, 12, 3):
        some = [f"w{i}" for i in range(first, first + 3)]
        assert own.words(some) == [free.cached_pieces[word] for word in some]
        assert len(own.cached_pieces) <= 5
    assert own.words(f"w{i}" for i in range(12)) == [free.cached_pieces[f"w{i}"] for i in range(12)]
