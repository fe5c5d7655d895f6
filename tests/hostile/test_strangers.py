"""A stranger asks for what is there and for what is not: the answer is 401, and always the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from seqmix.serve.labelstudio.app import Password
from seqmix.serve.labelstudio.app import create_app as create_backend_app
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.web.app import PAGE, create_app
from tests.support.labelstudio_fakes import backend
from tests.support.served import project

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
NOWHERE = (
    "/nothing", "/api", "/api/", "/api/nothing", "/docs", "/redoc", "/../../etc/passwd",
    "//", "/%2e%2e/", "/.git/config", "/login", "/login?token=",
)  # fmt: skip
WRONG = (
    {},
    {"Authorization": "Bearer " + "x" * 43},
    {"Authorization": "Basic dXNlcjpwYXNz"},
    {"Cookie": "seqmix=" + "x" * 43},
    {"Host": "evil.example", "Origin": "http://evil.example"},
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, list[str]]]:
    with project(tmp_path_factory.mktemp("p") / "project") as own:
        app = create_app(own)
        assert isinstance(app.app, FastAPI)
        with TestClient(
            app,
            base_url="http://127.0.0.1:8765",
            raise_server_exceptions=False,
            follow_redirects=False,
        ) as client:
            yield client, paths(app.app)


def paths(app: FastAPI) -> list[str]:
    """Every path the application knows, with something in the place of each parameter."""
    documented = list(app.openapi()["paths"])
    known = {path for route in app.routes if (path := getattr(route, "path", None))}
    return sorted(
        path.replace("{id:path}", "s1").replace("{id}", "s1").replace("{seq}", "0")
        for path in {*documented, *known}
    )


def test_the_walk_sees_the_interface_the_schema_and_every_file_of_the_page(
    page: tuple[TestClient, list[str]],
) -> None:
    _, known = page

    assert {"/api/next", "/api/annotations", "/api/sentences/s1", "/openapi.json", "/"} <= set(
        known
    )
    assert {
        f"/{file.name}"
        for file in PAGE.iterdir()
        if file.suffix in (".html", ".js", ".css", ".svg")
    } <= set(known)


@pytest.mark.parametrize("method", METHODS)
def test_without_a_good_token_every_route_and_every_method_is_401(
    page: tuple[TestClient, list[str]], method: str
) -> None:
    client, known = page
    answers: set[Any] = set()
    for path in [*known, *NOWHERE]:
        for headers in WRONG:
            answer = client.request(method, path, headers=headers)
            assert answer.status_code == 401, (method, path, headers, answer.text)
            assert "set-cookie" not in answer.headers
            answers.add(answer.content)

    assert len(answers) == 1  # nothing tells one path from another


def test_with_a_token_the_same_walk_is_answered(
    page: tuple[TestClient, list[str]], tmp_path: Path
) -> None:
    with (
        project(tmp_path / "project") as own,
        TestClient(create_app(own), base_url="http://127.0.0.1:8765") as client,
    ):
        headers = {"Authorization": f"Bearer {add_annotator(own.store, 'Ada', admin=True)}"}
        statuses = {path: client.get(path, headers=headers).status_code for path in page[1]}

    assert statuses["/"] == statuses["/api/next"] == statuses["/style.css"] == 200
    assert statuses.pop("/api/same") == 422  # it must be asked about a span
    assert set(statuses.values()) <= {200, 404, 405}


@pytest.mark.parametrize("method", METHODS)
def test_the_label_studio_backend_tells_a_stranger_nothing_either(
    method: str, tmp_path: Path
) -> None:
    app = create_backend_app(backend(tmp_path), Password("me", "secret"))
    with TestClient(app, raise_server_exceptions=False) as client:
        for path in (
            "/",
            "/health",
            "/versions",
            "/setup",
            "/predict",
            "/webhook",
            "/train",
            *NOWHERE,
        ):
            for headers in WRONG:
                assert client.request(method, path, headers=headers).status_code == 401, (
                    method,
                    path,
                    headers,
                )
        assert client.get("/health", auth=("me", "secret")).status_code == 200
        assert client.get("/nothing", auth=("me", "secret")).status_code == 404
