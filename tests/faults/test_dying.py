"""Processes that die behind a command: the workers of a sweep, the trainer of a project.

They are real processes, killed from outside.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seqmix.serve.project import open_project
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.rankings import read_generations
from tests.faults.scenes import Background, Stage, Sweep
from tests.support.waiting import PATIENCE, until

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Stage:
    return Stage.set_up(tmp_path_factory.mktemp("stage"))


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return (
        [
            int(child)
            for task in tasks.iterdir()
            for child in (task / "children").read_text().split()
        ]
        if tasks.exists()
        else []
    )


def test_a_sweep_whose_workers_are_killed_ends_with_the_same_rows(
    stage: Stage, tmp_path: Path
) -> None:
    scene = Sweep(stage)
    results = []
    for name in ("whole", "killed"):
        root = tmp_path / name
        root.mkdir()
        scene.prepare(root)
        command = [
            sys.executable,
            "-m",
            "seqmix",
            "sweep",
            str(root / "mine.toml"),
            "--out",
            str(root / "out"),
        ]
        with (root / "said").open("w") as log:
            process = subprocess.Popen(
                [*command, "--data", str(stage.data.parent), "--workers", "2"],
                stdout=log,
                stderr=log,
            )
        if name == "killed":
            begun = until(
                lambda root=root: next(root.glob("out/runs/*/*/config.toml"), None)
            )  # a worker is in the middle of a run
            until(lambda begun=begun: (begun.parent / "lock").exists())
            workers = [
                pid
                for pid in children(process.pid)
                if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
            assert workers
            os.kill(workers[0], signal.SIGKILL)
        assert process.wait(PATIENCE) == 0, (root / "said").read_text()
        results.append(scene.result(root))

    assert results[0]["rows"].replace("whole", "killed") == results[1]["rows"]


def test_a_project_whose_trainer_is_killed_goes_on_serving_and_gets_another_one(
    stage: Stage, tmp_path: Path
) -> None:
    scene = Background(stage)
    scene.prepare(tmp_path)
    said = tmp_path / "said"
    with said.open("w") as log:
        command = [
            sys.executable,
            "-m",
            "seqmix",
            "annotate",
            str(tmp_path / "project"),
            "--port",
            "0",
            "--no-browser",
        ]
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        link = until(lambda: re.search(r":(\d+)/login\?token=(\S+)", said.read_text()))
        line = http.client.HTTPConnection("127.0.0.1", int(link[1]), timeout=60)

        def ask(method: str, path: str, body: Any = None) -> dict[str, Any]:
            headers = {"Authorization": f"Bearer {link[2]}", "Content-Type": "application/json"}
            line.request(method, path, None if body is None else json.dumps(body), headers)
            found: dict[str, Any] = json.loads(line.getresponse().read())
            return found

        first = until(lambda: children(server.pid))[0]
        os.kill(first, signal.SIGKILL)
        until(
            lambda: (
                "the trainer ended (signal 9)"
                in ((ask("GET", "/api/status")["model"] or {}).get("phase") or "")
            )
        )
        for _ in range(4):
            shown = ask("GET", "/api/next")["sentence"]
            assert "seq" in ask(
                "POST",
                "/api/annotations",
                {"id": shown["id"], "version": shown["version"], "spans": [], "seconds": 0.1},
            )
        until(lambda: (ask("GET", "/api/status")["model"] or {}).get("generation"))
        assert children(server.pid) and children(server.pid)[0] != first
        line.close()
    finally:
        server.kill()
        server.wait()
    with open_project(tmp_path / "project") as own:
        assert (
            len(current_answers(own.store)) == 12
            and read_generations(own.store, 1)[0].model is not None
        )
