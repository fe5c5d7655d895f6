"""Seconds from the tenth answer to a project's first model, and how long the page took meanwhile.

    python -m bench.first_model [--data gazette CONLL03] [--repeats 3]

A person answers ten sentences of the real `seqmix annotate` over HTTP, one every `--pause` seconds,
and goes on like that until the first model is published; `next` and `save` are timed from the
client, so the first figure is exact to a pause.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from bench.annotating import annotating, create, model

from seqmix.app.config import Config
from seqmix.app.reading.data import read_splits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["gazette"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two answers")
    given = parser.parse_args()
    print("corpus | runs | to the first model, median (worst) | next, p99 | save, p99 | answers")
    for data in given.data:
        runs = [measure(data, given.pause, seed) for seed in range(given.repeats)]
        seconds = [run[0] for run in runs]
        requests = {
            what: np.concatenate([run[1][what] for run in runs]) for what in ("next", "save")
        }
        p99 = {what: f"{1000 * np.quantile(took, 0.99):.0f} ms" for what, took in requests.items()}
        print(
            f"{Path(data).name} | {len(runs)} | {median(seconds):.1f} s ({max(seconds):.1f} s)"
            f" | {p99['next']} | {p99['save']} | {len(requests['save'])}",
            flush=True,
        )


def measure(data: str, pause: float, seed: int) -> tuple[float, dict[str, list[float]]]:
    """Return the seconds to the first model, and those of each request between."""
    train = read_splits(data, Config())["train"]
    gold = {sentence.tokens: sentence for sentence in train}
    with tempfile.TemporaryDirectory(prefix="seqmix-") as place:
        folder = Path(place) / "project"
        create(folder, train, "--set", f"seed={seed}", "--set", "audit_share=0.0")
        with annotating(folder) as person:
            while model(person.status()).get("phase") != "waiting":
                time.sleep(0.5)
            for _ in range(10):
                person.answer(gold)
                time.sleep(pause)
            tenth = time.monotonic() - pause
            person.took.clear()
            while not model(person.status()).get("trained_on"):
                person.answer(gold)
                time.sleep(pause)
            return time.monotonic() - tenth, person.took


if __name__ == "__main__":
    main()
