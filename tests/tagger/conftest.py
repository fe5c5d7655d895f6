"""Tiny encoders for the whole session."""

from __future__ import annotations

import pytest
import torch

from tests.support import tiny


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    """Two threads on cores that others use as well wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def bert(tmp_path_factory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="session")
def still_bert(tmp_path_factory) -> str:
    """The same without dropout."""
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "still", dropout=0)


@pytest.fixture(scope="session")
def roberta(tmp_path_factory) -> str:
    return tiny.write_roberta(tmp_path_factory.mktemp("encoders") / "roberta")
