"""`seqmix annotate` as a process: the link it prints, how it ends, and what a kill leaves."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from seqmix.app.cli import run
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.sentences import read_labeled
from tests.support import tiny
from tests.support.waiting import until


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture
def folder(tmp_path, encoder) -> Path:
    settings = ProjectSettings(
        "toys", ("PER", "LOC", "ORG"), batch=5, audit_share=0.0, encoder=encoder, augment="none"
    )
    create_project(tmp_path / "toys", [s.unlabeled() for s in tiny.toy(24)], settings)
    (tmp_path / "toys" / "training.toml").write_text("[training]\nepochs = 1\n")
    return tmp_path / "toys"


@dataclass
class Running:
    process: subprocess.Popen[str]
    link: str
    said: Path

    @property
    def token(self) -> str:
        return self.link.partition("token=")[2]

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)/", self.link)[1])

    def client(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=20,
        )

    def status(self) -> dict[str, Any]:
        with self.client() as client:
            return client.get("/api/status").json()

    def ends(self) -> int:
        return self.process.wait(60)


@contextmanager
def annotating(folder: Path, *more: str) -> Iterator[Running]:
    said = folder.parent / f"said-{time.monotonic_ns()}"
    with said.open("w") as log:
        command = [
            sys.executable,
            "-m",
            "seqmix",
            "annotate",
            str(folder),
            "--port",
            "0",
            "--no-browser",
            *more,
        ]
        process = subprocess.Popen(
            command, stdout=log, stderr=log, text=True, start_new_session=True
        )
    try:
        until(lambda: "token=" in said.read_text() or process.poll() is not None)
        link = re.search(r"http://\S+", said.read_text())
        assert link is not None, said.read_text()
        yield Running(process, link[0], said)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def trainer_of(server: int) -> int | None:
    found = Path(f"/proc/{server}/task")
    children = (
        {int(pid) for task in found.iterdir() for pid in (task / "children").read_text().split()}
        if found.exists()
        else set()
    )
    return min(children, default=None)


def label(client: httpx.Client, n: int) -> list[str]:
    ids = []
    for _ in range(n):
        given = client.get("/api/next").json()["sentence"]
        body = {
            "id": given["id"],
            "version": given["version"],
            "spans": [{"start": 0, "end": 1, "tag": "PER"}],
        }
        assert client.post("/api/annotations", json=body).status_code == 201
        ids.append(given["id"])
    return ids


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_a_person_labels_the_model_follows_and_ctrl_c_ends_it_all(folder: Path):
    with annotating(folder) as server:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}") as browser:
            assert browser.get("/").status_code == 401
            assert browser.get(server.link).status_code == 303
            assert browser.get("/api/project").json()["annotator"]["admin"] is True
        with server.client() as client:
            label(client, 6)
        until(lambda: (server.status()["model"] or {}).get("folder"))
        model = server.status()["model"]
        trainer = trainer_of(server.process.pid)
        with server.client() as client:
            shown = client.get("/api/next").json()
        server.process.send_signal(signal.SIGINT)

        assert server.ends() == 0
        assert model["generation"] >= 1
        assert (folder / model["folder"] / "tagger.json").exists()
        assert 0 < shown["suggestion"]["confidence"] <= 1
        assert trainer is not None
        until(lambda: not alive(trainer), 60)
        assert "stopped" in server.said.read_text()
        assert "Traceback" not in server.said.read_text() + (folder / "trainer.log").read_text()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_kill_9_of_the_server_ends_the_trainer_and_loses_no_answer(folder: Path):
    with annotating(folder) as server:
        until(lambda: trainer_of(server.process.pid) is not None)
        trainer = trainer_of(server.process.pid)
        until(
            lambda: server.status()["model"]
        )  # it has noted that it lives: it watches its parent by now
        with server.client() as client:
            ids = label(client, 4)
        server.process.kill()
        server.ends()
        until(lambda: not alive(trainer), 60)
    with open_project(folder) as own:
        assert sorted(s.id for s in read_labeled(own.store)) == sorted(ids)
    with annotating(folder, "--no-train") as again:
        assert again.status()["answers"]["labeled"] == 4


def test_sigterm_ends_it_like_ctrl_c_and_without_a_trainer_status_says_so(folder: Path):
    with annotating(folder, "--no-train") as server:
        assert "--no-train" in server.status()["model"]["phase"]
        server.process.send_signal(signal.SIGTERM)
        assert server.ends() == 0
    assert not (folder / "trainer.log").exists()


def test_a_second_server_of_a_project_says_where_the_first_is_and_goes_on(folder: Path):
    with annotating(folder, "--no-train") as first, annotating(folder, "--no-train") as second:
        until(lambda: "already has another server" in second.said.read_text())
        address = first.link.partition("/login")[0]
        assert (
            f"already has another server, at {address}: both share its answers"
            in second.said.read_text()
        )
        assert "another server" not in first.said.read_text()


def test_the_token_is_said_once_and_written_nowhere(folder: Path):
    with annotating(folder, "--no-train") as server:
        with server.client() as client:
            label(client, 1)
            client.get(server.link)
            client.get("/login?token=wrong")
            client.get(f"/nothing?token={server.token}")
        server.process.send_signal(signal.SIGINT)
        server.ends()
        said = server.said.read_text()

    assert said.count(server.token) == 1
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if server.token.encode() in path.read_bytes()]


def test_a_body_without_a_length_is_cut_off_at_the_limit_and_a_stranger_at_once(folder: Path):
    def chunks(size: int) -> Iterator[bytes]:
        for _ in range(size // 65536):
            yield b" " * 65536

    with annotating(folder, "--no-train") as server, server.client() as client:
        headers = {"Content-Type": "application/json"}
        large = client.post("/api/annotations", content=chunks(3 * 2**20), headers=headers)
        small = client.post("/api/annotations", content=chunks(2**20), headers=headers)
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as stranger:
            stranger.sendall(
                b"POST /api/annotations HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
            )
            answered = stranger.recv(65536)
        still_there = client.get("/api/next")

    assert (large.status_code, small.status_code) == (413, 422)
    assert answered.startswith(b"HTTP/1.1 401")
    assert b"connection: close" in answered.lower()
    assert still_there.status_code == 200


def test_a_port_in_use_is_told_in_one_line(folder: Path, capfd):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        code = run(["annotate", str(folder), "--port", str(taken.getsockname()[1]), "--no-browser"])
    said = capfd.readouterr().err

    assert code == 2
    assert said.count("\n") == 1
    assert "--port" in said


@pytest.mark.parametrize(
    ("more", "word"), [(["--port", "99999"], "65535"), (["--host", "no such host"], "--host")]
)
def test_an_address_that_cannot_be_is_told_in_one_line(folder: Path, capfd, more, word):
    assert run(["annotate", str(folder), "--no-browser", *more]) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert word in said


def test_a_folder_that_is_no_project_is_told_in_one_line(tmp_path: Path, capfd):
    assert run(["annotate", str(tmp_path), "--no-browser"]) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1
    assert "seqmix init" in said


def test_settings_that_contradict_each_other_are_told_before_anything_starts(folder: Path, capfd):
    settings = folder / "project.toml"
    kept = settings.read_text()
    settings.write_text(kept.replace('"nte"', '"lc"').replace('"crf"', '"linear"'))
    assert run(["annotate", str(folder), "--no-browser"]) == 2
    assert "crf" in capfd.readouterr().err
    settings.write_text(kept)
    (folder / "training.toml").write_text("[training]\nepoch = 1\n")
    assert run(["annotate", str(folder), "--no-browser"]) == 2
    assert "training.epoch" in capfd.readouterr().err
    (folder / "training.toml").write_text('[augment]\ntable = "contextual"\n')
    assert run(["annotate", str(folder), "--no-browser"]) == 2
    assert "augment.table" in capfd.readouterr().err


def test_the_browser_is_led_to_the_page_by_a_file_that_only_its_owner_can_read(monkeypatch):
    from seqmix.app.commands.label import annotate as module

    opened: list[tuple[str, int]] = []

    def look(address: str) -> bool:
        path = Path(address.removeprefix("file://"))
        opened.append((path.read_text(), path.stat().st_mode & 0o777))
        return True

    monkeypatch.setattr(module.webbrowser, "open", look)
    folder = Path(module.tempfile.gettempdir())
    before = set(folder.glob("seqmix-*.html"))
    with module.browser_open("http://127.0.0.1:1/login?token=secret"):
        until(lambda: opened)

    assert "token=secret" in opened[0][0]
    assert opened[0][1] == 0o600
    assert set(folder.glob("seqmix-*.html")) <= before


def test_the_server_needs_no_torch(folder: Path):
    code = (
        "import sys, json, seqmix.serve.web.app, seqmix.app.commands.label.annotate, "
        "seqmix.app.project_config; print(json.dumps('torch' in sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert json.loads(ended.stdout) is False
