r"""Ray against plain processes: scoring a pool on the CPU, and what a killed worker costs.

python bench/cluster.py [--sentences 20000] [--rounds 2] [--model FOLDER] \
    [--data ../shared/data/conll03]
python bench/cluster.py --kill --sentences 100000 [--layers 1]

The peer is one process, or two that know nothing of each other, each with its share of the blocks
and one core: no queue, no journal, one merge at the end. Everything is timed from a cold start:
imports, loading the model, starting Ray. The rounds are interleaved, since others use the machine
as well. --kill: a cluster of two nodes on this machine; half-way through, a worker is killed
(SIGKILL). --layers leaves the starter so many of its layers, where the machine is slow and the time
of the model is not the point.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from common import load, record, show, varied
from seqmix.app.build import tagger_loader
from seqmix.data.sentence import Sentence
from seqmix.query.policies import POLICIES
from seqmix.scale import ranking_job as job
from seqmix.scale.build_pool import build_pool
from seqmix.scale.executors import executor_of
from seqmix.scale.pool import PoolOnDisk, open_pool
from seqmix.scale.ranking import Best, Scored, Scorer, UnitResult, WorkerState, score_unit
from seqmix.scale.ranking_job import score_units
from seqmix.scale.shards import Unit
from seqmix.starter.loader import load_encoder
from seqmix.tagger import Settings, Tagger

TOP = 1000
PLAIN = {1: "1 plain process", 2: "2 plain processes"}


def train(sentences: list[Sentence], layers: int | None, out: Path) -> None:
    """The starter, or the first of its layers, trained a little: its predictions do not matter."""
    encoder, tokenizer = load_encoder()
    if layers is not None:
        encoder.encoder.layer = encoder.encoder.layer[:layers]
        encoder.config.num_hidden_layers = layers
    for part_of_it in (encoder, tokenizer):
        part_of_it.save_pretrained(out.with_name("encoder"))
    Tagger(str(out.with_name("encoder")), settings=Settings(steps=30), device="cpu").fit(
        sentences, np.random.default_rng(0)
    ).save(out)


def scorer(model: Path) -> Scorer:
    return Scorer(POLICIES["nte"].score, tagger_loader([model], "cpu"), TOP)


def plain(pool: PoolOnDisk, model: Path, processes: int) -> list[Scored]:
    """Processes of their own, told only which blocks are theirs."""
    command = [
        sys.executable,
        __file__,
        "--part",
        "--pool",
        str(pool.folder),
        "--model",
        str(model),
        "--of",
        str(processes),
    ]
    threads = {"OMP_NUM_THREADS": "1"}  # as a Ray actor with one CPU has
    children = [
        subprocess.Popen(
            [*command, "--number", str(i)], env={**os.environ, **threads}, stdout=subprocess.PIPE
        )
        for i in range(processes)
    ]
    best = Best(TOP)
    for child in children:
        output, _ = child.communicate()
        best.take(Scored(score, id, tuple(tokens)) for score, id, tokens in json.loads(output))
    return best.kept


def part(pool: PoolOnDisk, model: Path, number: int, of: int) -> None:
    state, best = WorkerState(scorer(model)), Best(TOP)
    for unit in list(pool.units())[number::of]:
        best.take(state.score(unit).best)
    print(json.dumps(best.kept))


def rank(pool: PoolOnDisk, model: Path, engine: str, workers: int) -> list[Scored]:
    with tempfile.TemporaryDirectory() as side:
        return score_units(
            list(pool.units()), scorer(model), Path(side), executor_of(engine), workers
        )[0]


def dying(note: Path, at: str, scorer: Scorer, unit: Unit, tell: object) -> UnitResult:
    """A worker like any other, but the first that is given the unit `at` is killed with it."""
    if unit.key == at and not note.exists():
        note.write_text(f"pid {os.getpid()} at {at.rpartition(':')[2]}")
        os.kill(os.getpid(), signal.SIGKILL)
    return score_unit(scorer, unit, tell)


def kill(pool: PoolOnDisk, model: Path, about: str) -> None:
    """An undisturbed run here, and one on two nodes of which one loses its worker half-way."""
    import ray
    from ray.cluster_utils import Cluster

    start = time.perf_counter()
    undisturbed = rank(pool, model, "local", 2)
    first = time.perf_counter() - start
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    units = list(pool.units())
    try:
        with tempfile.TemporaryDirectory() as side:
            note = Path(side) / "died"
            import cluster as me  # the workers' name for this file, not __main__

            job.score_unit = partial(me.dying, note, units[len(units) // 2].key)
            start = time.perf_counter()
            best, seen = score_units(
                units, scorer(model), Path(side), executor_of(f"ray:{cluster.address}"), 2
            )
            second = time.perf_counter() - start
            died = note.read_text()
    finally:
        ray.shutdown()
        cluster.shutdown()
    same = "the same" if best == undisturbed else "OTHER"
    note = (
        f"{about}; 2 nodes, a worker killed after half of the blocks; "
        f"peer: 2 processes undisturbed; top {TOP}: {same}"
    )
    record("cluster", f"a worker killed, {seen:,} sentences", second, "s", peer=first, note=note)
    show(
        [
            "sentences",
            "undisturbed, 2 processes",
            "2 Ray nodes, a worker killed",
            "killed",
            f"top {TOP}",
        ],
        [[f"{seen:,}", f"{first:.0f} s", f"{second:.0f} s", died, same]],
    )


def compare(pool: PoolOnDisk, model: Path, rounds: int, about: str) -> None:
    ways = {
        (PLAIN[1], 1): partial(plain, pool, model, 1),
        ("Ray, 1 worker", 1): partial(rank, pool, model, "ray", 1),
        (PLAIN[2], 2): partial(plain, pool, model, 2),
        ("local, 2 workers", 2): partial(rank, pool, model, "local", 2),
        ("Ray, 2 workers", 2): partial(rank, pool, model, "ray", 2),
    }
    seconds: dict[str, list[float]] = {name: [] for name, _ in ways}
    found = {}
    for _ in range(rounds):
        for (name, _), way in ways.items():
            start = time.perf_counter()
            found[name] = way()
            seconds[name].append(time.perf_counter() - start)
            print(name, f"{seconds[name][-1]:.1f} s", file=sys.stderr, flush=True)
    least = {name: min(each) for name, each in seconds.items()}
    rows = []
    for name, workers in ways:
        peer = PLAIN[workers]
        same = "the same" if found[name] == found[peer] else "OTHER"
        share = least[PLAIN[1]] / workers / least[name]  # of one plain process on a core of its own
        if name != peer:
            note = (
                f"{about}; peer: {peer}; best of {rounds}, from a cold start; "
                f"efficiency {share:.0%}; top {TOP}: {same}"
            )
            record(
                "cluster",
                f"{name}, {pool.sentences:,} sentences",
                least[name],
                "s",
                peer=least[peer],
                note=note,
            )
        told = " ".join(f"{s:.0f}" for s in seconds[name]) + " s"
        rate = f"{pool.sentences / least[name]:.0f}/s"
        rows.append(
            [name, told, rate, f"{least[name] / least[peer] - 1:+.0%}", f"{share:.0%}", same]
        )
    show(
        ["way", "each round", "best", "against as many plain ones", "efficiency", f"top {TOP}"],
        rows,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", default=None)
    parser.add_argument("--layers", type=int, default=None)
    parser.add_argument("--model", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--part", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--pool", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--of", type=int, default=1, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.part:
        part(open_pool(args.pool), args.model, args.number, args.of)
        sys.exit()
    corpus = load(args.data)
    with tempfile.TemporaryDirectory() as folder:
        made = build_pool(varied(corpus.train, args.sentences), Path(folder) / "pool")
        train(corpus.train[:200], args.layers, Path(folder) / "model")
        about = (
            "starter" if args.layers is None else f"the starter with {args.layers} of its layers"
        )
        if args.kill:
            kill(made, Path(folder) / "model", about)
        else:
            compare(made, Path(folder) / "model", args.rounds, about)
