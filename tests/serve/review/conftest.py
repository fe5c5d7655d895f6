"""The small store of the store's tests, and its annotators."""

from __future__ import annotations

from tests.serve.store.conftest import anna, bo, store

__all__ = ["anna", "bo", "store"]
