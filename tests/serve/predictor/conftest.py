from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.predictors import save_tagger


@pytest.fixture(scope="session")
def tagger_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tagger(tmp_path_factory.mktemp("served") / "ner")
