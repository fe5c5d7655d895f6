"""Predictions that runs keep: read back, paired over seeds and sentences, calibrated."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from seqmix.augment.replacement import Replacement
from seqmix.errors import RunError
from seqmix.loop.pool import labels_of
from seqmix.loop.run import Plan, run
from seqmix.report.curves import load_run
from seqmix.report.page import write_report
from seqmix.report.predictions import (
    Predicted,
    interval_over_seeds_and_sentences,
    read_predicted,
)
from seqmix.testing import WordTagger
from tests.support.small_loops import corpus, entropy_policy, small_learner


def plan(variant: str, seed: int) -> Plan:
    gold = corpus(160, 1)
    augmenter = None if variant == "none" else Replacement(variant)
    return Plan(
        learner=partial(small_learner, augmenter=augmenter, rate=0.5, policy=entropy_policy),
        seed_set=gold[:10],
        pool=gold[10:60],
        label=labels_of(gold),
        splits={"dev": gold[60:100], "test": gold[100:140]},
        sizes=lambda r: 5,
        rounds=1,
        load_tagger=WordTagger.load,
        names={"arm": variant, "policy": "nte", "variant": variant},
        seed=seed,
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    place = tmp_path_factory.mktemp("runs")
    named = [(variant, seed) for variant in ("none", "mention") for seed in (0, 1)]
    for variant, seed in named:
        run(plan(variant, seed), place / f"{variant}-{seed}")
    return [place / f"{variant}-{seed}" for variant, seed in named]


def test_what_is_kept_gives_the_scores_of_the_round(runs):
    loaded = load_run(runs[0])
    for split in ("dev", "test"):
        kept = read_predicted(loaded, split)
        gold, predicted, correct = kept.counts.sum(axis=0)
        result = loaded.rounds[-1].results[split]

        assert 2 * correct / (gold + predicted) == pytest.approx(result["f1"])
        assert predicted > 0 and len(kept.counts) == 40
        assert ((kept.probabilities > 0) & (kept.probabilities <= 1)).all()
    assert all((runs[0] / "rounds" / n / "test.jsonl.gz").exists() for n in ("000", "001"))


def test_the_report_shows_gains_over_seeds_and_sentences(runs, tmp_path):
    write_report(runs, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Seeds and sentences</h2>" in page and "calibration error" in page

    (runs[0] / "rounds" / "001" / "test.jsonl.gz").rename(tmp_path / "kept")
    write_report(runs, tmp_path / "report.html")
    assert "Seeds and sentences" not in (tmp_path / "report.html").read_text()

    (runs[0] / "rounds" / "001" / "test.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(RunError, match=r"test\.jsonl\.gz is damaged"):
        write_report(runs, tmp_path / "report.html")
    (tmp_path / "kept").rename(runs[0] / "rounds" / "001" / "test.jsonl.gz")


def counts(rng: np.random.Generator, right: float, n: int = 500) -> np.ndarray:
    gold = rng.integers(0, 4, size=n)
    correct = rng.binomial(gold, right)
    return np.stack([gold, gold, correct], axis=1)


def test_the_interval_covers_the_true_difference_as_often_as_it_says():
    rng, covered = np.random.default_rng(0), 0
    for _ in range(60):
        pairs = [(counts(rng, 0.8), counts(rng, 0.7)) for _ in range(6)]
        interval = interval_over_seeds_and_sentences(pairs, rng, draws=200)
        covered += interval.low <= 0.1 <= interval.high

    assert covered >= 53


def test_sentences_widen_the_interval_where_seeds_agree():
    rng = np.random.default_rng(1)
    pair = (counts(rng, 0.8, 100), counts(rng, 0.7, 100))
    interval = interval_over_seeds_and_sentences([pair] * 5, rng)

    assert interval.high - interval.low > 0.05
    with pytest.raises(RunError, match="different sentences"):
        interval_over_seeds_and_sentences([pair, (pair[0][:50], pair[1][:50])], rng)


def test_calibration_compares_probabilities_with_how_often_they_are_right():
    rng = np.random.default_rng(0)
    sure = rng.random(5000)
    right = rng.random(5000) < sure
    none = np.zeros((5000, 3), dtype=np.int64)

    assert Predicted(none, sure, right).calibration_error < 0.03
    assert Predicted(none, np.full(5000, 0.95), right).calibration_error == pytest.approx(
        0.95 - right.mean()
    )
