"""What bench/predict.py compares gives the same tags."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from score import ready
from seqmix.export.hf import export_hf
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.int8 import works
from tests.support import tiny


@pytest.fixture(scope="module")
def ways() -> ModuleType:
    return import_module("predict_ways")


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Tagger:
    encoder = tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")
    settings = Settings(epochs=3, batch_size=4)
    return Tagger(encoder, settings=settings, device="cpu").fit(
        tiny.toy(24), np.random.default_rng(0)
    )


@pytest.mark.ci
@pytest.mark.parametrize(("batch", "alone"), [(1, True), (32, False)])
def test_a_pipeline_in_another_process_gives_the_tags_of_ours(
    ways: ModuleType, tagger: Tagger, tmp_path: Path, batch: int, alone: bool
) -> None:
    export_hf(tagger, tmp_path / "hf")
    sentences = tiny.toy(12)
    ours = ways.seqmix(tagger)(sentences, alone)

    with ways.peer(sys.executable, "transformers", tmp_path / "hf", "cpu", batch) as way:
        theirs = way(sentences, alone)

    assert [[*tags] for tags in theirs.tags] == [[*tags] for tags in ours.tags]
    assert any(tag != "O" for tags in ours.tags for tag in tags)
    assert len(theirs.each) == len(ours.each) == (len(sentences) if alone else 0)
    assert all(clock > 0 for clock in (*theirs.time, *ours.time))
    if alone:
        assert 0 < sum(seconds for seconds, _ in theirs.each) <= theirs.time[0]
        assert 0 <= sum(cpu for _, cpu in theirs.each) <= theirs.time[1]


@pytest.mark.skipif(not works(), reason="no int8 products on this CPU")
def test_the_limit_of_int8_multiplies_in_every_layer_of_every_batch(
    ways: ModuleType, tagger: Tagger
) -> None:
    rounded = tagger.int8()
    batches = ready(tagger, tiny.toy(12))
    seen = []
    multiply = ways.int8_products(rounded, batches)
    encoder = rounded.network.encoder.encoder  # without the pooler, which nothing needs
    layers = [layer for layer in encoder.modules() if isinstance(layer, ways.Int8Linear)]
    for layer in layers:
        layer.register_forward_hook(lambda layer, inputs, output: seen.append(layer))

    multiply()

    assert len(seen) == len(layers) * len(batches) > 0
