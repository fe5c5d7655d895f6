"""A config.json that asks for a larger network than is stored is refused before it takes memory."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from torch import nn

from seqmix.errors import ModelError
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.model_size_check import at_most
from tests.support import tiny


@pytest.fixture
def model(bert: str, tmp_path: Path) -> Path:
    """A tagger whose checksums are gone, so that they are not what refuses."""
    Tagger(bert, "crf", Settings(steps=1), "cpu").fit(tiny.toy(4), np.random.default_rng(0)).save(
        tmp_path / "ner"
    )
    change(tmp_path / "ner" / "tagger.json", checksums={})
    return tmp_path / "ner"


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("hidden_size", 2**22, r"asks for encoder\.\S+ of \d+ x 4194304; there it has \d+ x 32"),
        (
            "intermediate_size",
            2**36,
            r"asks for encoder\.\S+ of 68719476736 x 32; there it has 64 x 32",
        ),
        ("max_position_embeddings", 2**36, "68719476736 x 32; there it has 64 x 32"),
        ("num_hidden_layers", 9000, "asks for far more tensors than are stored"),
        (
            "num_hidden_layers",
            3,
            r"asks for encoder\.encoder\.layer\.2\S+ of 32 x 32; there is none",
        ),
        ("num_hidden_layers", 10**9, "asks for more than 10000 in 'num_hidden_layers'"),
        ("num_labels", 10**9, "asks for more than 10000 in 'num_labels'"),
        ("text_config", {"num_labels": 10**9}, "asks for more than 10000 in 'num_labels'"),
    ],
)
def test_a_config_larger_than_its_weights_is_refused_in_one_line(
    model: Path, key: str, value: object, said: str
) -> None:
    change(model / "config.json", **{key: value})

    with pytest.raises(ModelError, match=said) as caught:
        Tagger.load(model)
    assert "\n" not in str(caught.value)


def test_more_tags_than_the_head_has_are_refused(model: Path) -> None:
    change(model / "tagger.json", tags=[f"B-{i}" for i in range(100_000)])

    with pytest.raises(
        ModelError, match=r"classifier.weight of 100000 x 32; there it has \d+ x 32"
    ):
        Tagger.load(model)


def test_only_the_networks_of_its_own_thread_are_counted() -> None:
    built = []
    with at_most(2):
        thread = Thread(target=lambda: built.append([nn.Linear(1, 1) for _ in range(5)]))
        thread.start()
        thread.join()
        nn.Linear(1, 1)
        with pytest.raises(ValueError, match="than are stored"):
            nn.Linear(1, 1)
    assert len(built[0]) == 5
