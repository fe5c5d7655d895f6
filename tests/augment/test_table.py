"""The table: exact nearest entries, what may be generated, where it comes from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.augment.table import Table
from seqmix.augment.table_sources import contextual_table, encoder_table, vocabulary_table
from seqmix.data.augmented import hubness
from seqmix.errors import ConfigError
from tests.support.tiny import bert_tokenizer
from tests.support.toys import WORDS, toy_sentences, toy_table


def brute_force(table: Table, query: np.ndarray, excluded: set[int]) -> int:
    ids = np.array([i for i in np.flatnonzero(table.starts) if i not in excluded])
    vectors = table.vectors[ids].astype(np.float64)
    if table.distance == "l2":
        far = np.sqrt(((vectors - query) ** 2).sum(1))
    else:
        cosine = (vectors @ query) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        far = -cosine if table.distance == "cosine" else -2 * cosine + table._crowding()[ids]
    return int(ids[np.argmin(far)])


@pytest.mark.parametrize("distance", ["l2", "cosine", "csls"])
@given(seed=st.integers(0, 1000), weight=st.floats(0, 1))
def test_the_nearest_entry_is_that_of_a_float64_search(
    distance: str, seed: int, weight: float
) -> None:
    table = toy_table(seed, distance=distance)
    rng = np.random.default_rng(seed)
    pairs = rng.integers(1, 41, size=(5, 2))
    queries = np.stack(
        [
            weight * table.vectors[a].astype(float) + (1 - weight) * table.vectors[b].astype(float)
            for a, b in pairs
        ]
    )

    ids, distances = table.nearest(queries, [{int(a), int(b)} for a, b in pairs])

    for query, (a, b), id, far in zip(queries, pairs, ids, distances, strict=True):
        assert id == brute_force(table, query, {int(a), int(b)})
        assert far == pytest.approx(table.exact(query, np.array([id]))[0])


def test_a_tie_goes_to_the_lowest_id_even_among_many_equal_entries() -> None:
    words = tuple(f"t{i}" for i in range(200))
    table = Table(
        words,
        np.ones((200, 4), dtype=np.float32),
        np.ones(200, bool),
        lambda w: (0,),
    )

    ids, _ = table.nearest(np.ones((3, 4)) * 0.9, [{0}, {0, 1}, set()])

    assert ids.tolist() == [1, 2, 0]


def test_float32_rounding_never_decides() -> None:
    base = np.random.default_rng(0).standard_normal(64) * 100
    vectors = np.stack([base + 1e-4 * i for i in range(50)]).astype(np.float32)
    table = Table(
        tuple(map(str, range(50))),
        vectors,
        np.ones(50, bool),
        lambda w: (int(w),),
    )
    query = (vectors[20].astype(float) + vectors[23]) / 2

    ids, _ = table.nearest(query[None], [{20, 23}])

    assert ids[0] == brute_force(table, query, {20, 23})


def test_the_starter_table_has_no_special_unused_or_continuing_entry() -> None:
    table = encoder_table()
    allowed = [word for word, ok in zip(table.words, table.starts, strict=True) if ok]

    assert len(table) == 28996
    assert 20_000 < len(allowed) < 28_900
    assert not [
        word
        for word in allowed
        if word.startswith(("##", "[unused"))
        or word in ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
    ]
    assert table.vector("Paris").tolist() == table.vectors[table.id("Paris")].astype(float).tolist()
    pieces = table.split("Kwasniewski")
    assert len(pieces) > 1
    np.testing.assert_allclose(
        table.vector("Kwasniewski"), table.vectors[list(pieces)].astype(float).mean(0)
    )


def test_what_may_be_generated_can_be_narrowed() -> None:
    sentences = toy_sentences()
    table = toy_table()
    seen = {token for s in sentences for token in s.tokens}

    assert {
        w
        for w, ok in zip(table.words, table.narrowed(sentences, seen=True).starts, strict=True)
        if ok
    } == seen
    assert (
        not {
            w
            for w, ok in zip(
                table.words, table.narrowed(sentences, min_count=3).starts, strict=True
            )
            if ok
        }
        - seen
    )
    with pytest.raises(ConfigError, match="no admissible entry"):
        table.narrowed(alphabetic=True)  # w1, w2, … have digits


def test_a_table_is_narrowed_by_nothing_that_was_not_asked_for() -> None:
    table = toy_table()

    assert table.narrowed(toy_sentences(2)).starts.tolist() == table.starts.tolist()


def test_csls_takes_off_twice_the_cosine_and_adds_the_mean_of_the_ten_nearest() -> None:
    table = toy_table(distance="csls")
    unit = table.vectors.astype(np.float64) / np.linalg.norm(
        table.vectors.astype(np.float64), axis=1, keepdims=True
    )
    query = np.arange(6) - 2.5
    starts = np.flatnonzero(table.starts)
    near = [np.sort(unit[[j for j in starts if j != i]] @ unit[i])[-10:].mean() for i in starts]

    expected = 1 - 2 * unit[starts] @ query / np.linalg.norm(query) + near
    assert table.exact(query, starts) == pytest.approx(expected, abs=1e-5)


def test_vocabularies_that_mark_the_start_of_words_are_read_so() -> None:
    tokenizer = bert_tokenizer()
    fill = max(tokenizer.all_special_ids) + 1
    words = ["x"] * fill + [
        "\u0120Lena",
        "ing",
        "\u2581Oslo",
        "\u0120",
        "a b",
        "\u0120a\x00",
        "\u0120a\ufffd",
        "",
    ]

    table = vocabulary_table(words, np.ones((len(words), 2)), tokenizer)

    assert [word for word, start in zip(table.words, table.starts, strict=True) if start] == [
        "Lena",
        "Oslo",
    ]


def test_an_entry_beside_the_parents_must_be_left() -> None:
    table = toy_table(words=WORDS[:2])
    with pytest.raises(ConfigError, match="beside the two parents"):
        table.nearest(np.zeros((1, 6)), [{1, 2}])


def test_contextual_embeddings_are_averaged_over_occurrences() -> None:
    sentences = toy_sentences(4)
    states = [
        np.random.default_rng(i).standard_normal((len(s), 3)) for i, s in enumerate(sentences)
    ]

    table = contextual_table(sentences, states)

    word = sentences[0].tokens[0]
    rows = [
        state[t]
        for s, state in zip(sentences, states, strict=True)
        for t, token in enumerate(s.tokens)
        if token == word
    ]
    np.testing.assert_allclose(table.vector(word), np.mean(rows, axis=0), rtol=1e-5)
    with pytest.raises(ConfigError, match="not in the table"):
        table.vector("elsewhere")


def test_hubness_sees_a_hub() -> None:
    even = hubness([f"w{i}" for i in range(100)], 1000)
    hub = hubness(["[MASK]"] * 90 + [f"w{i}" for i in range(10)], 1000)

    assert hub["largest_share"] == 0.9 and even["largest_share"] == 0.01
    assert hub["skewness"] > even["skewness"]


@pytest.mark.parametrize("distance", ["euclid", ""])
def test_an_unknown_distance_is_refused(distance: str) -> None:
    with pytest.raises(ConfigError, match="must be l2, cosine or csls"):
        toy_table(distance=distance)
