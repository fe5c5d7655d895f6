"""The learner: who is asked, what is learned from it, and what always holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqmix.augment.replacement import Replacement
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, PoolExhaustedError, RunError
from seqmix.loop.learner import ActiveLearner
from seqmix.loop.pool import Pool, labels_of
from seqmix.loop.pool_view import TaggerView
from seqmix.query.policies import POLICIES
from seqmix.settings import at
from seqmix.testing import WordPath, WordTagger
from tests.support.small_loops import TAGS, corpus, entropy_policy, fit, small_learner


class Watching:
    """An augmenter that notes what it was shown."""

    def __init__(self) -> None:
        self.shown: list[list[str]] = []

    def augment(self, sentences, n, rng):
        self.shown.append([s.id for s in sentences])
        return Replacement("duplicate").augment(sentences, n, rng)


@settings(max_examples=30)
@given(seed=st.integers(0, 500), size=st.integers(1, 7), rounds=st.integers(1, 5))
def test_what_always_holds(seed: int, size: int, rounds: int) -> None:
    gold = corpus(60, seed)
    label, watcher = labels_of(gold), Watching()
    learner = small_learner(
        Pool.of(gold[10:], gold[:10]), seed, augmenter=lambda r: watcher, rate=1.0
    )
    asked: set[str] = set()
    for number in range(rounds):
        before = len(learner.pool.labeled)
        ids = learner.query(size)
        assert not set(ids) & asked and len(ids) == size
        asked |= set(ids)

        learner.teach(ids, label(learner.pool.take(ids)))

        assert not set(learner.pool.labeled) & set(learner.pool.unlabeled)
        assert len(learner.pool.labeled) == before + size
        assert watcher.shown[-1] == ids, "augmentation sees only the new batch"
        assert learner.round == number + 1


@settings(max_examples=20)
@given(seed=st.integers(0, 100), order=st.randoms(use_true_random=False))
def test_scores_belong_to_ids_whatever_the_order_of_the_pool(seed: int, order) -> None:
    gold = corpus(40, seed)
    shuffled = gold[10:]
    order.shuffle(shuffled)
    one, other = (small_learner(Pool.of(rest, gold[:10]), 0) for rest in (gold[10:], shuffled))

    assert one.rank(8) == other.rank(8)


def test_duplicates_are_asked_once_and_empty_sentences_and_docstarts_never() -> None:
    sentences = [
        Sentence("a", ("w1", "w2")),
        Sentence("b", ("w1", "w2")),
        Sentence("c", ()),
        Sentence("d", ("-DOCSTART-",)),
        Sentence("e", ("w5",)),
        Sentence("f", ("w9",)),
    ]
    pool = Pool.of(sentences, [Sentence("z", ("w9",), ("O",))])

    assert list(pool.unlabeled) == ["a", "e"]


def test_committee_members_differ() -> None:
    gold = corpus()
    members = small_learner(Pool.of(gold[20:], gold[:20]), 0).committee()

    assert len(members) == 3
    assert len({str(m.counts) for m in members}) == 3 and len({m.draw for m in members}) == 3


def test_a_committee_takes_the_steps_of_the_tagger_with_and_without_augmentation() -> None:
    gold, taken = corpus(), []

    def fit(sentences, steps, rng, last):
        taken.append(steps)
        return WordTagger(TAGS).fit(sentences, rng)

    for augmenter in (lambda r: None, lambda r: Replacement("duplicate")):
        made = {"tagger": fit, "augmenter": augmenter, "rate": 0.5, "steps": lambda n: n}
        learner = small_learner(Pool.of(gold[20:], gold[:20]), 0, **made)
        learner.augment(gold[:20])
        learner.train()
        learner.committee()

    assert taken == [30] * 8


def test_least_confidence_is_over_all_paths_and_predictions_are_over_legal_ones() -> None:
    class Torn(WordTagger):
        def best_paths(self, sentences, n=1, legal=True):
            for sentence in sentences:
                yield [WordPath(("O",) * len(sentence), 0.25 if legal else 0.75)]

    gold = corpus()
    view = TaggerView(Pool.of(gold[20:], gold[:20]), Torn(TAGS), list, {}, np.random.default_rng(0))

    assert set(dict(POLICIES["lc"].score(view)).values()) == {0.25}
    assert {probability for _, _, probability in view.paths()} == {0.25}


def test_equal_steps_count_what_augmentation_should_have_given() -> None:
    gold, counted = corpus(), []

    def steps(count: int) -> int:
        counted.append(count)
        return count

    for match in (True, False):
        learner = small_learner(
            Pool.of(gold[20:], gold[:20]), 0, rate=0.5, steps=steps, match_steps=match
        )
        learner.augment(gold[:20])
        learner.train()

    assert counted == [30, 20]


def test_a_learner_saved_and_loaded_goes_on_the_same_way(tmp_path) -> None:
    gold = corpus()
    label = labels_of(gold)
    how = {
        "tagger": fit, "policy": entropy_policy,
        "augmenter": Replacement("duplicate"), "rate": 0.5,
    }  # fmt: skip
    learner = small_learner(Pool.of(gold[10:], gold[:10]), 3, **how)
    ids = learner.query(5)
    learner.teach(ids, label(learner.pool.take(ids)))

    learner.save(tmp_path / "saved")
    again = ActiveLearner.load(tmp_path / "saved", WordTagger.load, **how)

    assert list(again.rank(5).items()) == list(learner.rank(5).items())
    assert again.generated == learner.generated and again.round == learner.round
    with pytest.raises(RunError, match="not a saved learner"):
        ActiveLearner.load(tmp_path, WordTagger.load, **how)


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"format_version": 1}', '{"format_version": 1, "seed": 0, "round": "1"}']
)
def test_a_damaged_learner_is_one_line(tmp_path, text: str) -> None:
    small_learner(Pool.of(corpus(12)[10:], corpus(12)[:10]), 0).save(tmp_path / "saved")
    (tmp_path / "saved" / "learner.json").write_text(text)

    with pytest.raises(RunError, match=r"learner\.json is damaged"):
        ActiveLearner.load(tmp_path / "saved", WordTagger.load, tagger=fit)


def test_too_much_asked_wrong_answers_and_wrong_choices_are_refused() -> None:
    gold = corpus(12)
    learner = small_learner(Pool.of(gold[10:], gold[:10]), 0)
    with pytest.raises(PoolExhaustedError, match="asked for 5 sentences but only"):
        learner.query(5)
    ids = learner.query(1)
    with pytest.raises(DataError, match="other tokens"):
        learner.teach(ids, [Sentence("x", ("other",), ("O",))])
    (question,) = learner.pool.take(ids)
    for other in ("a", "~"):  # before and behind it by name
        with pytest.raises(DataError, match="other tokens"):
            learner.teach(
                ids, [Sentence("x", (other, *question.tokens[1:]), ("O",) * len(question))]
            )
    with pytest.raises(DataError, match="got 2 answers to 1"):
        learner.teach(ids, [gold[10], gold[11]])
    with pytest.raises(DataError, match="has no label"):
        learner.teach(ids, learner.pool.take(ids))
    with pytest.raises(DataError, match="invalid choice: 'x' is not in the pool"):
        learner.pool.take(["x", "y"])
    with pytest.raises(DataError, match="chosen twice"):
        learner.pool.take([*ids, *ids])
    stranger = small_learner(
        Pool.of(gold[10:], gold[:10]), 0, policy=lambda view, n, rng: ["nobody"]
    )
    with pytest.raises(DataError, match="is not in the pool"):
        stranger.query(1)


def test_an_label_names_the_first_sentence_that_it_has_no_label_for() -> None:
    gold = corpus(3)
    label = labels_of([gold[0], gold[1].unlabeled()])

    assert label([gold[0].unlabeled()]) == [gold[0]]
    for asked in ([gold[0], gold[1], gold[2]], [gold[1]]):
        with pytest.raises(DataError, match="no labels for 's1'"):
            label(asked)
    with pytest.raises(DataError, match="no labels for 's2'"):
        label([gold[2], gold[1]])


def test_a_learner_without_a_seed_has_seed_0() -> None:
    gold = corpus(12)

    assert small_learner(Pool.of(gold[10:], gold[:10])).seed == 0


def test_schedules_go_on_with_their_last_value() -> None:
    assert [at([1, 2, 4], r) for r in range(5)] == [1, 2, 4, 4, 4]
    assert at(0.2, 7) == 0.2


def test_a_plain_function_is_a_policy() -> None:
    gold = corpus()
    learner = small_learner(
        Pool.of(gold[10:], gold[:10]),
        0,
        policy=lambda view, n, rng: [s.id for s in view.sentences()][:n],
    )

    first, second = list(learner.pool.unlabeled)[:2]
    assert list(learner.rank(2).items()) == [(first, 0.0), (second, -1.0)]
