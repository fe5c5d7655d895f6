"""A trained tagger, as small as they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqmix.tagger import Settings, Tagger
from tests.support import tiny


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scale")
    encoder = tiny.write_bert(folder / "encoder")
    tagger = Tagger(encoder, settings=Settings(steps=80, lr=3e-3), device="cpu")
    tagger.fit(tiny.toy(), np.random.default_rng(0)).save(folder / "model")
    return folder / "model"
