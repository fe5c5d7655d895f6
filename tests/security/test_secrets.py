"""Secrets given to real servers: no file, no log line and no command line keeps one."""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.serve.project import create_project
from seqmix.serve.settings import ProjectSettings
from tests.support import tiny
from tests.support.waiting import until

PASSWORD, KEY = "the-password-of-the-backend", "0123456789abcdef-the-key-of-label-studio"


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    said: Path

    def found(self, pattern: str) -> str:
        """What the server says, once it says it."""
        until(lambda: re.search(pattern, self.said.read_text()) or self.process.poll() is not None)
        match = re.search(pattern, self.said.read_text())
        assert match is not None, self.said.read_text()
        return match[0]

    def command_lines(self) -> str:
        """Of the server and of every process it started: what any user of the machine can read."""
        pids, seen = [self.process.pid], []
        while pids:
            pid = pids.pop()
            seen.append(Path(f"/proc/{pid}/cmdline").read_bytes().decode())
            pids += [
                int(child)
                for task in Path(f"/proc/{pid}/task").iterdir()
                for child in (task / "children").read_text().split()
            ]
        return "\n".join(seen)


@contextmanager
def serving(said: Path, *arguments: str, **secrets: str) -> Iterator[Server]:
    with said.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "seqmix", *arguments],
            stdout=log,
            stderr=log,
            env=os.environ | secrets,
        )
    try:
        yield Server(process, said)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def holding(folder: Path, *secrets: str) -> list[str]:
    """The files that hold one of the secrets."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [
        path.name
        for path in files
        if any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


def test_tokens_of_annotators_are_in_no_file_no_log_and_no_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "names"
    encoder = tiny.write_bert(tmp_path / "encoder")
    create_project(
        folder,
        [s.unlabeled() for s in tiny.toy(8)],
        ProjectSettings("names", ("PER",), audit_share=0.0, encoder=encoder, augment="none"),
    )
    assert run(["project", str(folder), "annotator", "add", "Ada"]) == 0
    ada = capsys.readouterr().out.strip().partition("token=")[2]

    with serving(
        tmp_path / "said", "annotate", str(folder), "--port", "0", "--no-browser"
    ) as server:
        address, own = re.fullmatch(
            r"(http://.*?)/login\?token=(\S+)", server.found(r"http://\S+token=\S+")
        ).groups()
        until(lambda: "seqmix.app.trainer_process" in server.command_lines())
        seen = server.command_lines()
        with httpx.Client(base_url=address, timeout=30) as client:
            told = [client.get(f"/login?token={ada}").headers.get("location")]
            told += [
                client.get(path).text
                for path in (
                    f"/nothing?token={ada}",
                    f"/login?token={ada}x",
                    f"/api/next?token={own}",
                )
            ]
            told.append(
                client.post(
                    "/api/annotations",
                    json={"token": ada},
                    headers={"Authorization": f"Bearer {ada}"},
                ).text
            )
            told.append(
                client.post(
                    f"/api/annotations?token={ada}",
                    content="{",
                    headers={"Authorization": f"Bearer {ada}"},
                ).text
            )

    said = (tmp_path / "said").read_text()
    assert told[0] == "/"
    assert holding(folder, ada, own) == []
    assert (said.count(own), said.count(ada)) == (1, 0)
    assert own not in seen and ada not in seen
    assert not any(secret in text for secret in (ada, own) for text in told)


def test_the_password_and_the_key_of_label_studio_are_in_no_file_no_log_and_no_command_line(
    tmp_path: Path,
) -> None:
    arguments = (
        "labelstudio",
        "--folder",
        str(tmp_path / "studio"),
        "--port",
        "0",
        "--url",
        "http://127.0.0.1:9",
    )
    with serving(
        tmp_path / "said", *arguments, SEQMIX_PASSWORD=PASSWORD, LABEL_STUDIO_API_KEY=KEY
    ) as server:
        address = server.found(r"http://127\.0\.0\.1:(?!9;)\d+")
        seen = server.command_lines()
        basic = base64.b64encode(f"seqmix:{PASSWORD}".encode()).decode()
        with httpx.Client(base_url=address, timeout=30) as client:
            until(lambda: _answers(client))
            statuses = [
                client.get("/health", headers={"Authorization": f"Basic {basic}"}).status_code,
                client.get("/health", headers={"Authorization": f"Bearer {PASSWORD}x"}).status_code,
            ]
            body = {
                "project": "7.1",
                "schema": "<View/>",
                "access_token": KEY,
                "hostname": "http://127.0.0.1:9",
            }
            told = client.post(
                "/setup", json=body, headers={"Authorization": f"Bearer {PASSWORD}"}
            ).text

    said = (tmp_path / "said").read_text()
    assert statuses == [200, 401]
    assert holding(tmp_path / "studio", PASSWORD, KEY, basic) == []
    for text in (said, seen, told):
        assert PASSWORD not in text and KEY not in text and basic not in text


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 401
    except httpx.TransportError:
        return False


def test_a_run_keeps_nothing_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even in the file that says on what it ran."""
    for name in ("HF_TOKEN", "LABEL_STUDIO_API_KEY", "SEQMIX_PASSWORD", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.setenv(name, KEY)
    encoder = tiny.write_bert(tmp_path / "encoder")
    data = tmp_path / "data"
    data.mkdir()
    for name in ("train", "dev", "test"):
        formats.write(tiny.toy(12), data / f"{name}.conll")
    changes = (
        f'tagger.encoder="{encoder}"',
        "loop.seed_size=8",
        "loop.rounds=0",
        "training.epochs=1",
        "augment.variant=none",
    )

    command = [
        "simulate",
        "--data",
        str(data),
        "--out",
        str(tmp_path / "run"),
        *(word for own in changes for word in ("--set", own)),
    ]
    assert run(command) == 0
    assert holding(tmp_path / "run", KEY) == []
