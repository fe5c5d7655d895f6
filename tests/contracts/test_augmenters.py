"""One suite for every augmenter, and the proof that none escapes it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from seqmix.app.build import build_augmenter
from seqmix.augment.replacement import Replacement
from seqmix.augment.settings import AUGMENTERS, AugmentSettings
from seqmix.augment.table_sources import encoder_table
from seqmix.data.augmented import Augmentation
from seqmix.data.samples import sample
from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence

ALL = {
    name: {} if name in ("mention", "token", "shuffle", "duplicate") else {"score_range": None}
    for name in AUGMENTERS
}


def built(name: str, table=None, **settings):
    parts = {"table": table} if AugmentSettings(name).mixes else {}
    return build_augmenter(AugmentSettings(name, **settings), **parts)


@pytest.fixture(scope="module")
def table():
    return encoder_table()


@pytest.fixture(scope="module")
def sentences() -> list[Sentence]:
    return sample("gazette:dev")


@pytest.fixture(params=sorted(ALL))
def made(request, table, sentences) -> Augmentation:
    settings = {**ALL[request.param], **({"density": 0.2} if request.param == "whole" else {})}
    return built(request.param, table, **settings).augment(sentences, 10, np.random.default_rng(0))


def test_no_augmenter_escapes_this_suite() -> None:
    assert set(ALL) == set(AUGMENTERS)


def test_at_most_n_come_and_fewer_only_with_a_reason(made: Augmentation) -> None:
    assert 0 < len(made) <= 10 and (len(made) == 10 or made.reason)


def test_ids_are_unique_and_parents_are_named(
    made: Augmentation, sentences: list[Sentence]
) -> None:
    known = {s.id for s in sentences}
    assert len({one.sentence.id for one in made} | known) == len(made) + len(known)
    assert all(set(one.lineage.parents) <= known for one in made)


def test_every_token_has_a_row_that_sums_to_one(made: Augmentation) -> None:
    for one in made:
        assert len(one.sentence.tags) == len(one.sentence.tokens) > 0
        assert all(
            isinstance(row, str) or sum(row.values()) == pytest.approx(1)
            for row in one.sentence.tags
        )


def test_the_parents_are_left_as_they_were(made: Augmentation, sentences: list[Sentence]) -> None:
    assert sentences == sample("gazette:dev")


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_same_seed_gives_the_same_sentences(name: str, table, sentences) -> None:
    runs = [
        built(name, table, **ALL[name]).augment(sentences, 5, np.random.default_rng(3)).outputs
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", sorted(ALL))
def test_nothing_is_made_of_nothing(name: str, table) -> None:
    made = built(name, table, **ALL[name]).augment([], 5, np.random.default_rng(0))
    assert len(made) == 0 and made.reason


@pytest.mark.parametrize("name", sorted(set(ALL) - {"duplicate"}))
def test_only_duplicate_repeats_a_sentence(name: str, table, sentences) -> None:
    made = built(name, table, **ALL[name]).augment(sentences, 60, np.random.default_rng(1))
    counts = Counter(one.sentence.tokens for one in made)
    assert max(counts.values(), default=1) == 1
    assert not set(counts) & {s.tokens for s in sentences}


@pytest.mark.parametrize("name", ["mention", "token", "shuffle", "duplicate"])
def test_the_baselines_keep_tags_hard_and_legal(name: str, sentences) -> None:
    for one in built(name).augment(sentences, 40, np.random.default_rng(0)):
        assert one.sentence.hard and is_legal([str(tag) for tag in one.sentence.tags])


def test_a_replaced_mention_is_one_of_the_same_type_and_the_rest_stays(sentences) -> None:
    from seqmix.data.spans import spans

    by_id = {s.id: s for s in sentences}
    mentions = {
        (span.type, s.tokens[span.start : span.end]) for s in sentences for span in spans(s.tags)
    }
    for one in built("mention").augment(sentences, 40, np.random.default_rng(0)):
        new, old = one.sentence, by_id[one.lineage.parents[0]]
        (start, end), (a, b) = one.lineage.windows
        assert (
            new.tokens[:start] == old.tokens[:start]
            and new.tokens[start + b - a :] == old.tokens[end:]
        )
        assert {
            (span.type, new.tokens[span.start : span.end]) for span in spans(new.tags)
        } <= mentions
        assert len(spans(new.tags)) == len(spans(old.tags))


def test_a_replaced_token_carries_its_tag_somewhere_and_shuffling_keeps_the_words(
    sentences,
) -> None:
    seen = {(token, tag) for s in sentences for token, tag in zip(s.tokens, s.tags, strict=True)}
    by_id = {s.id: s for s in sentences}
    for one in built("token").augment(sentences, 20, np.random.default_rng(0)):
        assert set(zip(one.sentence.tokens, one.sentence.tags, strict=True)) <= seen
    for one in built("shuffle").augment(sentences, 20, np.random.default_rng(0)):
        old = by_id[one.lineage.parents[0]]
        assert Counter(one.sentence.tokens) == Counter(old.tokens) and one.sentence.tags == old.tags


@pytest.mark.parametrize("method", ["mention", "shuffle", "token"])
def test_a_baseline_that_finds_nothing_new_ends_and_says_so(method: str) -> None:
    made = Replacement(method).augment(
        [Sentence("a", ("Lena",), ("B-PER",))], 3, np.random.default_rng(0)
    )

    assert len(made) == 0 and made.reason == f"{method} finds no other new sentence"
