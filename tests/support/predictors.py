"""A tiny tagger behind the prediction server: the application in this process, or the command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from seqmix.tagger import Settings, Tagger
from tests.support import tiny
from tests.support.waiting import until

TOKEN = "a-token-for-the-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


def save_tagger(folder: Path, head: str = "linear", steps: int = 150, seed: int = 0) -> Path:
    """Train a tiny tagger until it knows its few words, and save it."""
    encoder = tiny.write_bert(folder.with_name(f"{folder.name}-encoder"), dropout=0)
    settings = Settings(steps=steps, lr=3e-3, dropout=0.0)
    tagger = Tagger(encoder, head, settings, device="cpu")
    tagger.fit(tiny.toy(), np.random.default_rng(seed)).save(folder)
    return folder


@dataclass
class Running:
    """A `seqmix serve` in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    def client(self, **options: object) -> httpx.Client:
        """Return a client with the token."""
        url = f"http://127.0.0.1:{self.port}"
        return httpx.Client(**{"base_url": url, "headers": HEADERS, "timeout": 60, **options})


@contextmanager
def serving(model: Path, log: Path) -> Iterator[Running]:
    """Run `seqmix serve` on a free port of this machine until the block ends."""
    command = [sys.executable, "-m", "seqmix", "serve", str(model), "--port", "0"]
    with log.open("w") as output:
        environment = {**os.environ, "SEQMIX_TOKEN": TOKEN}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        until(lambda: "http://" in log.read_text() or process.poll() is not None)
        address = re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())
        assert address is not None, log.read_text()
        yield Running(process, int(address[1]), log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
