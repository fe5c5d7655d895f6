"""The real commands from outside: a project, its server, and an annotator who answers over HTTP.

The answers are those of a gold corpus.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.data.tagset import TagSet

Gold = Mapping[tuple[str, ...], Sentence]


def seqmix(*words: str, source: Path | None = None) -> str:
    """Run a command, of this checkout or of another, and return its standard output."""
    return subprocess.run(
        [sys.executable, "-m", "seqmix", *words],
        check=True, text=True, stdout=subprocess.PIPE, env=_environment(source),
    ).stdout  # fmt: skip


def create(
    folder: Path, train: Sequence[Sentence], *options: str, source: Path | None = None
) -> None:
    """Make a project of unlabeled sentences; duplicates are one sentence."""
    text = folder.with_suffix(".conll")
    folder.parent.mkdir(parents=True, exist_ok=True)
    formats.write(train, text)
    tags = ",".join(TagSet.of(train).types)
    words = ("init", str(folder), "--text", str(text), "--labels", "drop", "--tags", tags)
    seqmix(*words, *options, source=source)


@dataclass
class Annotator:
    """One person at the page of a project."""

    port: int
    token: str
    took: dict[str, list[float]] = field(default_factory=dict)  # seconds by kind of request
    _line: http.client.HTTPConnection | None = None

    def status(self) -> dict[str, Any]:
        """Return the progress of the project."""
        return self._ask("status", "GET", "/api/status")

    def answer(self, gold: Gold) -> None:
        """Ask for a sentence and give its gold answer."""
        sentence = self._ask("next", "GET", "/api/next")["sentence"]
        tags = [str(tag) for tag in gold[tuple(sentence["tokens"])].hardened().tags]
        marks = [{"start": s.start, "end": s.end, "tag": s.type} for s in spans(tags)]
        body = {"id": sentence["id"], "version": sentence["version"], "spans": marks}
        self._ask("save", "POST", "/api/annotations", {**body, "sure": None, "seconds": 1.0})

    def _ask(self, what: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        while True:
            start = time.perf_counter()
            try:
                self._line = self._line or http.client.HTTPConnection(
                    "127.0.0.1", self.port, timeout=60
                )
                self._line.request(
                    method, path, None if body is None else json.dumps(body), headers
                )
                response = self._line.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException):  # an idle connection was closed
                self._line = None
                continue
            if response.status == 429:
                time.sleep(float(response.headers["Retry-After"]))
                continue
            if response.status >= 400:
                raise SystemExit(f"{method} {path}: {response.status} {content.decode()}")
            self.took.setdefault(what, []).append(time.perf_counter() - start)
            answer: dict[str, Any] = json.loads(content)
            return answer


@contextmanager
def annotating(folder: Path, source: Path | None = None) -> Iterator[Annotator]:
    """Serve a project with its trainer, and stop both in the end."""
    said = folder.with_suffix(".log")
    command = [
        sys.executable,
        "-m",
        "seqmix",
        "annotate",
        str(folder),
        "--port",
        "0",
        "--no-browser",
    ]
    with said.open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=_environment(source))
    try:
        while (link := re.search(r":(\d+)/login\?token=(\S+)", said.read_text())) is None:
            if server.poll() is not None:
                raise SystemExit(said.read_text())
            time.sleep(0.1)
        yield Annotator(int(link[1]), link[2])
    finally:
        server.terminate()
        server.wait(30)


def model(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a status says of the model; empty before there is one."""
    return status["model"] or {}


def _environment(source: Path | None) -> dict[str, str]:
    place = source or Path(__file__).parents[1]
    return {**os.environ, "PYTHONPATH": str(place / "src")}
