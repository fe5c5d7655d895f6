"""What is asked of Label Studio's own API, against a server that answers as 1.23.2 does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from seqmix.errors import ConfigError
from seqmix.serve.labelstudio import sync
from seqmix.serve.labelstudio.app import create_app
from seqmix.serve.labelstudio.client import LabelStudioClient, LabelStudioError
from seqmix.serve.labelstudio.mirror import Mirror
from seqmix.serve.labelstudio.predictions import TaskPrediction
from seqmix.serve.labelstudio.sync import fetch
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.current import read_counts
from tests.support.labelstudio_fakes import (
    CONFIG,
    UID,
    annotation,
    backend,
    created,
    event,
    region,
    task,
)
from tests.support.waiting import until

KEY = "0123456789abcdef"
HERE = "http://127.0.0.1:9090"


class Studio(ThreadingHTTPServer):
    """Tasks, predictions and the model version of project 7."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tasks: list[dict[str, Any]] = []
        self.predictions: list[dict[str, Any]] = []
        self.model_version, self.down, self.strict, self.refreshed = "seqmix", False, False, 0
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Studio

    def answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"null")
        status, found = self.found(self.command, self.path, body)
        data = json.dumps(found).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", self.server.url + "/elsewhere")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

    def found(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        own = self.server
        own.asked.append(f"{method} {path.partition('?')[0]}")
        if path == "/api/token/refresh/":
            own.refreshed += 1
            return 200, {"access": "short-lived"}
        if self.headers["Authorization"] not in (f"Token {KEY}", "Bearer short-lived"):
            return 401, {"detail": "no"}
        if own.down:
            return 302, {}
        if path.startswith("/api/tasks?project=7"):
            page = int(path.partition("&page=")[2].partition("&")[0])
            return 200, {"total": len(own.tasks), "tasks": own.tasks[(page - 1) * 200 : page * 200]}
        if path == "/api/projects/7/import/predictions":
            known = {one["id"] for one in own.tasks}
            if own.strict and any(one["task"] not in known for one in body):
                own.predictions += body[:1]  # as much as was written when it broke off
                return 400, {"detail": "contains invalid task field"}
            own.predictions += body
            return 201, {"created": len(body)}
        if path == "/api/projects/7/model-versions/":
            if method == "GET":
                return 200, {one["model_version"]: 1 for one in own.predictions} | {
                    "somebody-elses": 3
                }
            own.predictions = [
                one for one in own.predictions if one["model_version"] != body["model_version"]
            ]
            return 200, {}
        if path == "/api/projects/7" and method == "PATCH":
            own.model_version = body["model_version"]
            return 200, {}
        return 404, {"detail": "Not found."}

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def studio() -> Iterator[Studio]:
    server = Studio()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[Mirror]:
    settings = ProjectSettings("studio", ("PER", "LOC"), audit_share=0.0)
    create_project(tmp_path / "project", [], settings, may_be_empty=True)
    with open_project(tmp_path / "project") as project:
        mirror = Mirror(project)
        mirror.configure(CONFIG)
        yield mirror


def test_tasks_and_annotations_are_taken_over_and_what_is_gone_is_forgotten(
    studio: Studio, mirror: Mirror
) -> None:
    client = LabelStudioClient(studio.url, KEY)
    studio.tasks = [
        task(id, f"Lena {id}", annotation(id, id, region("Lena", "Lena", "PER")))
        for id in range(1, 451)
    ]
    studio.tasks[7]["annotations"] = [{"id": "broken"}]

    assert fetch(client, 7, mirror, "label") == 450
    assert (mirror.counts().tasks, mirror.counts().labeled) == (450, 449)

    studio.tasks = [
        {**one, "annotations": []} if one["id"] == 2 else one for one in studio.tasks[1:]
    ]
    fetch(client, 7, mirror, "label")
    assert (mirror.counts().tasks, mirror.counts().labeled) == (449, 447)
    counts = read_counts(mirror.store)
    assert (counts.sentences, counts.labeled) == (449, 447)


def test_what_comes_while_tasks_are_fetched_is_not_forgotten(mirror: Mirror) -> None:
    mirror.touched = set()
    mirror.keep([(5, {"text": "new"})])
    mirror.forget_missing([], [])

    assert mirror.counts().tasks == 1


def test_a_personal_access_token_is_exchanged_once_in_a_while(studio: Studio) -> None:
    client = LabelStudioClient(studio.url, "header.payload.signature")
    client.push(7, "v", [TaskPrediction(n, 0.5, []) for n in range(450)])

    assert studio.refreshed == 1
    assert len(studio.predictions) == 450
    assert studio.asked.count("POST /api/projects/7/import/predictions") == 3


@pytest.mark.parametrize(
    "url",
    [
        "localhost:8080",
        "file:///etc",
        "http://",
        "http://user:pw@host",
        "http://host/?x=1",
        "javascript:1",
    ],
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--url must look like"):
        LabelStudioClient(url, KEY)


@pytest.mark.parametrize("key", ["", "a\nb", "schlüssel"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="LABEL_STUDIO_API_KEY"):
        LabelStudioClient("http://localhost:8080", key)


def test_what_goes_wrong_is_said_without_the_key(studio: Studio) -> None:
    with pytest.raises(LabelStudioError, match=r"answered 401.*the key is not accepted"):
        LabelStudioClient(studio.url, "wrong-key").push(7, "v", [TaskPrediction(1, 0.5, [])])
    with pytest.raises(LabelStudioError, match=r"answered 404.*no such project"):
        LabelStudioClient(studio.url, KEY).push(8, "v", [TaskPrediction(1, 0.5, [])])
    with pytest.raises(LabelStudioError, match="cannot talk to") as caught:
        LabelStudioClient("http://127.0.0.1:9", KEY).push(7, "v", [TaskPrediction(1, 0.5, [])])
    assert KEY not in str(caught.value)


def test_the_key_does_not_follow_a_redirect(studio: Studio) -> None:
    studio.down = True

    with pytest.raises(LabelStudioError, match="answered 302"):
        LabelStudioClient(studio.url, KEY).push(7, "v", [TaskPrediction(1, 0.5, [])])
    assert "GET /elsewhere" not in studio.asked
    assert "POST /elsewhere" not in studio.asked


def test_each_round_puts_the_projects_tasks_in_order(studio: Studio, tmp_path: Path) -> None:
    studio.tasks = [
        task(1, "Lena left"),
        task(2, "Bo met Ada"),
        task(3, "Lena", annotation(9, 3, region("Lena", "Lena", "PER"))),
    ]
    with TestClient(
        create_app(backend(tmp_path, client=LabelStudioClient(studio.url, KEY), min_new=1)),
        base_url=HERE,
    ) as client:
        client.post("/setup", json={"project": UID, "schema": CONFIG})
        until(
            lambda: client.get("/health").json()["trained_on"] == 1
        )  # the annotation that was there before we came
        first = until(
            lambda: (
                studio.model_version.startswith("seqmix-")
                and len(studio.predictions) == 2
                and studio.model_version
            )
        )
        scores = {one["task"]: one["score"] for one in studio.predictions}
        assert scores[2] < scores[1]  # nothing is known of Bo and Ada
        assert client.get("/health").json()["error"] is None

        client.post("/webhook", json=event("TASKS_CREATED", tasks=[task(4, "Bo left")]))
        until(lambda: {one["task"] for one in studio.predictions} == {1, 2, 4})
        assert {one["model_version"] for one in studio.predictions} == {first}

        client.post(
            "/webhook", json=created(10, 2, "Bo met Ada", region("Bo met Ada", "Bo", "PER"))
        )
        until(lambda: studio.model_version > first)
        until(lambda: {one["task"] for one in studio.predictions} == {1, 4})
        assert {one["model_version"] for one in studio.predictions} == {studio.model_version}


def test_predictions_that_were_refused_are_sent_again_whole(
    studio: Studio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "RETRY", 0.1)
    studio.strict, studio.tasks = (
        True,
        [task(1, "Lena left"), task(2, "Bo met Ada"), task(3, "Ada")],
    )
    with TestClient(
        create_app(backend(tmp_path, client=LabelStudioClient(studio.url, KEY))), base_url=HERE
    ) as client:
        client.post("/setup", json={"project": UID, "schema": CONFIG})
        until(lambda: client.get("/health").json()["tasks"] == 3)
        lena = region("Lena left", "Lena", "PER")
        labeled = task(1, "Lena left", annotation(1, 1, lena))
        studio.tasks = [labeled, studio.tasks[1]]  # task 3 is deleted, and nobody told us
        client.post("/webhook", json=created(1, 1, "Lena left", lena))
        client.post("/webhook", json=event("START_TRAINING"))

        until(lambda: client.get("/health").json()["tasks"] == 2)
        until(lambda: studio.model_version == client.get("/health").json()["model_version"])
        until(lambda: [one["task"] for one in studio.predictions] == [2])
        until(lambda: client.get("/health").json()["error"] is None)


def test_a_label_studio_that_is_down_stops_nothing(tmp_path: Path) -> None:
    with TestClient(
        create_app(
            backend(tmp_path, client=LabelStudioClient("http://127.0.0.1:9", KEY), min_new=1)
        ),
        base_url=HERE,
    ) as client:
        client.post("/setup", json={"project": UID, "schema": CONFIG})
        client.post("/webhook", json=created(1, 1, "Lena left", region("Lena left", "Lena", "PER")))
        until(lambda: client.get("/health").json()["trained_on"] == 1)
        assert "cannot talk to Label Studio" in client.get("/health").json()["error"]
