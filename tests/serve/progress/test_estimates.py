"""The figures a person decides by: F1 with an interval, the curve, agreement, what is disputed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.scheme import tag
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Span
from seqmix.loop.stopping import kappa
from seqmix.serve.progress import throttled
from seqmix.serve.progress.agreement import Agreement, agreement, conflicts
from seqmix.serve.progress.estimates import Estimates, Progress, span_counts
from seqmix.serve.progress.intervals import intervals, with_interval
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.undo import undo_answer
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.queue import Rules, next_sentence
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation, Mark
from seqmix.serve.store.sentences import (
    add_sentences,
    read_audit_sentences,
    reserve_audit,
)
from seqmix.serve.store.store import Store, create_store
from seqmix.serve.tags.changes import Wish, change_tags
from tests.support.stores import TAGS, person, small_store

PER, LOC = Mark(0, 1, "PER"), Mark(3, 4, "LOC")


# F1


spans_of_ten = st.lists(
    st.tuples(st.integers(0, 9), st.sampled_from(TAGS)), max_size=6, unique_by=lambda s: s[0]
).map(lambda found: [Mark(at, at + 1, name) for at, name in sorted(found)])


@given(st.lists(st.tuples(spans_of_ten, spans_of_ten), min_size=1, max_size=8))
def test_the_f1_is_conllevals(pairs):
    counts = np.array([span_counts(gold, found) for gold, found in pairs], dtype=np.float64)
    tags = [
        [tag([Span(*mark) for mark in marks], 10) for marks in side]
        for side in zip(*pairs, strict=True)
    ]

    found = with_interval(np.concatenate([counts] * 3))  # below three sentences nothing is said
    assert (found.f1 if found else 0.0) == pytest.approx(score(tags[0], tags[1]).f1)


def test_where_the_gold_speaks_of_a_part_only_spans_elsewhere_do_not_count():
    found = [Mark(0, 1, "PER"), Mark(2, 4, "LOC"), Mark(5, 6, "PER")]

    assert span_counts([Mark(0, 1, "PER")], found, ((0, 3),)) == (1, 1, 1)
    assert span_counts([Mark(0, 1, "PER")], found) == (1, 3, 1)


def test_the_interval_holds_the_figure_shrinks_with_more_sentences_and_is_the_same_every_time():
    rng = np.random.default_rng(0)
    right = rng.random(400) < 0.8
    counts = np.stack([np.ones(400), np.ones(400), right], axis=1)
    few, many = with_interval(counts[:50]), with_interval(counts)

    assert few.low < few.f1 < few.high
    assert many.high - many.low < few.high - few.low
    assert with_interval(counts) == many
    assert (many.n, few.n) == (400, 50)
    half = 1.96 * np.sqrt(
        many.f1 * (1 - many.f1) / 400
    )  # each sentence is one span found at its place: a share, whose interval is known
    assert (many.high - many.low) / 2 == pytest.approx(half, rel=0.05)  # 90 % would be 16 % less


def test_a_model_has_the_same_interval_alone_and_among_others():
    rng = np.random.default_rng(1)
    one, other = (
        np.stack([np.full(60, 2), np.full(60, 2), rng.integers(0, 3, 60)], axis=1).astype(
            np.float64
        )
        for _ in range(2)
    )

    for among, alone in zip(
        intervals(np.stack([one, other], axis=2)),
        (with_interval(one), with_interval(other)),
        strict=True,
    ):
        assert (among.f1, among.low, among.high) == pytest.approx((alone.f1, alone.low, alone.high))


@pytest.mark.parametrize(("row", "f1"), [([2, 2, 2], 1.0), ([2, 0, 0], 0.0), ([2, 2, 1], 0.5)])
def test_sentences_that_are_all_alike_are_no_certainty(row, f1):
    few, many = (with_interval(np.array([row] * n, dtype=np.float64)) for n in (5, 100))

    assert (few.f1, many.f1) == (f1, f1)
    assert 0 <= few.low <= f1 <= few.high <= 1
    assert 0 < many.high - many.low < few.high - few.low
    assert few.high - few.low > 0.2


@dataclass(frozen=True)
class Population:
    """Sentences of which some are hard: there the model errs more, and is less sure."""

    counts: np.ndarray  # [n, 3]
    unsure: np.ndarray  # [n]


def population(n: int = 400) -> Population:
    rng = np.random.default_rng(7)
    hard = rng.random(n)
    gold = rng.poisson(2, n)
    correct = rng.binomial(gold, 1 - 0.7 * hard)
    found = correct + rng.poisson(0.8 * hard)
    return Population(
        np.stack([gold, found, correct], axis=1).astype(np.float64), hard + rng.normal(0, 0.1, n)
    )


def test_the_audit_sample_is_unbiased_and_the_actively_chosen_sentences_are_not(tmp_path):
    given = population()
    true = with_interval(given.counts).f1
    found, covered = [], 0
    for seed in range(60):
        with create_store(sqlite_url(tmp_path / f"{seed}.sqlite"), TAGS) as store:
            add_sentences(
                store,
                (Sentence.from_text(f"Number {n}", f"{n}") for n in range(400)),
                random_seed=seed,
            )
            reserve_audit(store, 0.2)
            sample = [int(s.id) for s in read_audit_sentences(store)]
        estimate = with_interval(given.counts[sample])
        found.append(estimate.f1)
        covered += estimate.low <= true <= estimate.high

    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - true) < 3 * error + 0.002  # a ratio of sums leans by about 1 / n
    assert (
        53 <= covered <= 60
    )  # of 60; the sample is a fifth of everything, so it is a little surer than it says
    active = with_interval(given.counts[np.argsort(-given.unsure)[:80]])
    assert active.high < true - 0.1


# progress


def answered(url, answers: int = 20) -> Store:
    """Forty sentences, of which some audit sentences are answered with PER on the first token."""
    store = small_store(url, 40, ("anna", "bo"), audit=0.5)
    for sentence in read_audit_sentences(store)[:answers]:
        save_answer(store, sentence.id, 1, "label", [PER])
    return store


def predictions(store: Store, right: int) -> list[dict]:
    """A model that is right on the first few audit sentences and finds nothing in the others."""
    return [
        {"id": s.id, "marks": [list(PER)] if i < right else []}
        for i, s in enumerate(read_audit_sentences(store))
    ]


def test_nothing_is_said_before_there_is_something_to_say(url):
    with answered(url, 0) as store:
        watch = Estimates(store, every=0)
        assert watch.progress() == Progress()
        publish_generation(store, Generation(0, 0))
        assert watch.progress() == Progress()
        publish_generation(store, Generation(1, 10, audit=predictions(store, 5)))
        assert watch.progress() == Progress(models_lack=4)


def test_what_is_lacking_until_something_can_be_said_is_counted(url):
    with answered(url, 2) as store:
        for number in (1, 2, 3):
            publish_generation(store, Generation(number, 10 * number, audit=predictions(store, 5)))
        found = Estimates(store, every=0).progress()
        assert (found.audit, found.curve, found.forecast) == (None, (), None)
        assert (found.audit_lacks, found.forecast_lacks, found.models_lack) == (1, 8, 2)
        for sentence in read_audit_sentences(store)[2:20]:
            save_answer(store, sentence.id, 1, "label", [PER])
        found = Estimates(store, every=0).progress()
        assert (found.audit_lacks, found.forecast_lacks, found.models_lack, found.forecast) == (
            0,
            0,
            2,
            None,
        )
        publish_generation(store, Generation(4, 40, audit=predictions(store, 6)))
        publish_generation(store, Generation(5, 50, audit=predictions(store, 6)))
        assert Estimates(store, every=0).progress().forecast is not None


def test_the_newest_model_is_scored_on_the_audit_answers(url):
    with answered(url, 10) as store:
        publish_generation(store, Generation(0, 0))
        publish_generation(store, Generation(1, 10, audit=predictions(store, 4)))
        found = Estimates(store, every=0).progress()

    assert found.audit.f1 == pytest.approx(2 * 4 / (10 + 4))
    assert found.audit.n == 10
    assert found.audit.low < found.audit.f1 < found.audit.high
    assert [(point.generation, point.labeled) for point in found.curve] == [(1, 10)]
    assert found.forecast is None


def test_the_curve_compares_all_models_on_the_same_answers_and_a_forecast_follows_it(url):
    with answered(url, 20) as store:
        for number, right in enumerate((4, 10, 14, 16, 17)):
            publish_generation(
                store, Generation(number, 10 * (number + 1), audit=predictions(store, right))
            )
        found = Estimates(store, every=0).progress()

    assert [round(point.f1, 3) for point in found.curve] == [
        round(2 * r / (20 + r), 3) for r in (4, 10, 14, 16, 17)
    ]
    assert found.curve[-1].f1 == found.audit.f1
    assert found.forecast.gain > 0
    assert found.forecast.low <= found.forecast.gain <= found.forecast.high


def progress_after(url, labeled: tuple[int, ...]) -> Progress:
    """Of models that get better, each trained on so many sentences."""
    with answered(url, 20) as store:
        for number, count in enumerate(labeled):
            publish_generation(
                store, Generation(number, count, audit=predictions(store, 4 * (number + 1)))
            )
        return Estimates(store, every=0).progress()


def test_of_models_with_the_same_labels_the_last_is_on_the_curve(tmp_path):
    found = progress_after(sqlite_url(tmp_path / "store.sqlite"), (10, 10, 20, 20))

    assert [point.generation for point in found.curve] == [1, 3] and found.forecast is None


def test_a_new_answer_a_correction_an_undo_and_a_new_model_change_the_figure(url):
    with answered(url, 10) as store:
        watch = Estimates(store, every=0)
        publish_generation(store, Generation(1, 10, audit=predictions(store, 20)))
        first = watch.progress().audit
        ids = [s.id for s in read_audit_sentences(store)]
        event = save_answer(store, ids[10], 1, "label", [LOC])
        assert watch.progress().audit.f1 == pytest.approx(20 / 22)
        save_answer(store, ids[10], 1, "label", [PER], version=event.seq)
        assert (watch.progress().audit.f1, watch.progress().audit.n) == (1.0, 11)
        undo_answer(store, 1)
        undo_answer(store, 1)
        assert watch.progress().audit == first
        publish_generation(store, Generation(2, 20, audit=predictions(store, 0)))
        assert watch.progress().audit.f1 == 0.0


def test_active_answers_and_sentences_the_model_was_not_asked_about_leave_it_alone(url):
    with answered(url, 10) as store:
        publish_generation(store, Generation(1, 10, audit=predictions(store, 4)[:6]))
        watch = Estimates(store, every=0)
        first = watch.progress().audit
        next_active = next_sentence(store, 1, Rules(0.0))
        save_answer(store, next_active.sentence.id, 1, "label", [LOC], version=next_active.version)

        assert watch.progress().audit == first
        assert (first.n, first.f1) == (6, pytest.approx(2 * 4 / (6 + 4)))


def test_answers_from_before_a_tag_say_nothing_of_it(url):
    with answered(url, 10) as store:
        also = [
            {"id": s.id, "marks": [list(PER), [2, 3, "NEW"]]} for s in read_audit_sentences(store)
        ]
        publish_generation(store, Generation(1, 10, audit=also))
        watch = Estimates(store, every=0)
        assert watch.progress().audit.f1 == pytest.approx(20 / 30)
        change_tags(store, Wish("add", "NEW", earlier="unknown"))
        assert watch.progress().audit.f1 == 1.0
        for sentence in read_audit_sentences(store)[10:14]:
            save_answer(store, sentence.id, 1, "label", [PER])  # these were looked through for it
        assert watch.progress().audit.f1 == pytest.approx(28 / 32)


def test_an_adjudicated_answer_is_the_one_that_counts(url):
    with answered(url, 4) as store:
        publish_generation(store, Generation(1, 10, audit=predictions(store, 4)))
        id = read_audit_sentences(store)[0].id
        assert Estimates(store, every=0).progress().audit.f1 == 1.0
        save_answer(store, id, 1, "adjudicate", [LOC], version=answer_version(store, id))

        assert Estimates(store, every=0).progress().audit.f1 == 0.75


def test_figures_are_computed_once_in_a_while_only(url, monkeypatch):
    with answered(url, 5) as store:
        watch = Estimates(store, every=1000)
        publish_generation(store, Generation(1, 10, audit=predictions(store, 5)))
        first = watch.progress()
        undo_answer(store, 1)

        assert watch.progress() is first
        monkeypatch.setattr(throttled.time, "monotonic", lambda: 1e12)
        assert watch.progress().audit.n == 4


def test_a_long_curve_keeps_its_ends_and_forty_points(tmp_path):
    with answered(sqlite_url(tmp_path / "store.sqlite"), 3) as store:
        for number in range(1, 101):
            publish_generation(
                store, Generation(number, number, audit=predictions(store, 2)), pause=lambda: None
            )
        curve = Estimates(store, every=0).progress().curve

    assert len(curve) == 40
    assert (curve[0].generation, curve[-1].generation) == (1, 100)


# agreement


def both_answer(store: Store, first: list[Mark], second: list[Mark], sure=None) -> str:
    """Anna answers a sentence, Bo answers it too."""
    overlap = Rules(0.0, 1.0)
    given = next_sentence(store, 1, overlap)
    save_answer(store, given.sentence.id, 1, "label", first, version=given.version)
    again = next_sentence(store, 2, overlap)
    assert again.sentence.id == given.sentence.id
    save_answer(store, again.sentence.id, 2, "label", second, sure, version=again.version)
    return given.sentence.id


def test_agreement_is_span_f1_and_kappa_by_token(url):
    with small_store(url) as store:
        assert agreement(store) == Agreement()
        both_answer(store, [PER, LOC], [PER, LOC])
        both_answer(store, [PER, LOC], [PER])
        both_answer(store, [], [Mark(0, 2, "PER")])
        found = agreement(store)

    (pair,) = found.pairs
    assert (pair.a, pair.b, pair.n, pair.tokens) == ("anna", "bo", 3, 15)
    assert pair.f1 == pytest.approx(2 * 3 / (4 + 4))
    a = ["B-PER", "O", "O", "B-LOC", "O"] * 2 + ["O"] * 5
    b = [
        "B-PER",
        "O",
        "O",
        "B-LOC",
        "O",
        "B-PER",
        "O",
        "O",
        "O",
        "O",
        "B-PER",
        "I-PER",
        "O",
        "O",
        "O",
    ]
    assert pair.kappa == pytest.approx(direct_kappa(a, b))
    assert (found.f1, found.kappa, found.n) == (pair.f1, pair.kappa, 3)


def direct_kappa(a: list[str], b: list[str]) -> float:
    """Cohen's formula from the table of both."""
    names = sorted({*a, *b})
    table = np.array(
        [[sum(x == i and y == j for x, y in zip(a, b, strict=True)) for j in names] for i in names]
    ) / len(a)
    chance = float(table.sum(axis=1) @ table.sum(axis=0))
    return (float(np.trace(table)) - chance) / (1 - chance)


@given(st.lists(st.tuples(st.sampled_from("OBI"), st.sampled_from("OBI")), min_size=2, max_size=30))
def test_kappa_is_scikit_learns(pairs):
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    a, b = (list(side) for side in zip(*pairs, strict=True))
    if len({*a, *b}) == 1:
        assert kappa(a, b) == 1.0
    else:
        assert kappa(a, b) == pytest.approx(metrics.cohen_kappa_score(a, b))


def test_agreement_counts_only_what_both_were_sure_of(url):
    with small_store(url) as store:
        both_answer(store, [PER, LOC], [PER], sure=[(0, 3)])
        found = agreement(store)

        assert (found.f1, found.kappa, found.pairs[0].tokens) == (1.0, 1.0, 3)
        assert conflicts(store) == []


def test_agreement_of_two_who_were_sure_of_different_parts_is_about_what_both_were_sure_of(url):
    with small_store(url) as store:
        overlap = Rules(0.0, 1.0)
        for who, marks, sure in ((1, [PER, LOC], [(0, 4)]), (2, [LOC], [(2, 5)])):
            given = next_sentence(store, who, overlap)
            save_answer(store, given.sentence.id, who, "label", marks, sure, version=given.version)
        found = agreement(store)

        assert (found.n, found.pairs[0].tokens, found.f1, found.kappa) == (1, 2, 1.0, 1.0)
        assert conflicts(store) == []


def test_two_who_find_nothing_agree(tmp_path):
    with small_store(sqlite_url(tmp_path / "store.sqlite")) as store:
        both_answer(store, [], [])

        assert (agreement(store).f1, agreement(store).kappa, agreement(store).n) == (1.0, 1.0, 1)


def test_several_pairs_are_pooled_by_spans_and_weighted_by_tokens(url):
    with create_store(url, TAGS) as store:
        add_sentences(store, [Sentence("long", tuple("abcdefghij")), Sentence("short", ("a", "b"))])
        for name in ("anna", "bo", "cy"):
            add_annotator(store, name)
        rules = Rules(0.0, 1.0)
        for who in (1, 2, 3, 1):
            given = next_sentence(store, who, rules)
            spans = (
                [Mark(0, 1, "PER")]
                if given.sentence.id == "long"
                else [Mark(who % 2, who % 2 + 1, "PER")]
            )
            save_answer(store, given.sentence.id, who, "label", spans, version=given.version)
        found = agreement(store)

    assert sorted(pair.n for pair in found.pairs) == [1, 1]
    weights = [pair.tokens for pair in found.pairs]
    assert found.kappa == pytest.approx(
        np.average([pair.kappa for pair in found.pairs], weights=weights)
    )
    assert found.n == 2


# conflicts


def test_conflicts_are_what_two_say_differently_until_somebody_decides(url):
    with small_store(url) as store:
        both_answer(store, [PER], [PER])
        disputed = both_answer(store, [PER], [LOC])
        other = both_answer(store, [], [LOC])

        found = conflicts(store)
        assert [conflict.sentence.id for conflict in found] == [disputed, other]
        assert [(said.annotator, said.spans) for said in found[0].answers] == [
            ("anna", (PER,)),
            ("bo", (LOC,)),
        ]
        assert [conflict.sentence.id for conflict in conflicts(store, limit=1)] == [disputed]

        save_answer(
            store, disputed, person(store, "anna").id, "adjudicate", [LOC], version=found[0].version
        )
        assert [conflict.sentence.id for conflict in conflicts(store)] == [other]
        undo_answer(store, person(store, "bo").id)
        assert conflicts(store) == []
        assert (
            agreement(store).n == 2
        )  # what was said before the decision is what agreement is about
