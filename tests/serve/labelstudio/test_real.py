"""The round trip against a real Label Studio 1.23.2, driven through its SDK.

Import, predict, annotate, webhook, train, predict again. Label Studio lives in a virtual
environment of its own: SEQMIX_LABEL_STUDIO names its `label-studio` command, else one is made in
the temporary folder, which needs a package index.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seqmix.data.formats.base import Options
from seqmix.data.formats.charspans import surface, to_spans
from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from tests.support import ROOT

pytestmark = pytest.mark.slow
VERSION = "1.23.2"
KEY = "0123456789abcdef0123456789abcdef01234567"
TYPES = ("PER", "ORG", "LOC", "MISC")
LABELS = "".join(f"<Label value={json.dumps(name)}/>" for name in TYPES)
CONFIG = (
    f'<View><Labels name="ner" toName="body">{LABELS}</Labels>'
    '<Text name="body" value="$sentence" granularity="word"/></View>'
)
ROCKET = "🚀🇳🇴 "  # three code points and a space, six UTF-16 units and a space


@dataclass
class Studio:
    """A running Label Studio and its SDK in a process beside it."""

    url: str
    driver: subprocess.Popen[str]

    def _send(self, wanted: dict[str, Any]) -> Any:
        assert self.driver.stdin is not None
        assert self.driver.stdout is not None
        self.driver.stdin.write(json.dumps(wanted) + "\n")
        self.driver.stdin.flush()
        answer = json.loads(self.driver.stdout.readline())
        assert "error" not in answer, f"{wanted}: {answer['error']}"
        return answer["found"]

    def sdk(self, call: str, **kwargs: Any) -> Any:
        return self._send({"call": call, "kwargs": kwargs})

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self._send({"ask": [method, path, body]})

    def tasks(self, project: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.ask(
            "GET", f"/api/tasks?project={project}&page=1&page_size=500&fields=all"
        )["tasks"]
        return found

    def retrieve(self, project: int) -> None:
        """What the button Retrieve Predictions does."""
        self.ask(
            "POST",
            f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}",
            {"selectedItems": {"all": True, "excluded": []}},
        )


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    command, folder, port = label_studio(), tmp_path_factory.mktemp("studio"), free_port()
    environment = {
        **os.environ,
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_USERNAME": "somebody@example.com",
        "LABEL_STUDIO_PASSWORD": secrets.token_urlsafe(12),
        "LABEL_STUDIO_USER_TOKEN": KEY,
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "ML_BLOCK_LOCAL_IP": "false",  # by default Label Studio talks to no backend on loopback,
        "SSRF_PROTECTION_ENABLED": "false",  # and sends no webhook there
        # its patience is a second; on a machine that is busy with other tests that says nothing
        **dict.fromkeys(
            ("ML_CONNECTION_TIMEOUT", "ML_TIMEOUT_HEALTH", "ML_TIMEOUT_SETUP", "WEBHOOK_TIMEOUT"),
            "30",
        ),
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "OMP_NUM_THREADS": "1",
    }
    start = [str(command), "start", "--no-browser", "--port", str(port), "--log-level", "ERROR"]
    with running(start, environment, folder / "log.txt") as server:
        url = f"http://127.0.0.1:{port}"
        wait(lambda: get(f"{url}/health") is not None, 900, server)
        driver = [
            str(command.parent / "python"),
            str(ROOT / "tests" / "support" / "labelstudio_driver.py"),
            url,
            KEY,
        ]
        with subprocess.Popen(
            driver, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as client:
            try:
                yield Studio(url, client)
            finally:
                client.terminate()


def label_studio() -> Path:
    """The command, or the test is skipped with the reason."""
    if given := os.environ.get("SEQMIX_LABEL_STUDIO"):
        assert Path(given).is_file(), (
            f"SEQMIX_LABEL_STUDIO is {given!r}; it should be the path of the label-studio command"
        )
        return Path(given)
    place = Path(tempfile.gettempdir()) / f"seqmix-label-studio-{VERSION}"
    command = place / "bin" / "label-studio"
    if not command.exists():
        made = subprocess.run(
            [sys.executable, "-m", "venv", str(place)], capture_output=True, text=True, check=False
        )
        wanted = [
            str(place / "bin" / "pip"),
            "install",
            "-q",
            f"label-studio=={VERSION}",
            "label-studio-sdk",
        ]
        made = (
            made
            if made.returncode
            else subprocess.run(wanted, capture_output=True, text=True, check=False)
        )
        if made.returncode:
            last = (made.stderr.strip().splitlines() or ["no reason given"])[-1]
            pytest.skip(
                f"label-studio {VERSION} is not there (SEQMIX_LABEL_STUDIO) "
                f"and cannot be installed: {last}"
            )
    return command


@contextmanager
def running(
    command: list[str], environment: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is stopped by its own pid, whatever happens."""
    with log.open("ab") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield server
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(20)


@contextmanager
def backend(
    folder: Path, port: int, *options: str, **environment: str
) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        sys.executable,
        "-m",
        "seqmix",
        "labelstudio",
        "--folder",
        str(folder),
        "--port",
        str(port),
        "--set",
        "audit_share=0",
        *options,
    ]
    with running(
        command,
        {**os.environ, "OMP_NUM_THREADS": "1", **environment},
        folder.parent / "backend.txt",
    ) as server:
        wait(
            lambda: (
                get(f"http://127.0.0.1:{port}/health", environment.get("SEQMIX_PASSWORD"))
                is not None
            ),
            300,
            server,
        )
        yield server


def wait(
    true: Callable[[], Any], seconds: float, server: subprocess.Popen[bytes] | None = None
) -> Any:
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, f"it did not happen within {seconds:g} s"
        assert server is None or server.poll() is None, "the server has ended"
        time.sleep(0.5)
    return found


def get(url: str, password: str | None = None) -> Any:
    try:
        headers = {} if password is None else {"Authorization": f"Bearer {password}"}
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=10
        ) as answer:
            return json.loads(answer.read())
    except OSError:
        return None


def healthy(url: str) -> Any:
    found = get(url)
    assert found is None or found["error"] is None, found["error"]
    return found


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def regions(sentence: Sentence, before: str = "") -> list[dict[str, Any]]:
    """The gold spans as an annotator would have made them."""
    text, offsets = surface(sentence, Options())
    found = [
        (s.start + len(before), s.end + len(before), s.type) for s in to_spans(sentence, offsets)
    ]
    values = [
        {"start": a, "end": b, "text": (before + text)[a:b], "labels": [type]}
        for a, b, type in found
    ]
    return [
        {"from_name": "ner", "to_name": "body", "type": "labels", "value": value}
        for value in values
    ]


def texts(sentences: list[Sentence]) -> list[str]:
    return [surface(sentence, Options())[0] for sentence in sentences]


def test_import_predict_annotate_webhook_train_predict_again(
    studio: Studio, tmp_path: Path
) -> None:
    sentences = sample("gazette:train")[:24]
    known, later = texts(sentences), [ROCKET + text for text in texts(sentences[:6])]
    project = studio.sdk("projects.create", title="round trip", label_config=CONFIG)["id"]
    given = [{"sentence": text} for text in (*known, "It rained.", *later)]
    ids = studio.sdk("projects.import_tasks", id=project, request=given, return_task_ids=True)[
        "task_ids"
    ]
    port, folder = free_port(), tmp_path / "state"
    health = f"http://127.0.0.1:{port}/health"
    with backend(folder, port, "--min-new", "10") as server:
        connected = studio.sdk(
            "ml.create", url=f"http://127.0.0.1:{port}", project=project, title="seqmix"
        )
        assert connected["state"] == "CO"
        studio.retrieve(project)
        first = wait(
            lambda: (
                (found := healthy(health))
                and found["tasks"] == len(given)
                and not found["model_version"].endswith("0000")
                and found
            ),
            600,
            server,
        )
        assert (first["tasks"], first["labeled"], first["error"]) == (len(given), 0, None)
        studio.retrieve(project)
        first = healthy(health)  # ranked again, perhaps, when all tasks had come
        predicted = {
            t["id"]: p
            for t in studio.tasks(project)
            for p in t["predictions"]
            if p["model_version"] == first["model_version"]
        }
        assert {id: p["result"] for id, p in predicted.items()} == {
            id: [] for id in ids
        }  # nothing is learned yet
        assert len({p["score"] for p in predicted.values()}) == len(
            ids
        )  # but the tasks are in order

        for id, sentence in zip(ids[:9], sentences, strict=False):
            studio.sdk("annotations.create", id=id, result=regions(sentence), lead_time=3.0)
        rained = studio.sdk("annotations.create", id=ids[len(known)], result=[])  # no entity in it
        skipped = studio.sdk("annotations.create", id=ids[20], result=[], was_cancelled=True)
        wrong = studio.sdk("annotations.create", id=ids[10], result=[])
        studio.sdk("annotations.update", id=wrong["id"], result=regions(sentences[10]))
        gone = studio.sdk("annotations.create", id=ids[11], result=regions(sentences[11]))
        studio.sdk("annotations.delete", id=gone["id"])
        start = time.monotonic()
        done = wait(
            lambda: (
                (found := healthy(health))
                and found["trained_on"]
                and found["phase"] == "waiting"
                and found
            ),
            900,
            server,
        )
        seconds = time.monotonic() - start
        assert (done["labeled"], done["left_out"], done["error"]) == (11, 0, None)
        assert (rained["was_cancelled"], skipped["was_cancelled"]) == (False, True)

        if done["trained_on"] < 11:  # it began before the last of them came
            studio.sdk("ml.train", id=connected["id"])
            done = wait(
                lambda: (found := healthy(health)) and found["trained_on"] == 11 and found,
                900,
                server,
            )
        studio.retrieve(project)
        tasks = studio.tasks(project)
    current = {
        t["id"]: p
        for t in tasks
        for p in t["predictions"]
        if p["model_version"] == done["model_version"]
    }
    assert set(current) == set(ids)
    assert done["model_version"] > first["model_version"]
    found = 0
    for one in tasks:
        prediction, text = current[one["id"]], one["data"]["sentence"]
        assert 0 < prediction["score"] < 1
        for region in prediction["result"]:
            value = region["value"]
            assert text[value["start"] : value["end"]] == value["text"]
            assert (region["from_name"], region["to_name"], region["type"]) == (
                "ner",
                "body",
                "labels",
            )
            assert value["labels"][0] in TYPES
            assert 0 < region["score"] <= 1
            found += one["id"] in ids[len(known) + 1 :]  # behind the rocket
    assert found, "the tagger found nothing in sentences it was trained on"
    sys.stderr.write(
        f"\nlabel studio: trained {seconds:.0f} s after the last annotation; "
        f"{found} spans behind emoji in the right characters\n"
    )


def test_the_projects_next_task_is_the_policys_and_nothing_is_lost_by_a_kill(
    studio: Studio, tmp_path: Path
) -> None:
    sentences, password = sample("gazette:dev")[:20], secrets.token_urlsafe(12)
    project = studio.sdk("projects.create", title="in order", label_config=CONFIG)["id"]
    studio.sdk("projects.update", id=project, sampling="Uncertainty sampling")
    given = [{"sentence": text} for text in texts(sentences)]
    ids = studio.sdk("projects.import_tasks", id=project, request=given, return_task_ids=True)[
        "task_ids"
    ]
    before = studio.sdk(
        "annotations.create", id=ids[0], result=regions(sentences[0])
    )  # made before there was a backend
    port, folder = free_port(), tmp_path / "state"
    health, url = f"http://127.0.0.1:{port}/health", f"http://127.0.0.1:{port}"
    options = ("--min-new", "4", "--url", studio.url)
    secret = {"SEQMIX_PASSWORD": password, "LABEL_STUDIO_API_KEY": KEY}

    def state() -> dict[str, Any]:
        return get(health, password) or dict.fromkeys(
            ("tasks", "labeled", "trained_on", "phase", "model_version")
        )

    def version() -> Any:
        return studio.sdk("projects.get", id=project)["model_version"]

    with backend(folder, port, *options, **secret) as server:
        auth = {
            "auth_method": "BASIC_AUTH",
            "basic_auth_user": "seqmix",
            "basic_auth_pass": password,
        }
        studio.sdk("ml.create", url=url, project=project, title="seqmix", **auth)
        (webhook,) = (
            one
            for one in studio.sdk("webhooks.list", project=project)
            if one["url"].startswith(url)
        )
        studio.ask(
            "PATCH",
            f"/api/webhooks/{webhook['id']}/",
            {"headers": {"Authorization": f"Bearer {password}"}},
        )
        wait(
            lambda: state()["tasks"] == len(ids) and state()["labeled"] == 1, 300, server
        )  # fetched from Label Studio
        for id, sentence in zip(ids[1:4], sentences[1:4], strict=True):
            studio.sdk("annotations.create", id=id, result=regions(sentence))
        wait(
            lambda: (
                state()["trained_on"] == 4
                and state()["phase"] == "waiting"
                and version() == state()["model_version"]
            ),
            900,
            server,
        )
        first = state()["model_version"]
        scores = {
            t["id"]: t["predictions_score"] for t in studio.tasks(project) if t["id"] not in ids[:4]
        }
        assert all(score is not None for score in scores.values())
        assert len(set(scores.values())) == len(scores)
        wanted = min(scores, key=scores.__getitem__)
        assert (
            studio.ask("POST", f"/api/dm/actions?id=next_task&project={project}", {})["id"]
            == wanted
        )

        studio.sdk("annotations.create", id=wanted, result=regions(sentences[ids.index(wanted)]))
        server.send_signal(signal.SIGKILL)
        server.wait(20)
    with backend(folder, port, *options, **secret) as server:
        assert (state()["labeled"], state()["model_version"]) == (5, first)
        studio.sdk("annotations.delete", id=before["id"])
        studio.ask("POST", f"/api/ml/{studio.sdk('ml.list', project=project)[0]['id']}/train", {})
        wait(
            lambda: (
                state()["trained_on"] == 4
                and version() != first
                and version() == state()["model_version"]
            ),
            900,
            server,
        )
        wait(
            lambda: (
                {p["model_version"] for t in studio.tasks(project) for p in t["predictions"]}
                == {version()}
            ),
            60,
            server,
        )
