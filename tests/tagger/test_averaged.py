"""Averaged taggers: the mean of the members predicts, legally, and survives the disk."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, DataError, ModelError
from seqmix.query.uncertainty import least_confidence_sum, margin, token_entropy
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.ensemble.averaged import AveragedTagger
from tests.support import tiny

MIXED = [
    Sentence("none", ()),
    *(sentence.unlabeled() for sentence in tiny.toy(70)),
    Sentence("long", tuple(["Lena", "visited", "Bergen", "and"] * 20)),
]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module", params=["linear", "crf"])
def averaged(request, bert) -> AveragedTagger:
    """Members that hardly learned anything, so that they disagree."""
    made = [Tagger(bert, request.param, Settings(steps=3, lr=1e-3)) for _ in range(3)]
    return AveragedTagger([tagger.fit(tiny.toy(), rng(at)) for at, tagger in enumerate(made)])


def test_the_probabilities_are_the_mean_of_the_members(averaged: AveragedTagger) -> None:
    members = [list(member.probabilities(MIXED)) for member in averaged.members]

    for rows, *each in zip(averaged.probabilities(iter(MIXED)), *members, strict=True):
        assert np.allclose(rows, sum(each) / 3, atol=1e-6)
    assert not np.allclose(members[0][1], members[1][1], atol=1e-3)


def test_the_best_paths_are_the_legal_ones_of_the_highest_product(averaged: AveragedTagger) -> None:
    tags = averaged.tag_set.tags
    short = [sentence for sentence in MIXED if len(sentence) == 3][:3]

    for rows, paths in zip(
        averaged.probabilities(short), averaged.best_paths(short, n=2, by_token=True), strict=True
    ):
        every = [
            (float(np.prod([rows[at, id] for at, id in enumerate(ids)], dtype=np.float64)), ids)
            for ids in product(range(len(tags)), repeat=3)
            if is_legal([tags[id] for id in ids])
        ]
        for path, (probability, ids) in zip(paths, sorted(every, reverse=True), strict=False):
            assert path.tags == tuple(tags[id] for id in ids)
            assert path.probability == pytest.approx(probability, rel=1e-4)
            assert path.by_token == pytest.approx([rows[at, id] for at, id in enumerate(ids)])


def test_predictions_come_in_order_and_keep_labels_on_request(averaged: AveragedTagger) -> None:
    predicted = list(averaged.predict(iter(MIXED)))
    marked = [s.with_tags(["B-LOC", *[None] * (len(s) - 1)]) for s in MIXED if len(s)]

    assert [sentence.id for sentence in predicted] == [sentence.id for sentence in MIXED]
    assert all(is_legal([str(tag) for tag in sentence.tags]) for sentence in predicted)
    assert all(s.tags[0] == "B-LOC" for s in averaged.predict(marked, keep=True))


@pytest.mark.parametrize(
    ("name", "measure"),
    [("entropy", token_entropy), ("least", least_confidence_sum), ("margin", margin)],
)
def test_doubt_is_that_of_the_mean(averaged: AveragedTagger, name: str, measure) -> None:
    expected = [measure(r) if len(r) else 0.0 for r in averaged.probabilities(MIXED)]

    assert list(averaged.unsure(MIXED, name)) == pytest.approx(expected, abs=1e-6)


def test_states_stand_side_by_side_and_dropout_is_averaged(averaged: AveragedTagger) -> None:
    states = list(averaged.embeddings(MIXED))
    passes = list(averaged.dropped(MIXED[:3], 4, rng()))
    again = list(averaged.dropped(MIXED[:3], 4, rng()))

    assert all(s.shape == (len(x), 3 * 32) for s, x in zip(states, MIXED, strict=True))
    assert passes[1].shape == (4, len(MIXED[1]), len(averaged.tag_set.tags))
    assert np.allclose(passes[1].sum(axis=2), 1, atol=1e-5)
    assert all(np.array_equal(a, b) for a, b in zip(passes, again, strict=True))


def test_what_is_saved_predicts_the_same_and_replaces_only_its_kind(
    averaged: AveragedTagger, tmp_path: Path
) -> None:
    averaged.save(tmp_path / "model")
    averaged.save(tmp_path / "model")
    loaded = AveragedTagger.load(tmp_path / "model")

    for before, after in zip(
        averaged.probabilities(MIXED), loaded.probabilities(MIXED), strict=True
    ):
        assert np.array_equal(before, after)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(DataError, match="holds other files"):
        averaged.save(tmp_path / "other")


@pytest.mark.parametrize("text", ["", "[]", "3", '{"members": "x"}', '{"format_version": 9}'])
def test_a_damaged_folder_is_named(averaged: AveragedTagger, tmp_path: Path, text: str) -> None:
    averaged.save(tmp_path / "model")
    (tmp_path / "model" / "averaged.json").write_text(text)

    with pytest.raises(ModelError, match="model"):
        AveragedTagger.load(tmp_path / "model")


def test_a_member_that_is_gone_is_named(averaged: AveragedTagger, tmp_path: Path) -> None:
    averaged.save(tmp_path / "model")
    described = json.loads((tmp_path / "model" / "averaged.json").read_text())
    (tmp_path / "model" / "averaged.json").write_text(json.dumps(described | {"members": 4}))

    with pytest.raises(ModelError, match="3 is not a tagger"):
        AveragedTagger.load(tmp_path / "model")


def test_members_have_the_same_tags(bert) -> None:
    one, other = (Tagger(bert).start(TagSet.of_types([kind]), rng()) for kind in ("PER", "LOC"))

    for members in ([], [one, other]):
        with pytest.raises(ConfigError, match="at least one, and all have the same tags"):
            AveragedTagger(members)
