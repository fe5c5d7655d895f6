"""Requests after the server's own schema, good and bad, over a real connection.

The slow test is the promise in docs/reliability.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("schemathesis", reason="the requests are made by schemathesis")

from hypothesis import Phase, given, settings
from schemathesis import GenerationMode, openapi

from http_schema import ask_all, served, served_tagger
from tests.support.predictors import save_tagger

pytestmark = pytest.mark.filterwarnings("ignore")  # schemathesis and what it uses


@pytest.mark.parametrize("requests", [120, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_request_is_a_5xx_and_a_stranger_hears_401(requests: int, tmp_path: Path) -> None:
    with served(tmp_path / "project") as (url, token):
        mine, strangers, wrong = ask_all(url, token, requests, first_seed=1)

    assert wrong == []
    assert mine.total() >= requests
    assert mine[200] and mine[422]  # some were good, some were bad
    assert set(strangers) == {401}


def test_what_the_schema_of_the_prediction_server_allows_is_answered_as_it_says(
    tmp_path: Path,
) -> None:
    with served_tagger(save_tagger(tmp_path / "ner", steps=2)) as (url, token):
        headers = {"Authorization": f"Bearer {token}"}
        schema = openapi.from_url(f"{url}/openapi.json", headers=headers)
        for path in ("/predict", "/"):
            operation = schema[path]["POST"]

            @settings(max_examples=40, database=None, phases=[Phase.generate], deadline=None)
            @given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
            def ask(case: Any) -> None:
                case.headers, case.cookies = {}, {}
                response = case.call(base_url=url, headers=headers)
                assert response.status_code == 200, response.text
                operation.validate_response(response)  # noqa: B023

            ask()


@pytest.mark.parametrize("requests", [120, pytest.param(5000, marks=pytest.mark.slow)])
def test_the_prediction_server_keeps_the_same_promise(requests: int, tmp_path: Path) -> None:
    with served_tagger(save_tagger(tmp_path / "ner", steps=2)) as (url, token):
        mine, strangers, wrong = ask_all(url, token, requests, first_seed=1)

    assert wrong == []
    assert mine[200] and mine[422] and mine.total() >= requests
    assert set(strangers) == {401}
