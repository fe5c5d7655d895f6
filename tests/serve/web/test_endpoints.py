"""The routes for language models as sources."""

from __future__ import annotations

import pytest

from tests.support.served import Served, project, serve

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def site(tmp_path):
    with project(tmp_path / "people") as opened, serve(opened) as served:
        yield served


@pytest.mark.parametrize("url", ["0", "ftp://127.0.0.1/v1", "https://me:secret@127.0.0.1/v1"])
def test_an_address_that_is_none_is_refused_with_what_one_looks_like(site: Served, url):
    response = site.ada.post("/api/endpoints", {"name": "llm", "url": url, "model": "m"})

    assert response.status_code == 422
    assert "https://api.example.com/v1" in response.json()["error"]
    assert "secret" not in response.text


def test_a_prompt_without_a_place_for_the_text_is_refused(site: Served):
    assert (
        site.ada.post("/api/endpoints", {"name": "llm", "url": URL, "model": "m"}).status_code
        == 201
    )

    response = site.ada.post("/api/endpoints/llm/change", {"prompt": "Find names."})

    assert response.status_code == 422
    assert site.ada.get("/api/endpoints/llm").json()["prompt"] != "Find names."
