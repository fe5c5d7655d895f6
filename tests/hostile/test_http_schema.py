"""Requests after the server's own schema, good and bad, over a real connection; the slow one is the promise in docs/reliability.md."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("schemathesis", reason="the requests are made by schemathesis")

from http_schema import ask_all, served

pytestmark = pytest.mark.filterwarnings("ignore")  # schemathesis and what it uses


@pytest.mark.parametrize("requests", [120, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_request_is_a_5xx_and_a_stranger_hears_401(requests: int, tmp_path: Path) -> None:
    with served(tmp_path / "project") as (url, token):
        mine, strangers, wrong = ask_all(url, token, requests, first_seed=1)

    assert wrong == []
    assert mine.total() >= requests
    assert mine[200] and mine[422]  # some were good, some were bad
    assert set(strangers) == {401}
