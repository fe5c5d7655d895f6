"""A small store in each database, and its annotators."""

from __future__ import annotations

import pytest

from tests.support.stores import person, small_store


@pytest.fixture
def store(url):
    with small_store(url) as opened:
        yield opened


@pytest.fixture
def anna(store) -> int:
    return person(store, "anna").id


@pytest.fixture
def bo(store) -> int:
    return person(store, "bo").id
