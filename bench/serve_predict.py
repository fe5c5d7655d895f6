r"""`seqmix serve` under load, beside the tagger called directly in this process.

python bench/serve_predict.py [--model TAGGER] [--clients 32] [--seconds 60] [--rounds 3] \
    [--data ../shared/data/conll03]

Clients ask for one sentence after another. Server and tagger take turns in each round: the same
sentences, first directly (32 at a time, which is the most the server can have at once, and 1,000 at
a time), then over HTTP. The clients are threads of this process; what they and the server cost is
measured, too. In the end the server gets SIGTERM while all of them ask, and they go on until it
refuses their connections: no request may be lost.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from common import load, record, show, varied
from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger

TOKEN = "a-token-for-the-benchmark"
HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


@dataclass
class Load:
    """What the clients saw."""

    wall: float = 0.0  # seconds
    seconds: list[float] = field(default_factory=list)  # of each request
    errors: list[str] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)  # when each was answered
    refused: int = 0  # connections: the clients that ended because of it
    after: int = 0  # requests that were answered after the signal


@contextmanager
def server(model: Path, log: Path) -> Iterator[tuple[int, int]]:
    """Run `seqmix serve`; its port and process id."""
    command = [sys.executable, "-m", "seqmix", "serve", str(model), "--port", "0"]
    with log.open("w") as output:
        process = subprocess.Popen(
            command, stderr=output, stdout=output, env={**os.environ, "SEQMIX_TOKEN": TOKEN}
        )
    try:
        while (address := re.search(r"http://[\d.]+:(\d+)", log.read_text())) is None:
            if process.poll() is not None:
                raise SystemExit(log.read_text())
            time.sleep(0.1)
        yield int(address[1]), process.pid
    finally:
        process.terminate()
        if process.wait(600) != 0:
            raise SystemExit(log.read_text())


def ask(port: int, bodies: Iterator[bytes], end: threading.Event, seen: Load) -> None:
    """Ask for one sentence after another, on one connection while the server keeps it."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    while not end.is_set():
        body = next(bodies)
        start = time.perf_counter()
        try:
            line.request("POST", "/predict", body, HEADERS)
            response = line.getresponse()
            content = response.read()
        except ConnectionRefusedError:
            seen.refused += 1
            return
        except (OSError, http.client.HTTPException) as error:
            seen.errors.append(repr(error))
            return
        seen.seconds.append(time.perf_counter() - start)
        seen.ends.append(time.perf_counter())
        if response.status != 200 or b'"predictions"' not in content:
            seen.errors.append(f"{response.status} {content[:200]!r}")


def over_http(
    port: int, sentences: Iterator[Sentence], clients: int, seconds: float, pid: int | None = None
) -> Load:
    """What that many clients see; the process of `pid`, if any, gets SIGTERM after the seconds."""
    lock, end = threading.Lock(), threading.Event()

    def bodies() -> Iterator[bytes]:
        while True:
            with lock:
                tokens = next(sentences).tokens
            yield json.dumps({"tokens": tokens}).encode()

    start = time.perf_counter()
    each = [Load() for _ in range(clients)]
    threads = [threading.Thread(target=ask, args=(port, bodies(), end, mine)) for mine in each]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    signaled = time.perf_counter()
    if pid is None:
        end.set()
    else:
        os.kill(pid, signal.SIGTERM)
    for thread in threads:
        thread.join()
    seen = Load(time.perf_counter() - start)
    for mine in each:
        seen.seconds += mine.seconds
        seen.errors += mine.errors
        seen.refused += mine.refused
        seen.after += sum(at > signaled for at in mine.ends)
    return seen


def directly(
    tagger: Tagger, sentences: Iterator[Sentence], at_once: int, seconds: float
) -> tuple[int, float]:
    """How many sentences, and in how many seconds."""
    n, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        n += len(list(tagger.best_paths(list(itertools.islice(sentences, at_once)), by_token=True)))
    return n, time.perf_counter() - start


def check(port: int, tagger: Tagger, sentences: Sequence[Sentence]) -> int:
    """How many sentences get other spans over HTTP than directly."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"tokens": [sentence.tokens for sentence in sentences]})
    line.request("POST", "/predict", body, HEADERS)
    predictions = json.loads(line.getresponse().read())["predictions"]
    return sum(
        [(e.start, e.end, e.label) for e in tagged.entities()]
        != [(span["start"], span["end"], span["label"]) for span in prediction["spans"]]
        for tagged, prediction in zip(tagger.predict(sentences), predictions, strict=True)
    )


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def batch_size(port: int) -> float:
    """Sentences per batch, on average."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    line.request("GET", "/metrics", headers=HEADERS)
    text = line.getresponse().read().decode()
    total, n = (
        float(re.search(rf"^seqmix_batch_sentences_{name} (\S+)$", text, re.M)[1])
        for name in ("sum", "count")
    )
    return total / n


def main() -> None:
    parser = argparse.ArgumentParser(description="The prediction server under load.")
    parser.add_argument("--model", type=Path, help="a tagger; one trained for two steps by default")
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=60, help="over HTTP, in all rounds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--data")
    arguments = parser.parse_args()
    corpus = load(arguments.data)
    share = arguments.seconds / arguments.rounds
    seen, counts = Load(), {32: [0, 0.0], 1000: [0, 0.0]}
    with tempfile.TemporaryDirectory() as name:
        model = arguments.model or Path(name) / "ner"
        if arguments.model is None:
            tagger = Tagger(settings=Settings(steps=2))
            tagger.fit(corpus.train[:50], np.random.default_rng(0), corpus.tags).save(model)
        tagger = Tagger.load(model)
        # each sentence once: the tagger remembers the pieces of those it has seen
        sentences = varied([s for s in corpus.test if len(s)], 10**9)
        with server(model, Path(name) / "log") as (port, pid):
            different = check(port, tagger, list(itertools.islice(sentences, 500)))
            costs = [0.0, 0.0]
            for _ in range(arguments.rounds):
                for at_once, count in counts.items():
                    n, seconds = directly(tagger, sentences, at_once, share / 2)
                    count[0] += n
                    count[1] += seconds
                before, ours = cpu_seconds(pid), time.process_time()
                part = over_http(port, sentences, arguments.clients, share)
                costs[0] += cpu_seconds(pid) - before
                costs[1] += time.process_time() - ours
                seen.wall += part.wall
                seen.seconds += part.seconds
                seen.errors += part.errors + ["refused"] * part.refused
            batch = batch_size(port)
            stopped = over_http(port, sentences, arguments.clients, 2, pid)
    report(arguments, corpus.name, seen, counts, costs, batch)
    print(f"500 sentences: {different} get other spans over HTTP than directly")
    print("\n".join(seen.errors[:5]) or "no error")
    print(
        f"SIGTERM while {arguments.clients} clients ask: {stopped.after} requests answered "
        f"after it, {len(stopped.errors)} lost, {stopped.refused} clients ended because it "
        "accepts no more connections"
    )
    print("\n".join(stopped.errors[:5]), end="")
    raise SystemExit(bool(seen.errors or different or stopped.errors))


def report(
    arguments: argparse.Namespace,
    name: str,
    seen: Load,
    counts: dict[int, list[float]],
    costs: Sequence[float],
    batch: float,
) -> None:
    """Print and record the figures."""
    rate = len(seen.seconds) / seen.wall
    limits = {at_once: n / seconds for at_once, (n, seconds) in counts.items()}
    p50, p99 = (1000 * np.quantile(seen.seconds, [0.5, 0.99])).tolist()
    rows: list[list[object]] = [
        [f"directly, {at_once} at a time", f"{limit:.0f}", "", "", ""]
        for at_once, limit in limits.items()
    ]
    over = f"over HTTP, {arguments.clients} clients"
    rows.append([over, f"{rate:.0f}", f"{p50:.1f}", f"{p99:.1f}", f"{batch:.1f}"])
    show(["", "sentences/s", "p50 ms", "p99 ms", "sentences a batch"], rows)
    of_server, of_clients = (1000 * cost / len(seen.seconds) for cost in costs)
    print(
        f"{len(seen.seconds)} requests in {seen.wall:.0f} s, "
        f"{rate / limits[32]:.0%} of the tagger alone; "
        f"CPU per request: server {of_server:.1f} ms, clients {of_clients:.1f} ms"
    )
    note = (
        f"{name}; limit: the tagger called directly, 32 at a time; "
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms, {len(seen.errors)} errors"
    )
    case = f"{arguments.clients} clients, {arguments.seconds:g} s"
    record("serve_predict", case, rate, "1/s", limit=limits[32], note=note)


if __name__ == "__main__":
    main()
