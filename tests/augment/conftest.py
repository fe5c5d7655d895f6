"""One small language model for the whole session."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from toys import write_lm


@pytest.fixture(scope="session")
def lm(tmp_path_factory) -> str:
    return write_lm(tmp_path_factory.mktemp("lm"))
