"""The databases a store must work in: a test that takes `url` runs once in each."""

from __future__ import annotations

import pytest
from sqlalchemy import URL

from seqmix.serve.store.database.engine import sqlite_url
from tests.support.postgres import new_database, server, wipe


@pytest.fixture(scope="session")
def postgres():
    """The URL of a PostgreSQL server of our own."""
    with server() as url:
        yield url


@pytest.fixture(scope="session")
def database(postgres) -> str:
    """One database on it."""
    return new_database(postgres, "store")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str | URL:
    """An empty database."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "store.sqlite")
    found = request.getfixturevalue("database")
    wipe(found)
    return found
