"""SeqMix as a whole: what always holds, and what it does when there is little to mix."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqmix.augment.discriminator import Perplexity
from seqmix.augment.mixing import mix, rewritten
from seqmix.augment.pairing import Stretch
from seqmix.augment.score_range import ScoreRange
from seqmix.augment.seqmix import SeqMix
from seqmix.data.augmented import Augmented
from seqmix.data.samples import sample
from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from tests.support.toys import WORDS, sentences_strategy, toy_sentences, toy_table


class CountLetters:
    """A discriminator without a model: the score of a sentence is a number made of its tokens."""

    base = "e"

    def __init__(self) -> None:
        self.asked = 0

    def scores(self, sentences, parents=None, above=math.inf):
        self.asked += len(sentences)
        found = np.array(
            [
                float(sum(int(token[1:]) for token in s.tokens if token[1:].isdigit()) % 100)
                for s in sentences
            ]
        )
        return np.where(found > above, math.inf, found)


def check(
    sentences: list[Sentence], made, variant: str, cap: int | None, limits: ScoreRange | None
) -> None:
    by_id = {s.id: s for s in sentences}
    parents: Counter[str] = Counter()
    assert len({one.sentence.tokens for one in made}) == len(made), "one sentence twice"
    assert len({one.sentence.id for one in made}) == len(made)
    assert not {one.sentence.tokens for one in made} & {s.tokens for s in sentences}, (
        "an unchanged sentence"
    )
    for one in made:
        lineage, new = one.lineage, one.sentence
        old = by_id[lineage.parents[lineage.into]]
        start, end = lineage.windows[lineage.into]
        assert len(new) == len(old) == len(new.tags)
        assert new.tokens[:start] == old.tokens[:start] and new.tokens[end:] == old.tokens[end:]
        assert new.tags[:start] == old.tags[:start] and new.tags[end:] == old.tags[end:]
        for row in new.tags:
            assert isinstance(row, str) or sum(row.values()) == pytest.approx(1)
        other = by_id[lineage.parents[1 - lineage.into]]
        there = other.tokens[slice(*lineage.windows[1 - lineage.into])]
        assert all(
            word not in (a, b)
            for word, a, b in zip(new.tokens[start:end], old.tokens[start:end], there, strict=True)
        )
        if limits is not None:
            assert limits.holds(lineage.score)
        parents.update(lineage.parents)
    if cap is not None:
        assert max(parents.values(), default=0) <= cap
    assert len(made) == made.asked or made.reason


@pytest.mark.parametrize("variant", ["whole", "sub", "label"])
@settings(max_examples=40)
@given(
    sentences=sentences_strategy(),
    window=st.integers(1, 3),
    density=st.sampled_from([0.0, 0.5, 1.0]),
    n=st.integers(0, 12),
    cap=st.none() | st.integers(1, 4),
    high=st.sampled_from([20.0, 60.0, math.inf]),
    seed=st.integers(0, 99),
)
def test_what_always_holds(variant, sentences, window, density, n, cap, high, seed) -> None:
    limits = ScoreRange(0, high)
    mixer = SeqMix(
        variant,
        window,
        density,
        score_range=limits,
        max_uses=cap,
        table=toy_table(),
        discriminator=CountLetters(),
    )

    made = mixer.augment(sentences, n, np.random.default_rng(seed))

    check(sentences, made, variant, cap, limits)


def test_the_same_seed_gives_the_same_sentences_and_another_gives_others() -> None:
    def run(seed: int):
        return (
            SeqMix("sub", 2, 0.5, score_range=None, table=toy_table())
            .augment(toy_sentences(), 8, np.random.default_rng(seed))
            .outputs
        )

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_lineage_replays_to_the_same_sentence() -> None:
    sentences, table = toy_sentences(), toy_table()
    made = SeqMix("sub", 2, 0.5, score_range=None, table=table).augment(
        sentences, 10, np.random.default_rng(0)
    )
    place = {s.id: i for i, s in enumerate(sentences)}

    for one in made:
        pair = tuple(
            Stretch(place[id], *window)
            for id, window in zip(one.lineage.parents, one.lineage.windows, strict=True)
        )
        (mixed,) = mix(sentences, [pair], [one.lineage.weight], table)
        again = rewritten(
            sentences[pair[one.lineage.into].parent],
            pair[one.lineage.into],
            mixed,
            one.sentence.id,
            False,
        )
        assert again == one.sentence
        assert mixed.distances == one.lineage.distances


def test_a_lineage_survives_json() -> None:
    made = SeqMix("sub", 2, 0.5, score_range=None, table=toy_table()).augment(
        toy_sentences(), 5, np.random.default_rng(0)
    )

    assert [Augmented.from_record(one.to_record()) for one in made] == list(made)


def test_scores_lie_in_the_range_when_recomputed_alone(lm: str) -> None:
    limits = ScoreRange(0, 1e6)
    made = SeqMix(
        "sub", 2, 0.5, score_range=limits, table=toy_table(), discriminator=Perplexity(lm)
    ).augment(toy_sentences(20), 20, np.random.default_rng(0))
    fresh = Perplexity(lm)

    assert len(made) == 20
    for one in made:
        alone = fresh.scores([one.sentence])[0]
        assert alone == pytest.approx(one.lineage.score, rel=1e-3)


def test_quantiles_of_the_real_sentences_may_be_the_range(lm: str) -> None:
    sentences = toy_sentences(20)
    judge = Perplexity(lm)
    real = judge.scores(sentences)
    made = SeqMix(
        "sub",
        2,
        0.5,
        score_range=ScoreRange(0.1, 0.9, True),
        table=toy_table(),
        discriminator=judge,
    ).augment(sentences, 10, np.random.default_rng(0))

    low, high = np.quantile(real, [0.1, 0.9])
    assert made and all(low <= one.lineage.score <= high * (1 + 1e-9) for one in made)


@pytest.mark.parametrize("base", ["e", "2"])
@pytest.mark.parametrize("variant", ["sub", "whole"])
def test_a_relative_range_is_the_factor_of_each_new_word_whatever_the_base(
    lm: str, variant: str, base: str
) -> None:
    sentences, limits, judge = (
        toy_sentences(30),
        ScoreRange(0, 3, relative=True),
        Perplexity(lm, base),
    )
    mixer = SeqMix(
        variant, 2, 0.5, score_range=limits, table=toy_table(), discriminator=judge, trace=True
    )
    made = mixer.augment(sentences, 25, np.random.default_rng(0))

    loss = {
        s.id: math.log(score)
        for s, score in zip(sentences, Perplexity(lm).scores(sentences), strict=True)
    }
    factors = {True: [], False: []}
    for one in (*made, *made.rejected):
        start, end = one.lineage.windows[one.lineage.into]
        rise = (
            math.log(Perplexity(lm).scores([one.sentence])[0])
            - loss[one.lineage.parents[one.lineage.into]]
        )
        factors[one.kept].append(math.exp(rise * len(one.sentence) / (end - start)))
    assert len(made) == 25 and max(factors[True]) <= 3 * 1.001 and min(factors[False]) >= 3 / 1.001


def test_the_default_range_is_relative_and_whole_sentences_have_the_papers_base() -> None:
    sentences = [s for s in sample("gazette:train") if len(s) > 4][:40]
    sub, whole = (
        SeqMix(variant, 3, 0.6).augment(sentences, 2, np.random.default_rng(0))
        for variant in ("sub", "whole")
    )

    assert SeqMix().limits == ScoreRange(0, 400, relative=True)
    assert {one.lineage.base for one in sub} == {"e"} and {one.lineage.base for one in whole} == {
        "2"
    }


def test_few_are_scored_beyond_what_is_needed() -> None:
    judge = CountLetters()
    made = SeqMix(
        "sub", 2, 0.3, score_range=ScoreRange(0, 50), table=toy_table(), discriminator=judge
    ).augment(toy_sentences(200), 60, np.random.default_rng(0))

    assert len(made) == 60
    assert judge.asked < 60 / (len(made) / made.counts["scored"]) * 1.6


def test_outputs_are_diverse() -> None:
    made = SeqMix("sub", 2, 0.5, score_range=None, table=toy_table()).augment(
        toy_sentences(200), 40, np.random.default_rng(0)
    )

    assert len({p for one in made for p in one.lineage.parents}) / len(made) >= 0.5


def test_what_was_turned_down_is_kept_when_asked_for() -> None:
    mixer = SeqMix(
        "sub",
        2,
        0.5,
        score_range=ScoreRange(0, 30),
        table=toy_table(),
        discriminator=CountLetters(),
        trace=True,
    )
    made = mixer.augment(toy_sentences(30), 10, np.random.default_rng(0))

    assert made.rejected and all(not one.kept and one.lineage.score > 30 for one in made.rejected)


def test_new_words_have_only_characters_of_the_text() -> None:
    words = tuple(f"w{i}" for i in range(60)) + tuple(
        f"{letter}{i}" for letter in "ď¶シ" for i in range(60)
    )
    table, sentences = toy_table(words=words), toy_sentences(20)
    plain = SeqMix("sub", 2, 0.3, score_range=None, table=table)

    strange = plain.augment(sentences, 20, np.random.default_rng(0))
    wider = replace(plain, alphabet=frozenset("ď")).augment(sentences, 20, np.random.default_rng(0))

    assert {token[0] for one in strange for token in one.sentence.tokens} == {"w"}
    assert {token[0] for one in wider for token in one.sentence.tokens} == {"w", "ď"}


def test_a_candidate_whose_heaviest_tags_are_no_spans_is_dropped_and_counted() -> None:
    tags = [("B-PER", "I-PER", "I-PER", "O"), ("O", "B-LOC", "I-LOC", "O")]
    sentences = [
        Sentence(f"s{i}", tuple(f"w{3 * i + k}" for k in range(4)), tags[i % 2]) for i in range(12)
    ]
    mixer = SeqMix("sub", 2, 0.5, score_range=None, table=toy_table(), max_uses=99)

    made = mixer.augment(sentences, 60, np.random.default_rng(0))

    assert len(made) == 60 and made.counts["illegal tags"] > 0
    assert all(is_legal([str(tag) for tag in one.sentence.hardened().tags]) for one in made)


def test_part_of_speech_data_in_which_every_tag_is_valid_mixes() -> None:
    sentences = [
        Sentence(f"p{i}", (f"w{i}", f"w{i + 1}", f"w{i + 2}"), ("NOUN", "VERB", "NOUN"))
        for i in range(10)
    ]
    made = SeqMix("label", 3, 1.0, score_range=None, table=toy_table()).augment(
        sentences, 5, np.random.default_rng(0)
    )

    assert len(made) == 5 and all(one.sentence.tags == ("NOUN", "VERB", "NOUN") for one in made)


@pytest.mark.parametrize(
    ("sentences", "settings", "reason"),
    [
        ([], {}, "two different labeled sentences"),
        ([Sentence("a", ("w1", "w2"), ("B-PER", "O"))], {}, "two different labeled sentences"),
        (
            [Sentence("a", ("w1",), ("O",)), Sentence("b", ("w2",), ("O",))],
            {"window": 1},
            "no token has a valid tag",
        ),
        (toy_sentences(5), {"window": 50}, "no sentence has 50 tokens"),
        (
            [
                Sentence("a", ("w1", "w2"), ("B-PER", "O")),
                Sentence("b", ("w3", "w4"), ("B-PER", "O")),
            ],
            {"window": 2, "density": 1.0},
            "lower density",
        ),
        (
            [Sentence("a", ("w1", "w2"), (None, None)), Sentence("b", ("w3", "w4"), (None, None))],
            {},
            "two different labeled",
        ),
    ],
)
def test_nothing_to_mix_is_an_empty_result_with_the_reason(
    sentences, settings: dict, reason: str
) -> None:
    made = SeqMix(**{"score_range": None, "table": toy_table(), **settings}).augment(
        sentences, 3, np.random.default_rng(0)
    )

    assert len(made) == 0 and reason in made.reason


def test_running_out_of_pairs_is_said() -> None:
    sentences = [
        Sentence("a", ("w1", "w2"), ("B-PER", "O")),
        Sentence("b", ("w3", "w4"), ("B-PER", "O")),
    ]
    mixer = SeqMix("sub", 1, 1.0, score_range=None, weight=0.5, table=toy_table(), max_uses=99)
    made = mixer.augment(sentences, 50, np.random.default_rng(0))

    assert len(made) == 2 and "no pair is left" in made.reason


def test_pairs_that_run_out_are_mixed_again_with_a_new_weight_up_to_fifteen_times() -> None:
    sentences = [
        Sentence(id, words, ("B-PER",) * 4)
        for id, words in (("a", ("w1", "w2", "w3", "w4")), ("b", ("w5", "w6", "w7", "w8")))
    ]
    mixer = SeqMix(
        "whole", 4, 1.0, alpha=0.5, score_range=None, table=toy_table(width=2), max_uses=99
    )

    made = mixer.augment(sentences, 4, np.random.default_rng(0))
    dry = mixer.augment(sentences, 40, np.random.default_rng(0))

    assert (
        len(made) == 4
        and len({one.lineage.weight for one in made}) == len({one.sentence.id for one in made}) == 4
    )
    assert dry.counts["pairs"] == 15 * 40 and "no pair is left" in dry.reason
    assert dry.outputs[:4] == made.outputs


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"density": 1.5}, "density must be at most 1; got 1.5"),
        ({"alpha": 0}, "alpha"),
        ({"weight": 1.2}, "weight"),
        ({"max_uses": 0}, "max_uses"),
        ({"variant": "x"}, "variant"),
        ({"window": -1}, "window"),
    ],
)
def test_bad_settings_are_refused(bad: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SeqMix(**bad)


def test_without_a_score_range_nothing_is_scored() -> None:
    made = SeqMix(score_range=None, window=2, density=0.5, table=toy_table()).augment(
        toy_sentences(), 5, np.random.default_rng(0)
    )

    assert len(made) == 5 and {one.lineage.score for one in made} == {None}


def test_asked_for_none_it_gives_none_and_no_reason() -> None:
    assert SeqMix(table=toy_table()).augment([], 0, np.random.default_rng(0)).reason is None
    assert SeqMix(table=toy_table()).augment([], 1, np.random.default_rng(0)).reason is not None


def test_every_candidate_is_accounted_for() -> None:
    sentences = toy_sentences(6)
    made = SeqMix(
        window=1,
        density=0,
        score_range=ScoreRange(0, 60),
        table=toy_table(words=("w1", "w2", "w3", *WORDS[4:])),
        max_uses=10**6,
        discriminator=CountLetters(),
    ).augment(sentences, 1000, np.random.default_rng(0))
    counts = Counter(made.counts)

    again = (
        counts["scored"] - len(made) - counts["out of range"] - counts["parent used up"]
    )  # made twice in one wave
    assert len(made) < 1000  # so that none was left unscored at the end
    assert (
        2 * counts["pairs"]
        == counts["scored"] + counts["repeated"] + counts["illegal tags"] - again
    )
    assert counts["repeated"] > 0
