"""Weights in int8 for looking at a pool: nearly the same order, not taken for the tagger itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from seqmix.data.samples import sample
from seqmix.errors import ConfigError, ModelError
from seqmix.tagger import Settings, Tagger, int8


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return Tagger(settings=Settings(steps=16, batch_size=8), device="cpu").fit(
        sample("gazette:train")[:64], np.random.default_rng(0)
    )


def test_the_order_of_a_pool_hardly_changes_and_the_tagger_not_at_all(tagger):
    pool = sample("gazette:test")[:40]
    before = list(tagger.unsure(pool, "entropy"))

    rounded = list(tagger.int8().unsure(pool, "entropy"))

    assert rounded != before and spearmanr(rounded, before).statistic > 0.99
    assert list(tagger.unsure(pool, "entropy")) == before


def test_a_copy_for_scoring_is_not_trained_further_or_saved(tagger, tmp_path):
    copy = tagger.int8()

    with pytest.raises(ModelError, match="int8"):
        copy.save(tmp_path / "model")
    with pytest.raises(ModelError, match="int8"):
        copy.fit(sample("gazette:train")[:8], np.random.default_rng(0), warm=True)
    assert not (tmp_path / "model").exists()


def test_a_cpu_that_dies_of_it_is_found_out_and_said(tagger, monkeypatch):
    monkeypatch.setattr(
        int8.sys, "executable", "/bin/false"
    )  # what a process that was killed looks like: not 0
    int8.works.cache_clear()

    with pytest.raises(ConfigError, match="do not work with this CPU"):
        tagger.int8()

    int8.works.cache_clear()
