"""A person who answers `seqmix annotate` fast while its server is killed again and again."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import sqlite3
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqmix.app.cli import run
from seqmix.data.sentence import Sentence
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.current import current_answers
from tests.faults import forked, mounts

_SENTENCES = 4000
_MOST = 200  # answers that fill a disk with room for a few pages


@dataclass
class Served:
    kills: int = 0
    acknowledged: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass
class Person:
    """Somebody with a link, and what was acknowledged to them."""

    port: int
    token: str
    rng: random.Random
    answers: dict[str, list[Any]]

    def __post_init__(self) -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)

    def answer(self) -> int:
        """Ask for a sentence and answer it; the status of what was refused, or 201."""
        status, shown = self._ask("GET", "/api/next")
        if status != 200 or shown["sentence"] is None:
            return status
        id, start = shown["sentence"]["id"], self.rng.randrange(4)
        spans = [{"start": start, "end": start + 1, "tag": self.rng.choice(("PER", "LOC"))}]
        body = {"id": id, "version": shown["sentence"]["version"], "spans": spans, "seconds": 0.1}
        status, said = self._ask("POST", "/api/annotations", body)
        if "seq" in said:
            self.answers[id] = [[span["start"], span["end"], span["tag"]] for span in spans]
        return status

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        self._line.request(method, path, None if body is None else json.dumps(body), headers)
        reply = self._line.getresponse()
        content = json.loads(reply.read())
        if reply.status == 429:
            time.sleep(float(reply.headers["Retry-After"]))
        return reply.status, content


def kill_servers(place: Path, kills: int, rng: random.Random) -> Served:
    """One project, many servers, each killed while answers arrive.

    Every answer that a server acknowledged must be there in the end.
    """
    folder = place / "names"
    forked.run(lambda: _make(folder), place / "log")
    served, answers = Served(), dict[str, list[Any]]()
    while served.kills < kills:
        server = _serve(folder, place / "log")
        try:
            _answer_until_killed(Person(*_link(server), rng, answers), server)
        finally:
            server.kill()
        served.kills += 1
        served.wrong += [f"kill {served.kills}: {line}" for line in complaints(folder, answers)]
    served.acknowledged = len(answers)
    return served


def fill_disk(
    root: Path, log: Path, rng: random.Random, pages: int = 24
) -> tuple[int, int, list[str]]:
    """Answers while the disk gets full, and again when it has room.

    How many were acknowledged before and after, and what is wrong.
    """
    folder, answers = root / "names", dict[str, list[Any]]()
    mounts.small_disk(root)
    forked.run(lambda: _make(folder), log)
    server = _serve(folder, log)
    try:
        person = Person(*_link(server), rng, answers)
        mounts.change_disk(root, mounts.used(root) + pages * 4096)
        statuses = {person.answer() for _ in range(_MOST)}
        before = len(answers)
        mounts.change_disk(root)
        statuses |= {person.answer() for _ in range(20)}
    finally:
        server.kill()
    wrong = [] if 503 in statuses else ["the disk never was full"]
    wrong += [f"the server answered {status}" for status in statuses - {201, 429, 503}]
    return before, len(answers) - before, wrong + complaints(folder, answers)


def complaints(folder: Path, answers: dict[str, list[Any]]) -> list[str]:
    """What a store lacks of what was acknowledged.

    It is looked for in a child, so that the next server inherits no connection.
    """
    found = folder.parent / "found"
    ended = forked.run(
        lambda: found.write_text("\n".join(_complaints(folder, answers))) and 0,
        folder.parent / "checked",
    )
    return [ended.said[-500:]] if ended.code else found.read_text().splitlines()


def _make(folder: Path) -> None:
    sentences = (
        Sentence(f"s{i}", ("Lena", "left", "Oslo", str(i), ".")) for i in range(_SENTENCES)
    )
    create_project(folder, sentences, ProjectSettings("names", ("PER", "LOC"), audit_share=0.0))


def _serve(folder: Path, log: Path) -> forked.Child:
    return forked.start(
        lambda: run(["annotate", str(folder), "--port", "0", "--no-browser", "--no-train"]), log
    )


def _link(server: forked.Child) -> tuple[int, str]:
    deadline = time.monotonic() + 60
    while (link := re.search(r":(\d+)/login\?token=(\S+)", server.said)) is None:
        if time.monotonic() > deadline or not server.alive():
            raise RuntimeError(f"the server does not start: {server.said[-500:]}")
        time.sleep(0.005)
    return int(link[1]), link[2]


def _answer_until_killed(person: Person, server: forked.Child) -> None:
    """subtle: the server is killed by a thread of its own, in the middle of whatever it does."""
    person.answer()
    killer = threading.Timer(person.rng.uniform(0.0, 0.3), os.kill, (server.pid, signal.SIGKILL))
    killer.start()
    try:
        while True:
            person.answer()
    except (OSError, http.client.HTTPException, ValueError):
        killer.join()


def _complaints(folder: Path, answers: dict[str, list[Any]]) -> list[str]:
    with sqlite3.connect(folder / "store.sqlite") as store:
        (whole,) = store.execute("PRAGMA integrity_check").fetchone()
    wrong = [f"the store is damaged: {whole}"] if whole != "ok" else []
    with open_project(folder) as own:
        said = [
            (answer.sentence_id, [list(mark) for mark in answer.spans])
            for answer in current_answers(own.store)
        ]
    there = dict(said)
    wrong += (
        [f"{len(said) - len(there)} sentences have two answers"] if len(said) != len(there) else []
    )
    return wrong + [
        f"the answer to {id} was acknowledged and is lost"
        for id, marks in answers.items()
        if there.get(id) != marks
    ]
