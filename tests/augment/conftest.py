"""One small language model for the whole session."""

from __future__ import annotations

import pytest

from tests.support.toys import write_lm


@pytest.fixture(scope="session")
def lm(tmp_path_factory) -> str:
    return write_lm(tmp_path_factory.mktemp("lm"))
