r"""The store: how long "next" and "save" take with many sentences, with or without publishing.

python bench/serve_store.py [--sentences 100000] [--answers 2000] [--annotators 1] [--publish] \
    [--store postgresql://…]

--publish: rankings are published from another process meanwhile.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from common import show
from seqmix.data.sentence import Sentence
from seqmix.serve.store.annotators import add_annotator, annotator_by_token
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.queue import Rules, next_sentence, unlabeled_ids
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.records import Generation, Mark, Rank
from seqmix.serve.store.sentences import add_sentences, reserve_audit
from seqmix.serve.store.store import Store, create_store, open_store


def text(n: int) -> Iterator[Sentence]:
    """Sentences of 8 to 40 tokens, no two alike."""
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(5000)]
    for i in range(n):
        yield Sentence.from_text(
            " ".join(
                [*(words[j] for j in rng.integers(5000, size=rng.integers(8, 41))), str(i), "."]
            ),
            f"bench:{i}",
        )


def publish(url: Any, stop: Any, done: Any) -> None:
    """What a trainer does: 20,000 ranks, 2,000 of them with a suggestion, again and again."""
    store = open_store(url)
    number, rng = 0, np.random.default_rng(1)
    suggestion = {
        "spans": [{"start": 0, "end": 2, "tag": "PER", "confidence": 0.5}],
        "confidence": 0.4,
    }
    while not stop.is_set():
        ids = unlabeled_ids(store, 20_000, rng)
        publish_generation(
            store,
            Generation(number, 0),
            (Rank(id, 1.0, suggestion if i < 2000 else None) for i, id in enumerate(ids)),
        )
        number += 1
        done.value = number


def annotate(store: Store, who: int, answers: int, seconds: dict[str, list[float]]) -> None:
    """Ask, answer, ask, answer."""
    for _ in range(answers):
        start = time.perf_counter()
        given = next_sentence(store, who, Rules(0.1, 0.0))
        between = time.perf_counter()
        assert given is not None
        save_answer(
            store,
            given.sentence.id,
            who,
            "label",
            [Mark(0, 2, "PER")],
            version=given.version,
            seconds=3.0,
        )
        end = time.perf_counter()
        seconds["next"].append(between - start)
        seconds["save"].append(end - between)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sentences", type=int, default=100_000)
    options.add_argument("--answers", type=int, default=2000)
    options.add_argument("--annotators", type=int, default=1)
    options.add_argument("--publish", action="store_true")
    options.add_argument("--store")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.store or sqlite_url(Path(folder) / "store.sqlite")
        start = time.perf_counter()
        store = create_store(
            url,
            ["PER", "LOC"],
            lambda new: (add_sentences(new, text(given.sentences)), reserve_audit(new, 0.1))[0],
        )
        built, memory = (
            time.perf_counter() - start,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        )
        people = [
            annotator_by_token(store, add_annotator(store, f"annotator {i}"))
            for i in range(given.annotators)
        ]
        context = multiprocessing.get_context("spawn")
        stop, done = context.Event(), context.Value("i", 0)
        trainer = context.Process(target=publish, args=(url, stop, done))
        if given.publish:
            trainer.start()
            time.sleep(3)
        seconds: dict[str, list[float]] = {"next": [], "save": []}
        each = given.answers // given.annotators
        threads = [
            threading.Thread(target=annotate, args=(store, one.id, each, seconds))
            for one in people
            if one
        ]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - start
        if given.publish:
            stop.set()
            trainer.join()
        print(f"{given.sentences} sentences added in {built:.1f} s, {memory:.0f} MB")
        print(f"{len(threads)} annotators, {done.value} rankings published meanwhile")
        print(
            f"{len(seconds['save'])} answers in {took:.1f} s; store {store.place}; "
            f"Python {sys.version.split()[0]}"
        )
        rows = [
            [name, *(f"{1000 * np.quantile(own, q):.2f}" for q in (0.5, 0.9, 0.99, 1.0))]
            for name, own in seconds.items()
        ]
        show(["ms", "p50", "p90", "p99", "max"], rows)
        store.close()


if __name__ == "__main__":
    main()
