"""A person who answers `seqmix annotate` as fast as they can while its server is killed again and again."""

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

import forked

from seqmix.app.cli import run
from seqmix.data.sentence import Sentence
from seqmix.serve.project import Settings, create_project, open_project

_SENTENCES = 4000


@dataclass
class Served:
    kills: int = 0
    acknowledged: int = 0
    wrong: list[str] = field(default_factory=list)


def kill_servers(place: Path, kills: int, rng: random.Random) -> Served:
    """One project, many servers, each killed while answers arrive; every answer a server acknowledged must be there in the end."""
    folder, log, found = place / "names", place / "log", place / "found"
    sentences = [Sentence(f"s{i}", ("Lena", "left", "Oslo", str(i), ".")) for i in range(_SENTENCES)]
    create_project(folder, sentences, Settings("names", ("PER", "LOC"), audit_share=0.0))
    served = Served()
    answers: dict[str, list[Any]] = {}
    while served.kills < kills:
        server = forked.start(lambda: run(["annotate", str(folder), "--port", "0", "--no-browser", "--no-train"]), log)
        try:
            port, token = _link(server)
            _answer(port, token, server, answers, rng)
        finally:
            server.kill()
        served.kills += 1
        ended = forked.run(lambda: found.write_text("\n".join(_complaints(folder, answers))) and 0, place / "checked")
        served.wrong += [f"kill {served.kills}: {line}" for line in ([ended.said[-500:]] if ended.code else found.read_text().splitlines())]
    served.acknowledged = len(answers)
    return served


def _link(server: forked.Child) -> tuple[int, str]:
    deadline = time.monotonic() + 60
    while (link := re.search(r":(\d+)/login\?token=(\S+)", server.said)) is None:
        if time.monotonic() > deadline or not server.alive():
            raise RuntimeError(f"the server does not start: {server.said[-500:]}")
        time.sleep(0.005)
    return int(link[1]), link[2]


def _answer(port: int, token: str, server: forked.Child, answers: dict[str, list[Any]], rng: random.Random) -> None:
    """Answer until the server is gone. subtle: it is killed by a thread of its own, in the middle of whatever it does."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(method: str, path: str, body: Any = None) -> Any:
        line.request(method, path, None if body is None else json.dumps(body), headers)
        answer = line.getresponse()
        content = json.loads(answer.read())
        if answer.status == 429:
            time.sleep(float(answer.headers["Retry-After"]))
        return content

    ask("GET", "/api/next")
    killer = threading.Timer(rng.uniform(0.0, 0.3), os.kill, (server.pid, signal.SIGKILL))
    killer.start()
    try:
        while True:
            shown = ask("GET", "/api/next").get("sentence")
            if shown is None:
                continue
            start = rng.randrange(4)
            spans = [{"start": start, "end": start + 1, "tag": rng.choice(("PER", "LOC"))}]
            said = ask("POST", "/api/annotations", {"id": shown["id"], "version": shown["version"], "spans": spans, "seconds": 0.1})
            if "seq" in said:
                answers[shown["id"]] = [[span["start"], span["end"], span["tag"]] for span in spans]
    except (OSError, http.client.HTTPException, ValueError):
        killer.join()


def _complaints(folder: Path, answers: dict[str, list[Any]]) -> list[str]:
    with sqlite3.connect(folder / "store.sqlite") as store:
        (whole,) = store.execute("PRAGMA integrity_check").fetchone()
    wrong = [f"the store is damaged: {whole}"] if whole != "ok" else []
    with open_project(folder) as own:
        said = [(answer.sentence_id, [list(mark) for mark in answer.spans]) for answer in own.store.answers()]
    there = dict(said)
    wrong += [f"{len(said) - len(there)} sentences have two answers"] if len(said) != len(there) else []
    return wrong + [f"the answer to {id} was acknowledged and is lost" for id, marks in answers.items() if there.get(id) != marks]
