"""`seqmix labelstudio`: what it refuses, what it takes from a config, and one real training."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from seqmix.app.cli import run
from seqmix.app.commands.label.labelstudio import build_backend
from seqmix.app.config import nested
from seqmix.app.project_config import project_config
from seqmix.data.formats.base import Options
from seqmix.data.formats.charspans import surface, to_spans
from seqmix.errors import DataError, ModelError
from seqmix.serve.labelstudio.app import create_app
from seqmix.serve.project import create_project
from seqmix.serve.settings import ProjectSettings, read_settings
from tests.support.tiny import toy, write_bert
from tests.support.waiting import until

CONFIG = (
    '<View><Labels name="label" toName="text">'
    '<Label value="PER"/><Label value="LOC"/><Label value="ORG"/></Labels>'
    '<Text name="text" value="$text"/></View>'
)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--min-new", "0"], "--min-new must be at least 1; got 0"),
        (["--host", "0.0.0.0"], "set a password in SEQMIX_PASSWORD"),
        (["--host", "studio.example.com"], "set a password in SEQMIX_PASSWORD"),
        (["--port", "70000"], "got 70000"),
        (["--port", "0", "--set", "query.policy=best"], "query.policy"),
        (["--port", "0", "--url", "localhost:8080"], "--url must look like"),
        (
            ["--port", "0", "--url", "http://localhost:8080"],
            "LABEL_STUDIO_API_KEY",
        ),
        (["--port", "0", "--model", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    options: list[str],
    match: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SEQMIX_PASSWORD", "LABEL_STUDIO_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    assert run(["labelstudio", "--folder", str(tmp_path / "state"), *options]) == 2
    said = capsys.readouterr().err.strip()
    assert match in said
    assert "\n" not in said


def test_a_port_that_is_taken_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert (
            run(
                [
                    "labelstudio",
                    "--folder",
                    str(tmp_path / "state"),
                    "--port",
                    str(taken.getsockname()[1]),
                ]
            )
            == 2
        )
    assert "give another --port" in capsys.readouterr().err


def settings_of(**changes: Any) -> dict[str, Any]:
    return nested({key.replace("__", "."): value for key, value in changes.items()})


def test_a_config_is_written_into_the_settings_of_the_project(tmp_path: Path) -> None:
    changes = settings_of(seed=7, query__policy="mnlp", augment__variant="none", training__epochs=3)
    setup = {"project": "1.1794743715", "schema": CONFIG}
    for values, policy in ((changes, "mnlp"), (settings_of(query__policy="random"), "random")):
        backend = build_backend(tmp_path, {**values, "batch": 4})
        try:
            backend.start()
            backend.setup(setup)
        finally:
            backend.close()
        settings = read_settings(tmp_path)
        assert (settings.policy, settings.augment, settings.batch) == (policy, "none", 4)
        assert (settings.seed, settings.tags) == (7, ("PER", "LOC", "ORG"))
        assert project_config(tmp_path, settings).training.epochs == 3


def test_a_project_with_other_tags_is_refused(tmp_path: Path) -> None:
    create_project(tmp_path / "p", toy(3), ProjectSettings("other", ("PER", "DATE")))
    backend = build_backend(tmp_path / "p", {})
    try:
        backend.start()
        with pytest.raises(DataError, match="the labels must be the tags of the project"):
            backend.setup({"project": "1.1794743715", "schema": CONFIG})
    finally:
        backend.close()


def test_a_model_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        build_backend(tmp_path / "state", {}, tmp_path)


@pytest.mark.slow
def test_a_round_in_a_process_of_its_own_trains_ranks_and_suggests(tmp_path: Path) -> None:
    encoder = write_bert(tmp_path / "tiny")
    values = settings_of(
        tagger__encoder=str(encoder),
        training__lr=3e-3,
        training__epochs=30,
        augment__variant="none",
    )
    sentences = {sentence.tokens: sentence for sentence in toy(24)}.values()
    n = len(sentences)
    backend = build_backend(tmp_path / "state", {**values, "batch": n, "audit_share": 0.0})
    project = {"id": 1, "created_at": "2026-11-15T11:55:15Z", "label_config": CONFIG}
    with TestClient(create_app(backend), base_url="http://127.0.0.1:9090") as studio:
        for number, sentence in enumerate(sentences, 1):
            text, offsets = surface(sentence, Options())
            values = [
                {"start": s.start, "end": s.end, "labels": [s.type]}
                for s in to_spans(sentence, offsets)
            ]
            result = [
                {"from_name": "label", "to_name": "text", "type": "labels", "value": value}
                for value in values
            ]
            own = {"id": number, "task": number, "result": result}
            body = {
                "action": "ANNOTATION_CREATED",
                "project": project,
                "annotation": own,
                "task": {"id": number, "data": {"text": text}},
            }
            assert studio.post("/webhook", json=body).status_code == 200

        def trained() -> dict[str, Any] | None:
            found = studio.get("/health").json()
            assert found["error"] is None, found["error"]
            return found if found["trained_on"] == n else None

        until(trained)
        asked = {
            "project": "1.1794743715",
            "label_config": CONFIG,
            "tasks": [{"id": 99, "data": {"text": "Ada lives in Rome ."}}],
        }
        answer = studio.post("/predict", json=asked)
    assert answer.status_code == 200, answer.text
    (one,) = answer.json()["results"]
    assert [
        (r["value"]["text"], r["value"]["start"], r["value"]["labels"]) for r in one["result"]
    ] == [
        ("Ada", 0, ["PER"]),
        ("Rome", 13, ["LOC"]),
    ]
    assert run(["info", str(tmp_path / "state" / "models" / "001")]) == 0
    assert run(["info", str(tmp_path / "state")]) == 0
