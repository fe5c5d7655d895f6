"""Rankings, their figures, and generated sentences."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from seqmix.data.augmented import Augmented, Lineage
from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError, TagError
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import next_sentence, unlabeled_ids
from seqmix.serve.store.rankings import (
    publish_generation,
    read_generated,
    read_generations,
    set_veto,
    vetoed_ids,
)
from seqmix.serve.store.records import Generation, Notes, Rank, digest
from tests.support.stores import small_store, suggestion_of


def suggestion(tag: str = "PER") -> dict:
    return {"spans": [{"start": 0, "end": 1, "tag": tag, "confidence": 0.8}], "confidence": 0.7}


def rank(store, number: int, ids, **more) -> None:
    publish_generation(
        store,
        Generation(number, 0, **more),
        [Rank(id, 1 / (i + 1), suggestion()) for i, id in enumerate(ids)],
        pause=lambda: None,
    )


def test_a_ranking_orders_the_queue_and_carries_suggestions(store, anna):
    rank(store, 0, ["s:7", "s:2", "s:5"])

    order = []
    for _ in range(3):
        given = next_sentence(store, anna)
        order.append(given.sentence.id)
        assert (given.suggestion, given.generation) == (suggestion(), 0)
        save_answer(store, given.sentence.id, anna, "label", [], version=given.version)
    assert order == ["s:7", "s:2", "s:5"]
    assert [event.generation for event in read_events(store)] == [0, 0, 0]
    assert next_sentence(store, anna).suggestion is None


def test_a_newer_ranking_comes_first_and_the_older_follows(store, anna):
    rank(store, 0, [f"s:{i}" for i in range(10)])
    rank(store, 1, ["s:9", "s:4"])

    order = []
    while (given := next_sentence(store, anna)) is not None:
        order.append(given.sentence.id)
        save_answer(store, given.sentence.id, anna, "label", [], version=given.version)
    assert order == ["s:9", "s:4", "s:0", "s:1", "s:2", "s:3", "s:5", "s:6", "s:7", "s:8"]


def test_a_ranking_broken_off_is_still_an_order(store, anna):
    rank(store, 0, [f"s:{i}" for i in range(10)])
    with pytest.raises(NotFoundError):
        rank(store, 1, ["s:9", "nowhere"])

    assert [made.number for made in read_generations(store)] == [0]
    assert next_sentence(store, anna).sentence.id == "s:0"


@pytest.mark.parametrize("tag", ["ORG", "B-PER"])
def test_a_suggestion_with_an_unknown_tag_is_refused(store, tag):
    with pytest.raises(TagError, match="unknown tag"):
        publish_generation(store, Generation(0, 0), [Rank("s:1", 0.5, suggestion(tag))])


def test_the_suggestion_for_a_sentence_is_that_of_the_last_model_that_ranked_it(store, anna):
    assert suggestion_of(store, "s:3") == (None, None)
    rank(store, 4, ["s:3", "s:1"])
    rank(store, 5, ["s:1"])

    assert (suggestion_of(store, "s:3")[1], suggestion_of(store, "s:1")[1]) == (4, 5)
    assert suggestion_of(store, "s:3")[0]["spans"][0]["tag"] == "PER"


def test_a_generation_says_nothing_of_what_it_was_not_told():
    assert Generation(1, 5) == Generation(
        1, 5, tokens=0, spans=0, notes=Notes(), audit=(), seconds={}, model=None, at=0.0
    )


def test_generations_come_back_as_they_were_published(store):
    made = Generation(
        1,
        20,
        100,
        7,
        Notes(7, 20, {"asked": 3}, {"ranked": 5, "of": 9}),
        [{"id": "s:1", "marks": [[0, 1, "PER"]]}],
        {"train": 1.5},
        "models/001",
        123.0,
    )
    publish_generation(store, Generation(0, 0), pause=lambda: None)
    publish_generation(store, made, pause=lambda: None)

    assert read_generations(store, 1) == [made]
    assert [one.number for one in read_generations(store)] == [0, 1]


def test_the_pool_can_be_sampled_at_random(url):
    with small_store(url, 40) as store:
        save_answer(store, "s:0", 1, "label", [])
        rng = np.random.default_rng(0)
        drawn = Counter(id for _ in range(300) for id in unlabeled_ids(store, 10, rng))

        assert set(unlabeled_ids(store)) == {f"s:{i}" for i in range(1, 40)}
        assert "s:0" not in drawn
        assert len(drawn) == 39
        assert all(len(set(unlabeled_ids(store, n, rng))) == min(n, 39) for n in (1, 39, 100))


def made(*tokens: str) -> dict:
    return Augmented(
        Sentence("x", tokens, ("O",) * len(tokens)),
        Lineage("sub", ("s:1", "s:2"), ((0, 1), (1, 2))),
    ).to_record()


def test_a_veto_outlives_the_generation_and_can_be_taken_back(store, anna):
    publish_generation(
        store, Generation(0, 0), (), [made("a", "b"), made("c"), made("a", "b")], pause=lambda: None
    )
    shown, total = read_generated(store)
    assert total == 2
    assert [Augmented.from_record(one.record).sentence.tokens for one in shown] == [
        ("a", "b"),
        ("c",),
    ]

    set_veto(store, shown[0].id, anna)
    publish_generation(store, Generation(1, 0), (), [made("a", "b"), made("d")], pause=lambda: None)
    assert [(one.record["tokens"], one.vetoed) for one in read_generated(store)[0]] == [
        (["d"], False),
        (["a", "b"], True),
    ]
    assert vetoed_ids(store) == {digest(("a", "b"))}

    set_veto(store, shown[0].id, anna, on=False)
    assert vetoed_ids(store) == set()
    for id in ("nowhere", "a\0b"):
        with pytest.raises(NotFoundError):
            set_veto(store, id, anna)


def test_generated_sentences_come_in_pages(store):
    publish_generation(
        store, Generation(0, 0), (), [made(str(i)) for i in range(7)], pause=lambda: None
    )

    assert [one.record["tokens"] for one in read_generated(store, 3, 5)[0]] == [["5"], ["6"]]
    assert read_generated(store, 10**30, 10**30) == ([], 7)
    assert read_generated(store, -1, -5)[0] == []
