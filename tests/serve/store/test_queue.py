"""Who gets what next: the ranking's order, and a random audit stream apart from it.

No sentence comes twice unless it is wanted twice.
"""

from __future__ import annotations

from collections import Counter

import pytest
from sqlalchemy import event

from seqmix.data.sentence import Sentence
from seqmix.errors import NotFoundError
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.current import current_answers, read_counts
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import (
    Rules,
    assign,
    give_back,
    in_order,
    next_sentence,
    show_sentence,
    why_nothing_left,
)
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation, Mark, Rank
from seqmix.serve.store.sentences import (
    add_sentences,
    read_audit_sentences,
    reserve_audit,
    restore_sentences,
    retire_sentences,
)
from seqmix.serve.store.store import create_store
from tests.support.postgres import wipe
from tests.support.stores import TAGS, derived, person, rebuild, small_store, suggestion_of

NO_AUDIT = Rules(audit_share=0.0)


@pytest.fixture
def store(url):
    with small_store(url, 10, ("anna", "bo", "cy")) as made:
        yield made


@pytest.fixture
def people(store) -> tuple[int, int, int]:
    return tuple(person(store, name).id for name in ("anna", "bo", "cy"))


def answer(
    store, who: int, rules: Rules = NO_AUDIT, kind: str = "label", now: float | None = None
) -> str:
    """Take the next sentence and answer it."""
    given = next_sentence(store, who, rules, now)
    assert given is not None
    save_answer(store, given.sentence.id, who, kind, [], version=given.version)
    return given.sentence.id


def test_asking_again_gives_the_same_sentence_again(store, people):
    first = next_sentence(store, people[0], NO_AUDIT)

    assert next_sentence(store, people[0], NO_AUDIT) == first
    assert (first.version, first.stream, first.suggestion, first.generation, first.left) == (
        0,
        "active",
        None,
        None,
        10,
    )


def test_two_annotators_never_have_the_same_sentence_open(store, people):
    assert len({next_sentence(store, who, NO_AUDIT).sentence.id for who in people}) == 3


def test_before_a_ranking_the_order_is_random_but_the_same_for_the_same_seed(tmp_path):
    orders = []
    for i, seed in enumerate((0, 0, 1)):
        with create_store(sqlite_url(tmp_path / f"{i}.sqlite"), TAGS) as store:
            add_sentences(
                store,
                (Sentence.from_text(f"Number {n}", f"s:{n}") for n in range(12)),
                random_seed=seed,
            )
            add_annotator(store, "anna")
            orders.append([answer(store, 1) for _ in range(12)])

    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0], key=lambda id: int(id[2:]))


def test_a_lease_runs_out_and_the_sentence_goes_to_the_next_who_asks(store, people):
    anna, bo, cy = people
    publish_generation(store, Generation(0, 0), [Rank(f"s:{i}", 1.0) for i in range(10)])
    mine = next_sentence(store, anna, NO_AUDIT, now=1000.0).sentence.id

    assert next_sentence(store, bo, NO_AUDIT, now=1000.0 + 1799).sentence.id != mine
    assert next_sentence(store, cy, NO_AUDIT, now=1000.0 + 1801).sentence.id == mine
    assert next_sentence(store, anna, NO_AUDIT, now=1000.0 + 1802).sentence.id != mine


def test_of_two_who_have_a_sentence_open_only_the_lease_that_ran_out_ends(url):
    both = Rules(audit_share=0.0, overlap_share=1.0)
    with small_store(url, 1, ("anna", "bo", "cy")) as store:
        anna, bo, cy = (person(store, name).id for name in ("anna", "bo", "cy"))
        answer(store, anna, both, now=0.0)
        assert next_sentence(store, bo, both, now=10.0) is not None
        undo_answer(store, anna, now=1500.0)

        assert next_sentence(store, cy, both, now=1900.0) is None
        assert next_sentence(store, anna, both, now=1901.0) is not None


def test_a_page_that_is_used_keeps_its_lease(store, people):
    anna, bo, _ = people
    mine = next_sentence(store, anna, NO_AUDIT, now=1000.0).sentence.id
    assert next_sentence(store, anna, NO_AUDIT, now=2500.0).sentence.id == mine

    assert next_sentence(store, bo, NO_AUDIT, now=3500.0).sentence.id != mine
    assert next_sentence(store, anna, NO_AUDIT, now=3600.0).sentence.id == mine


def test_an_answer_after_the_lease_ran_out_still_counts_while_nobody_else_has_the_sentence(
    store, people
):
    given = next_sentence(store, people[0], NO_AUDIT, now=1000.0)
    save_answer(store, given.sentence.id, people[0], "label", [], version=given.version, now=9000.0)

    assert read_counts(store).labeled == 1


def test_a_skipped_sentence_goes_to_others_in_its_place_and_comes_back_at_the_end(store, people):
    anna, bo, _ = people
    publish_generation(store, Generation(0, 0), [Rank(f"s:{i}", 1.0) for i in range(10)])
    assert [answer(store, anna, kind="skip") for _ in range(2)] == ["s:0", "s:1"]

    assert answer(store, bo) == "s:0"
    rest = [answer(store, anna) for _ in range(8)]
    assert rest == [f"s:{i}" for i in range(2, 10)]
    assert answer(store, anna) == "s:1"
    assert next_sentence(store, anna, NO_AUDIT) is None


def test_sentences_skipped_by_the_only_annotator_come_around_in_the_order_of_the_skips(
    store, people
):
    anna = people[0]
    skipped = [answer(store, anna, kind="skip") for _ in range(10)]

    assert [answer(store, anna, kind="skip") for _ in range(10)] == skipped
    assert answer(store, anna) == skipped[0]


def test_when_nothing_is_left_the_page_is_told_why(store, people):
    anna, bo, _ = people
    for _ in range(9):
        answer(store, anna)
    next_sentence(store, bo, NO_AUDIT)

    assert next_sentence(store, anna, NO_AUDIT) is None
    assert (
        why_nothing_left(store) == "the last sentence is open on another page; try again in a while"
    )
    answer(store, bo)
    assert next_sentence(store, anna, NO_AUDIT) is None
    assert why_nothing_left(store) == "every sentence is labeled"


def test_a_new_ranking_does_not_take_an_open_sentence_away(store, people):
    mine = next_sentence(store, people[0], NO_AUDIT).sentence.id
    others = [f"s:{i}" for i in range(10) if f"s:{i}" != mine]
    publish_generation(store, Generation(0, 0), [Rank(id, 1.0) for id in others])

    assert next_sentence(store, people[0], NO_AUDIT).sentence.id == mine
    assert next_sentence(store, people[1], NO_AUDIT).sentence.id == others[0]


def test_left_goes_down_with_every_answer_and_up_with_an_undo(store, people):
    anna = people[0]
    answer(store, anna)
    assert next_sentence(store, anna, NO_AUDIT).left == 9
    undo_answer(store, anna)

    assert next_sentence(store, anna, NO_AUDIT).left == 10


def test_going_back_shows_the_version_to_answer_with_and_gives_no_lease(store, people):
    anna, bo, _ = people
    event = save_answer(store, "s:3", anna, "label", [Mark(0, 1, "PER")])

    given = show_sentence(store, "s:3", anna)
    assert (given.sentence.id, given.version) == ("s:3", event.seq)
    assert show_sentence(store, "s:3", bo).version == 0
    assert read_counts(store).held == 0
    for id in ("nowhere", "a\0b"):
        with pytest.raises(NotFoundError):
            show_sentence(store, id, anna)


# the audit stream


@pytest.fixture
def audited(url):
    with small_store(url, 60, ("anna", "bo", "cy"), audit=0.2) as made:
        yield made


def test_a_tenth_of_the_answers_are_audit_from_early_on(audited):
    rules = Rules(audit_share=0.1)
    streams = []
    for _ in range(41):
        given = next_sentence(audited, 1, rules)
        streams.append(given.stream)
        save_answer(audited, given.sentence.id, 1, "label", [], version=given.version)

    assert streams[:2] == ["active", "audit"]
    for n in range(10, 42, 10):
        assert abs(streams[:n].count("audit") - n / 10) <= 1


def test_several_annotators_together_keep_to_the_share(audited):
    given = [next_sentence(audited, who, Rules(audit_share=0.1)).stream for who in (1, 2, 3)]

    assert given.count("audit") == 1


def test_audit_sentences_are_never_ranked_and_never_shown_with_a_suggestion(audited):
    audit = {s.id for s in read_audit_sentences(audited)}
    suggestion = {
        "spans": [{"start": 0, "end": 1, "tag": "PER", "confidence": 1.0}],
        "confidence": 1.0,
    }
    order = [*sorted(audit), *sorted({f"s:{i}" for i in range(60)} - audit)]
    publish_generation(audited, Generation(0, 0), [Rank(id, 1.0, suggestion) for id in order])

    for _ in range(30):
        given = next_sentence(audited, 1, Rules(audit_share=0.3))
        assert (given.stream == "audit") == (given.sentence.id in audit)
        assert (given.suggestion is None) == (given.stream == "audit")
        assert (given.generation is None) == (given.stream == "audit")
        save_answer(audited, given.sentence.id, 1, "label", [], version=given.version)
    assert all(suggestion_of(audited, id) == (None, None) for id in audit)


def test_the_whole_order_is_the_one_in_which_people_are_asked(audited):
    publish_generation(audited, Generation(0, 0), [Rank(f"s:{i}", 1.0) for i in range(60)])
    answer(audited, 1, Rules(audit_share=0.3))
    order = in_order(audited, 0.3)

    assert len(order) == 59
    assert [answer(audited, 1, Rules(audit_share=0.3)) for _ in order] == order


def test_sentences_that_come_later_join_the_audit_at_the_same_rate(url):
    with small_store(url, 50, audit=0.2) as store:
        add_sentences(
            store, (Sentence.from_text(f"Later text {i}", f"late:{i}") for i in range(400))
        )
        late = [s.id for s in read_audit_sentences(store) if s.id.startswith("late")]
        assert 40 <= len(late) <= 120
        retire_sentences(store, [*late, "late:0"])
        assert len(read_audit_sentences(store)) == 10
        assert read_counts(store).sentences == 450 - len({*late, "late:0"})
        restore_sentences(store, [*late, "late:0"])
        assert {s.id for s in read_audit_sentences(store)} >= {*late}
        assert read_counts(store).sentences == 450
    wipe(url)
    with small_store(url, 0) as store:  # nothing yet, and a share all the same
        reserve_audit(store, 0.5)
        add_sentences(
            store, (Sentence.from_text(f"Later text {i}", f"late:{i}") for i in range(100))
        )
        assert 30 <= len(read_audit_sentences(store)) <= 70


def test_an_assigned_sentence_can_be_answered_whoever_has_it(store, people):
    anna, bo, cy = people
    id = answer(store, anna)
    held = next_sentence(store, cy, NO_AUDIT).sentence.id
    for sentence in (id, held):
        with store.writing() as conn:
            assign(conn, sentence, bo)
            assign(conn, sentence, bo)
            save_answer(store, sentence, bo, "label", [Mark(0, 1, "PER")])
    undo_answer(store, bo)
    with store.writing() as conn:
        give_back(conn, held, bo)

    assert [found.annotator for found in current_answers(store, id)] == ["anna", "bo"]
    assert read_counts(store).held == 1


def test_audit_sentences_are_asked_in_their_random_order_and_no_stream_blocks_the_other(audited):
    order = [s.id for s in read_audit_sentences(audited)]
    asked = []
    while (given := next_sentence(audited, 1, Rules(audit_share=0.5))) is not None:
        if given.stream == "audit":
            asked.append(given.sentence.id)
        save_answer(audited, given.sentence.id, 1, "label", [], version=given.version)

    assert asked == order
    assert read_counts(audited).left == 0
    assert len(asked) == 12  # a fifth of 60, then the active ones go on alone


def test_without_audit_answers_wanted_the_reserve_still_comes_last(audited):
    while (given := next_sentence(audited, 1, NO_AUDIT)) is not None:
        save_answer(audited, given.sentence.id, 1, "label", [], version=given.version)

    streams = [event.stream for event in read_events(audited)]
    assert streams == ["active"] * 48 + ["audit"] * 12


def test_every_sentence_is_as_likely_as_any_other_to_be_audited(tmp_path):
    drawn: Counter[str] = Counter()
    for seed in range(60):
        with create_store(sqlite_url(tmp_path / f"{seed}.sqlite"), TAGS) as store:
            add_sentences(
                store,
                (Sentence.from_text(f"Number {n}", f"s:{n}") for n in range(10)),
                random_seed=seed,
            )
            assert reserve_audit(store, 0.25) == 3
            drawn.update(s.id for s in read_audit_sentences(store))

    assert len(drawn) == 10
    chi_square = sum((n - 18) ** 2 / 18 for n in drawn.values())
    assert chi_square < 27.9  # 9 degrees of freedom, p = 0.001


def test_the_reserve_has_a_thousand_sentences_at_most_and_is_empty_for_no_share(tmp_path):
    with create_store(sqlite_url(tmp_path / "store.sqlite"), TAGS) as store:
        add_sentences(store, (Sentence.from_text(f"Number {n}", f"s:{n}") for n in range(2100)))

        assert reserve_audit(store, 0.0) == 0
        assert reserve_audit(store, 0.5) == 1000
        assert len(read_audit_sentences(store)) == 1000


# overlap


def test_with_overlap_a_sentence_is_answered_by_two_and_not_by_three(store, people):
    both = Rules(audit_share=0.0, overlap_share=1.0)
    for _ in range(15):
        for who in people:
            given = next_sentence(store, who, both)
            if given is not None:
                save_answer(store, given.sentence.id, who, "label", [], version=given.version)

    by = Counter(answer.sentence_id for answer in current_answers(store))
    assert set(by.values()) == {2}
    assert len(by) == 10
    assert read_counts(store).overlap == 10
    assert Counter(event.stream for event in read_events(store)) == {"active": 10, "overlap": 10}


def test_an_overlap_sentence_is_open_for_one_at_a_time_and_never_for_who_answered_it(store, people):
    anna, bo, cy = people
    both = Rules(audit_share=0.0, overlap_share=1.0)
    mine = answer(store, anna, both)

    second = next_sentence(store, bo, both)
    assert (second.sentence.id, second.stream, second.version) == (mine, "overlap", 0)
    assert next_sentence(store, cy, both).sentence.id != mine
    assert next_sentence(store, anna, both).sentence.id != mine


def test_an_overlap_sentence_skipped_by_the_second_goes_to_a_third(store, people):
    anna, bo, cy = people
    both = Rules(audit_share=0.0, overlap_share=1.0)
    mine = answer(store, anna, both)

    assert answer(store, bo, both, kind="skip") == mine
    assert next_sentence(store, bo, both).sentence.id != mine
    assert next_sentence(store, cy, both).sentence.id == mine


def test_where_the_lot_does_not_fall_below_the_share_nobody_is_asked_twice(url):
    hardly = Rules(audit_share=0.0, overlap_share=1e-12)
    with small_store(url, 2, ("anna", "bo")) as store:
        mine = answer(store, person(store, "anna").id, hardly)
        given = next_sentence(store, person(store, "bo").id, hardly)

    assert (given.sentence.id, given.stream) == ("s:1" if mine == "s:0" else "s:0", "active")


def test_the_share_of_overlap_is_drawn_by_lot_and_kept(tmp_path):
    rules = Rules(audit_share=0.0, overlap_share=0.25)
    with small_store(sqlite_url(tmp_path / "store.sqlite"), 200, ("anna", "bo")) as store:
        for _ in range(200):
            for who in (1, 2):
                given = next_sentence(store, who, rules)
                if given is not None:
                    save_answer(store, given.sentence.id, who, "label", [], version=given.version)
        twice = read_counts(store).overlap
        assert read_counts(store).labeled == 200

    assert 30 <= twice <= 70  # 50 are expected; five standard deviations would be 31


def test_an_undo_of_the_second_answer_leaves_the_first_one_standing(store, people):
    anna, bo, _ = people
    both = Rules(audit_share=0.0, overlap_share=1.0)
    mine = answer(store, anna, both)
    answer(store, bo, both)
    undo_answer(store, anna)

    assert [said.annotator for said in current_answers(store, mine)] == ["bo"]
    assert next_sentence(store, anna, both).sentence.id == mine
    kept = derived(store)
    rebuild(store)
    assert derived(store) == kept


def test_next_save_skip_and_undo_look_things_up_and_never_read_a_table_through(tmp_path):
    """The reason why a hundred thousand sentences are as quick as a hundred."""
    rules = Rules(0.1, 0.3)
    with small_store(
        sqlite_url(tmp_path / "store.sqlite"), 3000, ("anna", "bo", "cy"), audit=0.1
    ) as store:
        publish_generation(
            store, Generation(0, 0), [Rank(f"s:{i}", 1.0) for i in range(2000)], pause=lambda: None
        )
        ran: list[tuple[str, object]] = []
        watched = store.engine
        event.listen(
            watched,
            "before_cursor_execute",
            lambda conn, cursor, sql, given, context, many: ran.append((sql, given)),
        )
        for who in (1, 2, 3, 1, 2):
            answer(store, who, rules)
            answer(store, who, rules, kind="skip")
            undo_answer(store, who)
        with store.reading() as conn:
            plans = [
                (sql, str(step[3]))
                for sql, given in {
                    sql: given
                    for sql, given in ran
                    if sql.split()[0] in ("SELECT", "UPDATE", "DELETE")
                }.items()
                for step in conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", given)
            ]

    read_through = [
        (step, sql)
        for sql, step in plans
        if step.startswith("SCAN") and not step.startswith(("SCAN CONSTANT", "SCAN annotators"))
    ]
    assert len(plans) > 20
    assert read_through == []
    assert [
        sql for sql, step in plans if "TEMP B-TREE FOR ORDER BY" in step and "FROM queue" in sql
    ] == []
