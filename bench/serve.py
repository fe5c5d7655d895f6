"""Eight annotators hammer `seqmix annotate` while it trains, and some connections break.

    python bench/serve.py [--seconds 60] [--sentences 100000] [--annotators 8] [--sources]

Every answer that was acknowledged must be in the store afterwards, as it was given; no sentence may
have been given to two people; no answer may be a 5xx. Then the table: how long `next` and `save`
took, seen from the client. With --sources every kind of source suggests: a dictionary with a
regular expression, the starter's type head, a spaCy pipeline, predictions for 20,000 sentences, and
a language model behind a server of this script's on loopback.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import spacy

from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.data.tagset import TagSet
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.events import read_events

BROKEN = 0.05  # the share of requests whose connection breaks
PAUSE = 0.02  # seconds of thought between requests, on average: a rate just below a person's limit


def corpus(n: int, rng: np.random.Generator) -> Iterator[Sentence]:
    """Sentences of the gazette with a part of another one put in, so that all differ."""
    real = sample("gazette:train")
    for i in range(n):
        one, other = real[int(rng.integers(len(real)))], real[int(rng.integers(len(real)))]
        at = int(rng.integers(len(one) + 1))
        yield Sentence(
            f"s{i}",
            (*one.tokens[:at], *other.tokens[: int(rng.integers(1, 6))], str(i), *one.tokens[at:]),
        )


class LanguageModel(BaseHTTPRequestHandler):
    """Answers every question of the API with no entities, at once."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"message": {"role": "assistant", "content": '{"entities": []}'}}
        content = json.dumps({"choices": [message], "usage": {"total_tokens": 50}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def add_all_sources(folder: Path, predicted: Iterable[Sentence], model: str) -> None:
    """Add a source of every kind with the commands people use, and allow the language model."""
    names = sorted(
        {
            (" ".join(sentence.tokens[span.start : span.end]), span.type)
            for sentence in sample("gazette:train")
            for span in spans([str(tag) for tag in sentence.tags])
        }
    )
    tag = names[0][1]
    place = folder.parent
    terms = [f"{text}\t{type}" for text, type in names] + [f"re:[A-Z]{{2,5}}\\d+\t{tag}"]
    (place / "names.tsv").write_text("\n".join(terms), encoding="utf-8")
    rows = [
        "\n".join(f"{token} {'B-' + tag if i == 0 else 'O'}" for i, token in enumerate(s.tokens))
        for s in predicted
    ]
    (place / "old.conll").write_text("\n\n".join(rows) + "\n", encoding="utf-8")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": type, "pattern": text} for text, type in names])
    pipeline.to_disk(place / "ruler")
    for words in (
        ["names", "dictionary", str(place / "names.tsv")],
        ["starter", "types"],
        ["ruler", "tagger", f"spacy:{place / 'ruler'}"],
        ["old", "predictions", str(place / "old.conll")],
        ["llm", "llm", f"{model}/v1", "any"],
    ):
        seqmix("project", str(folder), "source", "add", *words)
    seqmix("project", str(folder), "--set", f"send_text_to={model}")
    seqmix("project", str(folder), "source", "list")


def seqmix(*words: str) -> None:
    """Run a command of seqmix."""
    subprocess.run([sys.executable, "-m", "seqmix", *words], check=True)


@dataclass
class Annotator:
    """One person: asks, answers, and sometimes loses the line."""

    name: str
    token: str
    port: int
    tags: tuple[str, ...]
    seed: int
    took: dict[str, list[float]] = field(default_factory=lambda: {"next": [], "save": []})
    statuses: list[int] = field(default_factory=list)
    given: set[str] = field(default_factory=set)
    saved: dict[str, list[list[Any]]] = field(default_factory=dict)  # acknowledged
    unheard: dict[str, list[list[list[Any]]]] = field(
        default_factory=dict
    )  # sent, perhaps more than once, and not acknowledged
    offered: Counter[str] = field(default_factory=Counter)  # sentences, by source
    breaks: int = 0
    _line: http.client.HTTPConnection | None = None

    def work(self, end: float) -> None:
        rng = random.Random(self.seed)
        while time.monotonic() < end:
            shown = self.ask("next", "GET", "/api/next", None, rng)
            if shown is None or shown.get("sentence") is None:
                continue
            sentence = shown["sentence"]
            self.given.add(sentence["id"])
            self.offered.update({offer["source"] for offer in shown["offers"] if offer["spans"]})
            start = rng.randrange(len(sentence["tokens"]))
            spans = (
                []
                if rng.random() < 0.3
                else [{"start": start, "end": start + 1, "tag": rng.choice(self.tags)}]
            )
            body = {
                "id": sentence["id"],
                "version": sentence["version"],
                "spans": spans,
                "sure": None,
                "seconds": 0.1,
            }
            marks = [[span["start"], span["end"], span["tag"]] for span in spans]
            self.unheard.setdefault(sentence["id"], []).append(marks)
            answer = self.ask("save", "POST", "/api/annotations", body, rng)
            if answer is not None and "seq" in answer:
                self.saved[sentence["id"]] = marks
                self.unheard.pop(sentence["id"])

    def ask(
        self, what: str, method: str, path: str, body: Any, rng: random.Random
    ) -> dict[str, Any] | None:
        """The answer; None when the line broke or was to be broken."""
        time.sleep(rng.expovariate(1 / PAUSE))
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        if rng.random() < BROKEN:
            self.break_off(method, path, headers, text or "", rng)
            return None
        start = time.perf_counter()
        try:
            self._line = self._line or http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=60
            )
            self._line.request(method, path, text, headers)
            answer = self._line.getresponse()
            content = answer.read()
        except (
            OSError,
            http.client.HTTPException,
        ):  # the server closed a line that had been idle: a new one
            self._line = None
            return None
        self.statuses.append(answer.status)
        if answer.status == 429:
            time.sleep(float(answer.headers["Retry-After"]))
            return None
        self.took[what].append(time.perf_counter() - start)
        return json.loads(content)

    def break_off(
        self, method: str, path: str, headers: dict[str, str], text: str, rng: random.Random
    ) -> None:
        """Send a part of a request, or all of it, and hang up without listening."""
        self.breaks += 1
        lines = [
            f"{method} {path} HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        raw = "\r\n".join([*lines, f"Content-Length: {len(text)}", "", text]).encode()
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as line:
            line.sendall(raw if rng.random() < 0.5 else raw[: rng.randrange(len(raw))])
            if rng.random() < 0.5:
                line.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"
                )  # with a reset, as a crash would


def check(folder: Path, people: list[Annotator]) -> list[str]:
    """What is wrong, in words."""
    with open_project(folder) as project:
        found: dict[str, list[Any]] = {}
        for answer in current_answers(project.store):
            found.setdefault(answer.sentence_id, []).append(answer)
        events = len(list(read_events(project.store)))
    wrong = [f"{id} has two answers" for id, answers in found.items() if len(answers) > 1]
    owners: dict[str, str] = {}
    for person in people:
        wrong += _lost(person, found)
        wrong += [
            f"{id} was given to two"
            for id in person.given
            if owners.setdefault(id, person.name) != person.name
        ]
    bad = sorted({status for person in people for status in person.statuses} - {200, 201, 409, 429})
    if bad:
        wrong.append(f"answers with status {bad}")
    if events != len(found):
        wrong.append(f"{events} events for {len(found)} answers")
    return wrong


def _lost(person: Annotator, found: dict[str, list[Any]]) -> list[str]:
    own = {
        id: [list(mark) for mark in a.spans]
        for id, answers in found.items()
        for a in answers
        if a.annotator == person.name
    }
    lost = [id for id, marks in person.saved.items() if own.get(id) != marks]
    other = [id for id, sent in person.unheard.items() if id in own and own[id] not in sent]
    return [
        f"{person.name}: {id} was acknowledged and is not there as it was given" for id in lost
    ] + [f"{person.name}: {id} is not what was sent" for id in other]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--annotators", type=int, default=8)
    parser.add_argument("--no-train", action="store_true")
    parser.add_argument("--sources", action="store_true", help="with a source of every kind")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "large"
        tags = TagSet.of(sample("gazette:train")).types
        start = time.monotonic()
        create_project(
            folder,
            corpus(given.sentences, np.random.default_rng(0)),
            ProjectSettings("large", tags),
        )
        print(f"{given.sentences} sentences in {time.monotonic() - start:.0f} s")
        with open_project(folder) as project:
            tokens = {
                f"person {i}": add_annotator(project.store, f"person {i}")
                for i in range(given.annotators)
            }
        if given.sources:
            model = ThreadingHTTPServer(("127.0.0.1", 0), LanguageModel)
            threading.Thread(target=model.serve_forever, daemon=True).start()
            first = islice(corpus(given.sentences, np.random.default_rng(0)), 20_000)
            add_all_sources(folder, first, f"http://127.0.0.1:{model.server_port}")
        said = Path(place) / "said"
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
            server = subprocess.Popen(
                [*command, *(["--no-train"] if given.no_train else [])], stdout=log, stderr=log
            )
        try:
            while (link := re.search(r":(\d+)/login\?token=(\S+)", said.read_text())) is None:
                time.sleep(0.1)
            port, own = int(link[1]), link[2]
            people = [
                Annotator(name, token, port, tags, i)
                for i, (name, token) in enumerate(tokens.items())
            ]
            status = hammer(people, given.seconds, port, own)
        finally:
            server.terminate()
            server.wait(20)
        wrong = check(folder, people)
        if "Traceback" in said.read_text():
            wrong.append("the server said: " + said.read_text()[-2000:])
        tell(people, given.seconds, status)
    print(
        "\n".join(f"WRONG: {line}" for line in wrong) or "no answer lost, none given twice, no 5xx"
    )
    return 1 if wrong else 0


def hammer(people: list[Annotator], seconds: float, port: int, own: str) -> dict[str, Any]:
    """Wait until the trainer is up, let everybody work, and say what the status was at the end."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def status() -> dict[str, Any]:
        line.request("GET", "/api/status", headers={"Authorization": f"Bearer {own}"})
        found: dict[str, Any] = json.loads(line.getresponse().read())
        return found

    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and (
        (status()["model"] or {}).get("phase") in (None, "loading the encoder", "starting")
    ):
        time.sleep(1)
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=person.work, args=(end,)) for person in people]
    for thread in threads:
        thread.start()
    phases = set()
    while time.monotonic() < end:
        phases.add((status()["model"] or {}).get("phase"))
        time.sleep(0.5)
    for thread in threads:
        thread.join()
    return {**status(), "phases": sorted(str(phase) for phase in phases)}


def tell(people: list[Annotator], seconds: float, status: dict[str, Any]) -> None:
    saved, unheard, breaks = (
        sum(n)
        for n in zip(*((len(p.saved), len(p.unheard), p.breaks) for p in people), strict=True)
    )
    stale, busy = (sum(person.statuses.count(status) for person in people) for status in (409, 429))
    print(
        f"{len(people)} annotators, {seconds:g} s: {saved} answers acknowledged "
        f"({saved / seconds:.0f}/s), {unheard} not heard of,"
    )
    generation = (status["model"] or {}).get("generation")
    print(
        f"{breaks} connections broken, {stale} stale, {busy} told to wait; generation {generation}"
    )
    print("meanwhile the trainer was: " + ", ".join(status["phases"]))
    offered = sum((person.offered for person in people), Counter())
    if offered:
        shown = sum(len(person.given) for person in people)
        print(
            f"of {shown} sentences, offered by "
            + ", ".join(f"{k} {n}" for k, n in offered.most_common())
        )
    print(f"{'':8}{'n':>8}{'p50 ms':>9}{'p90 ms':>9}{'p99 ms':>9}{'max ms':>9}")
    for what in ("next", "save"):
        took = 1000 * np.array([t for person in people for t in person.took[what]])
        figures = [*np.quantile(took, [0.5, 0.9, 0.99]), took.max()]
        print(f"{what:8}{len(took):>8}" + "".join(f"{figure:>9.1f}" for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
