"""Pools on disk: time, memory and bytes of building one and of finding its best.

python bench/pool.py [--sizes 10000 100000 1000000 10000000] [--limit 100000] [--folder /tmp]

Sentences are CoNLL-03's with two tokens changed, a tenth of them repeats, made up as they are read.
The limit of building is making them up and nothing else. Up to --limit sentences are scored with
the starter; the rest would take hours, so all sizes are also scored by a stand-in that costs next
to nothing, which leaves what hangs on the size: reading, the policy, the merge, the journal; and
with a real tagger of one narrow layer, which adds cutting words, batches and caches. Each figure is
of a process of its own with one thread. Times are of the CPU, since others may use the machine as
well; memory is the most that was resident (VmHWM), pages of mapped files included, against 4 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from common import load, record, show, varied
from seqmix.app.build import tagger_loader
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.query.policies import POLICIES
from seqmix.scale.build_pool import build_pool
from seqmix.scale.pool import open_pool
from seqmix.scale.ranking import Scorer
from seqmix.scale.ranking_job import score_units
from seqmix.testing import WordTagger

REPEATS = 0.1
TOP = 1000
RESIDENT = 4096.0  # MiB that are allowed


class ByLetters(WordTagger):
    """A tagger whose probabilities follow from the sentence's letters, in almost no time."""

    def probabilities(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        for sentence in sentences:
            sure = 0.5 + 0.5 / (1 + sum("".join(sentence.tokens).encode()) % 997)
            yield np.full((len(sentence), 2), (sure, 1 - sure), dtype=np.float32)


def by_letters() -> list[ByLetters]:
    return [ByLetters(TagSet(("O", "B-X")))]


def train(out: Path) -> None:
    """The starter, trained a little: what it says does not matter here."""
    from seqmix.tagger import Settings, Tagger

    Tagger(settings=Settings(steps=30), device="cpu").fit(
        load(None).train[:200], np.random.default_rng(0)
    ).save(out)


def train_tiny(out: Path) -> None:
    """A tagger of one narrow layer: all that a real one does, and hardly any arithmetic."""
    from transformers import BertConfig, BertModel

    from seqmix.starter.loader import starter_tokenizer
    from seqmix.tagger import Settings, Tagger

    tokenizer = starter_tokenizer()
    shape = {
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "max_position_embeddings": 256,
    }
    with tempfile.TemporaryDirectory() as encoder:
        BertModel(
            BertConfig(vocab_size=len(tokenizer), **shape), add_pooling_layer=False
        ).save_pretrained(encoder)
        tokenizer.save_pretrained(encoder)
        Tagger(encoder, settings=Settings(steps=30), device="cpu").fit(
            load(None).train[:200], np.random.default_rng(0)
        ).save(out)


def step(what: str, pool: Path, n: int, model: Path) -> dict[str, float]:
    """One measurement, in this process."""
    sentences = (
        [Sentence(s.id, s.tokens) for s in load(None).train] if what in ("make up", "build") else []
    )
    start = time.process_time()
    if what == "make up":
        found = {
            "text": float(
                sum(
                    len(" ".join(sentence.tokens).encode()) + 1
                    for sentence in varied(sentences, n, REPEATS)
                )
            )
        }
    elif what == "build":
        made = build_pool(varied(sentences, n, REPEATS), pool)
        found = {
            "kept": made.sentences,
            "bytes": made.bytes / made.sentences,
            "tokens": made.tokens / made.sentences,
        }
    else:
        load_taggers = by_letters if what == "merge" else tagger_loader([model], "cpu")
        with tempfile.TemporaryDirectory() as side:
            score_units(
                list(open_pool(pool).units()),
                Scorer(POLICIES["nte"].score, load_taggers, TOP),
                Path(side),
            )
            found = {"journal": float((Path(side) / "units.jsonl").stat().st_size)}
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {**found, "seconds": time.process_time() - start, "MiB": peak / 1024}


def apart(what: str, pool: Path, n: int, model: Path) -> dict[str, float]:
    """The same in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--step",
        what,
        "--pool",
        str(pool),
        "--sizes",
        str(n),
        "--model",
        str(model),
    ]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    found = dict(json.loads(done.stdout.splitlines()[-1]))
    print(f"{n:,}", what, found, file=sys.stderr, flush=True)
    return found


def measure(n: int, pool: Path, model: Path, limit: int) -> list[object]:
    """All steps for one size; a row of the table."""
    made_up, built, merged = (apart(what, pool, n, model) for what in ("make up", "build", "merge"))
    record(
        "pool",
        f"build, {n:,}",
        built["seconds"],
        "CPU s",
        limit=made_up["seconds"],
        note="limit: making the sentences up",
    )
    record("pool", f"build, resident, {n:,}", built["MiB"], "MiB", limit=RESIDENT)
    record(
        "pool",
        f"on disk, {n:,}",
        built["bytes"],
        "B/sentence",
        limit=made_up["text"] / n,
        note="limit: the text itself",
    )
    record(
        "pool",
        f"read, rank and merge, {n:,}",
        merged["seconds"],
        "CPU s",
        note="a stand-in for the tagger",
    )
    record(
        "pool",
        f"read, rank and merge, resident, {n:,}",
        merged["MiB"],
        "MiB",
        limit=RESIDENT,
        note="a stand-in for the tagger",
    )
    row = [
        f"{n:,}",
        f"{built['kept']:,}",
        f"{built['seconds']:.0f} s",
        f"{n / (built['seconds'] - made_up['seconds']):,.0f}/s",
    ]
    row += [
        f"{built['MiB']:.0f} MiB",
        f"{built['bytes']:.0f} B",
        f"{merged['seconds']:.0f} s",
        f"{merged['MiB']:.0f} MiB",
    ]
    row += [f"{merged['journal'] / 2**20:.1f} MiB"]
    tiny = apart("tiny", pool, n, model.with_name("tiny"))
    record(
        "pool",
        f"score with one narrow layer, {n:,}",
        built["kept"] / tiny["seconds"],
        "1/CPU s",
        note="one core, loading included",
    )
    record(
        "pool", f"score with one narrow layer, resident, {n:,}", tiny["MiB"], "MiB", limit=RESIDENT
    )
    row += [f"{built['kept'] / tiny['seconds']:,.0f}/s", f"{tiny['MiB']:.0f} MiB"]
    if n > limit:
        return [*row, "–", "–"]
    scored = apart("starter", pool, n, model)
    record(
        "pool",
        f"score with the starter, {n:,}",
        built["kept"] / scored["seconds"],
        "1/CPU s",
        note="one core, loading included",
    )
    record("pool", f"score with the starter, resident, {n:,}", scored["MiB"], "MiB", limit=RESIDENT)
    return [*row, f"{built['kept'] / scored['seconds']:,.0f}/s", f"{scored['MiB']:.0f} MiB"]


def main(args: argparse.Namespace) -> None:
    rows = []
    for n in args.sizes:
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            model = Path(folder) / "model"
            train_tiny(model.with_name("tiny"))
            if n <= args.limit:
                train(model)
            rows.append(measure(n, Path(folder) / "pool", model, args.limit))
    head = [
        "sentences",
        "kept",
        "build",
        "build less making up",
        "resident",
        "a sentence",
        "merge",
        "resident",
        "journal",
        "one layer",
        "resident",
        "starter",
        "resident",
    ]
    show(head, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000]
    )
    parser.add_argument(
        "--limit", type=int, default=100_000, help="score no larger pool with the starter"
    )
    parser.add_argument(
        "--folder", default=None, help="where pools are put while they are measured"
    )
    parser.add_argument("--model", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--step", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--pool", type=Path, default=None, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.step:
        print(json.dumps(step(chosen.step, chosen.pool, chosen.sizes[0], chosen.model)))
    else:
        main(chosen)
