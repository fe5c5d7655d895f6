"""Model folders: a flipped bit is noticed, a failed write is one line and keeps the old folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors import SafetensorError

from seqmix.errors import DataError, ModelError
from seqmix.tagger import Settings, Tagger, model_folders
from tests.support import tiny


@pytest.fixture
def model(bert: str, tmp_path: Path) -> Path:
    Tagger(bert, "linear", Settings(steps=1), "cpu").fit(
        tiny.toy(4), np.random.default_rng(0)
    ).save(tmp_path / "ner")
    return tmp_path / "ner"


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"]
)
def test_one_flipped_bit_is_noticed(model: Path, name: str) -> None:
    content = bytearray((model / name).read_bytes())
    content[-10] ^= 1
    (model / name).write_bytes(content)

    with pytest.raises(ModelError, match=rf"damaged: {name} is not what was written") as caught:
        Tagger.load(model)
    assert "\n" not in str(caught.value)


def test_a_folder_without_checksums_loads(model: Path) -> None:
    described = json.loads((model / "tagger.json").read_text())
    assert set(described.pop("checksums")) == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    (model / "tagger.json").write_text(json.dumps(described))

    assert Tagger.load(model).tag_set is not None


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (
            SafetensorError("I/O error: No space left on device (os error 28)"),
            ModelError,
            "cannot write the model folder",
        ),
        (
            OSError(28, "No space left on device"),
            DataError,
            "cannot write here: No space left on device",
        ),
    ],
)
def test_a_disk_that_is_full_is_one_line_and_the_old_model_stays(
    model: Path, monkeypatch, error, kind, said
) -> None:
    own, before = Tagger.load(model), {file.name: file.read_bytes() for file in model.iterdir()}

    def full(*_) -> None:
        raise error

    monkeypatch.setattr(model_folders, "save_file", full)
    with pytest.raises(kind, match=said) as caught:
        own.save(model)

    assert "\n" not in str(caught.value)
    assert {file.name: file.read_bytes() for file in model.iterdir()} == before
    assert [path.name for path in model.parent.iterdir()] == ["ner"]
