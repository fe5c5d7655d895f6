"""The current state is what a replay of the events gives."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update

from seqmix.errors import StaleError
from seqmix.serve.store import events, schema, sentences
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import current_answers, gold_answers
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import read_labeled
from tests.support.postgres import wipe
from tests.support.stores import LOC, PER, derived, person, rebuild, small_store

SETTLING = ("label", "discard")
Said = tuple[str, str, tuple[Mark, ...], int]


def now_of(stack: list[Said], id: str) -> str | None:
    """The kind of the last answer to a sentence on a stack."""
    return next((answer[1] for answer in reversed(stack) if answer[0] == id), None)


def since(answers: list[Said]) -> int:
    """The seq from which an annotator's answers to a sentence count."""
    labels = [answer for answer in answers if answer[1] == "label"]
    return (labels or answers)[0][3]


operation = st.tuples(
    st.sampled_from(["label", "label", "skip", "discard", "undo", "next", "adjudicate"]),
    st.integers(0, 1),
    st.integers(0, 3),
    st.sampled_from([(), (PER,), (PER, LOC)]),
)


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(operation, max_size=14))
def test_the_current_state_is_what_a_replay_of_the_events_gives(url, operations):
    wipe(url)
    with small_store(url, 4) as store:
        who = [person(store, name).id for name in ("anna", "bo")]
        said: dict[int, list[Said]] = {id: [] for id in who}  # a stack for each annotator
        decided: dict[str, tuple[Mark, ...]] = {}
        held: set[tuple[str, int]] = set()
        before = []
        for kind, by, of, marks in operations:
            id, me, own = f"s:{of}", who[by], said[who[by]]
            if kind == "undo":
                undone = undo_answer(store, me)
                assert (undone is None) == (not own)
                if undone is not None:
                    id = own.pop()[0]
                    held -= {(id, me)}
                    held |= {(id, me)} if now_of(own, id) not in SETTLING else set()
            elif kind == "next":
                given = next_sentence(store, me)
                held |= {(given.sentence.id, me)} if given else set()
            elif kind == "adjudicate":
                save_answer(store, id, me, kind, marks, version=answer_version(store, id))
                decided[id] = marks
            else:
                free = (
                    id not in decided
                    and all(now_of(stack, id) not in SETTLING for stack in said.values())
                    and not any(of == id for of, _ in held)
                )
                mine = free or (id, me) in held or now_of(own, id) in SETTLING
                try:
                    event = save_answer(
                        store, id, me, kind, marks, version=answer_version(store, id, me)
                    )
                    own.append((id, kind, marks, event.seq))
                    held -= {(id, me)}
                    assert mine
                except StaleError:
                    assert not mine
            history = list(read_events(store))
            assert history[: len(before)] == before  # only ever longer
            before = history

        last = {(answer[0], id): answer[1:3] for id, own in said.items() for answer in own}
        found = {
            (a.sentence_id, a.annotator_id): (a.kind, a.spans)
            for a in current_answers(store, overridden=True)
            if a.kind != "adjudicate"
        }
        assert found == {
            key: (kind, marks if kind == "label" else ()) for key, (kind, marks) in last.items()
        }
        gold = dict(decided)
        for id in (f"s:{i}" for i in range(4)):
            settled = [
                [a for a in stack if a[0] == id]
                for stack in said.values()
                if now_of(stack, id) in SETTLING
            ]
            first = min(settled, key=since, default=None)
            if first is not None and first[-1][1] == "label":
                gold.setdefault(id, first[-1][2])
        assert {answer.sentence_id: answer.spans for answer in gold_answers(store)} == gold
        kept = derived(store)
        rebuild(store)
        assert derived(store) == kept


def test_an_event_is_a_value(store, anna):
    event = save_answer(store, "s:1", anna, "label", [PER])

    assert replace(event, seq=7).seq == 7
    assert hash(event.spans)


def test_a_long_history_comes_page_by_page_and_whole(store, anna, monkeypatch):
    monkeypatch.setattr(sentences, "PAGE", 3)
    monkeypatch.setattr(events, "PAGE", 3)
    for i in range(8):
        save_answer(store, f"s:{i}", anna, "label", [])

    assert [event.sentence_id for event in read_events(store)] == [f"s:{i}" for i in range(8)]
    assert [
        event.sentence_id for event in read_events(store, after=list(read_events(store))[4].seq)
    ] == [
        "s:5",
        "s:6",
        "s:7",
    ]
    assert [sentence.id for sentence in read_labeled(store)] == [f"s:{i}" for i in range(8)]


def test_what_is_derived_can_be_derived_anew_after_damage(store, anna, bo):
    for id, who in (("s:1", anna), ("s:2", bo)):
        save_answer(store, id, who, "label", [PER])
    next_sentence(store, anna)
    before = derived(store)
    with store.writing() as conn:
        conn.execute(update(schema.queue).values(state="free", sole=None, gold=None))
        conn.execute(delete(schema.current))
    assert derived(store) != before

    rebuild(store)

    assert derived(store) == before
