"""Clocks that jump by a day: no answer is lost or taken twice; open sentences come free again."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import StaleError
from seqmix.serve.project_status import NOTE, model_status
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import Rules, next_sentence
from seqmix.serve.store.records import Generation
from seqmix.serve.store.sentences import add_sentences, reserve_audit
from seqmix.serve.store.store import Store, create_store

DAY = 86400.0
RULES = Rules(audit_share=0.0)


@pytest.fixture
def store(tmp_path: Path):
    def fill(new: Store) -> None:
        add_sentences(
            new, (Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(60))
        )
        reserve_audit(new, 0.0)

    with create_store(sqlite_url(tmp_path / "store.sqlite"), ("PER", "LOC"), fill) as made:
        for name in ("ada", "bo", "cy"):
            add_annotator(made, name)
        yield made


@pytest.mark.parametrize("seed", range(6))
def test_answers_given_while_the_clock_jumps_are_there_once(
    store: Store, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    clock = 1e9
    monkeypatch.setattr(time, "time", lambda: clock)
    acknowledged: dict[str, int] = {}
    shown: dict[int, tuple[str, int]] = {}
    for _ in range(250):
        clock += rng.choice([1.0, 20.0, DAY, -DAY, 2000.0])
        who = rng.choice([1, 2, 3])
        if who in shown and rng.random() < 0.7:
            id, version = shown.pop(who)
            try:
                save_answer(store, id, who, "label", [(0, 1, "PER")], version=version)
            except StaleError:  # somebody else has it by now: not acknowledged
                continue
            assert id not in acknowledged, "two people were acknowledged for one sentence"
            acknowledged[id] = who
        elif (given := next_sentence(store, who, RULES)) is not None:
            shown[who] = (given.sentence.id, given.version)

    assert {
        answer.sentence_id: answer.annotator_id for answer in current_answers(store)
    } == acknowledged
    assert [event.seq for event in read_events(store)] == list(range(1, len(acknowledged) + 1))
    assert len(acknowledged) > 30


def test_a_sentence_left_open_before_the_clock_was_set_back_comes_free_after_the_usual_time(
    store: Store,
) -> None:
    left = [next_sentence(store, who, RULES, now=5 * DAY + who).sentence.id for who in (1, 2)]

    assert next_sentence(store, 3, RULES, now=4 * DAY).sentence.id not in left
    seen = set()
    for _ in range(60):
        given = next_sentence(store, 3, RULES, now=4 * DAY + RULES.lease + 10)
        seen.add(given.sentence.id)
        save_answer(
            store,
            given.sentence.id,
            3,
            "label",
            [],
            version=given.version,
            now=4 * DAY + RULES.lease + 10,
        )

    assert set(left) <= seen, "both were given to somebody else half an hour later, not a day"


def test_clocks_that_are_a_little_apart_take_no_lease_away(store: Store) -> None:
    mine = next_sentence(store, 1, RULES, now=1000.0 + 30).sentence.id

    assert next_sentence(store, 2, RULES, now=1000.0).sentence.id != mine
    assert next_sentence(store, 1, RULES, now=1000.0 + RULES.lease).sentence.id == mine


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_trainer_that_died_before_the_clock_jumped_is_not_taken_for_alive(
    store: Store, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_note(NOTE, {"phase": "training", "at": time.time(), "pid": 1})
    now = time.time()
    assert model_status(None, store.read_note(NOTE), None)["training"] is True
    monkeypatch.setattr(time, "time", lambda: now + jump)

    assert model_status(None, store.read_note(NOTE), None)["training"] is False
    assert model_status(Generation(1, 8), store.read_note(NOTE), None)["age_s"] >= 0
