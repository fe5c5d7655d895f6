"""Ray does what processes do: jobs in order, told of, tried again when a worker or a node dies.

Slow: a cluster takes its time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from seqmix.app.build import tagger_loader
from seqmix.app.cli import run
from seqmix.app.sweep.table import read_results
from seqmix.errors import ConfigError, MissingExtraError, RunError
from seqmix.query.policies import POLICIES
from seqmix.scale import ranking_job as job
from seqmix.scale import ray_executor
from seqmix.scale.build_pool import build_pool
from seqmix.scale.executors import executor_of
from seqmix.scale.local_executor import JobEvent
from seqmix.scale.ranking import Scorer
from seqmix.scale.ranking_job import score_units
from seqmix.scale.ray_executor import AS_MANY_AS_FIT, run_jobs
from seqmix.scale.shards import BLOCK
from tests.support import ROOT, jobs, tiny
from tests.support.pools import arithmetic, dying, many

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::FutureWarning", "ignore::DeprecationWarning"
)
slow = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _workers_find_the_tests() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        patch.delenv("RAY_ADDRESS", raising=False)
        yield


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """A cluster of two nodes on this machine, a CPU each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    cluster.add_node(num_cpus=1)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def heard(todo: list[str], cluster: Any, workers: int = 1) -> list[JobEvent[str]]:
    events: list[JobEvent[str]] = []
    assert run_jobs(todo, jobs.do, workers, events.append, address=cluster.address) == []
    return events


@slow
def test_actors_do_what_processes_do(nodes: Any, tmp_path: Path) -> None:
    events = heard(["a", "refuse", "b", "break", "c", f"die-once {tmp_path / 'died'}"], nodes)

    ended = {event.job.split()[0]: event for event in events if event.kind != "emitted"}
    assert [(name, event.kind) for name, event in ended.items()] == [
        ("a", "done"), ("refuse", "failed"), ("b", "done"), ("break", "failed"),
        ("c", "done"), ("die-once", "done"),
    ]  # fmt: skip
    assert [event.value for event in events if event.kind == "emitted"][:2] == ["a", "refuse"]
    assert ended["refuse"].value == "not like this" and not ended["refuse"].trace
    assert (
        ended["break"].value == "ZeroDivisionError: by nothing at all"
        and "in do" in ended["break"].trace
    )
    assert (
        ended["a"].value[1] == ended["b"].value[1] != ended["c"].value[1]
        and os.getpid() != ended["a"].value[1]
    )


@slow
def test_a_job_that_kills_its_workers_fails_and_loses_no_other(
    nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_executor, "TRIES", 2)

    ended = {
        event.job: event
        for event in heard(["die", "a"], nodes, workers=2)
        if event.kind != "emitted"
    }

    assert ended["a"].kind == "done"
    assert ended["die"].kind == "failed" and "its worker died 2 times" in ended["die"].value


@slow
def test_a_cluster_that_has_not_what_is_asked_for_is_not_waited_for_forever(
    nodes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_executor, "PATIENCE", 3.0)
    with pytest.raises(
        RunError, match="no Ray worker started in 3 s; each asks for 1 CPU and 1 GPUs"
    ):
        executor_of(f"ray:{nodes.address}", gpus=1.0)(["a"], jobs.do, 1, lambda event: None)


@slow
def test_no_job_starts_when_the_time_is_up(nodes: Any) -> None:
    events: list[JobEvent[str]] = []

    def may_start() -> bool:
        return sum(event.kind == "done" for event in events) < 2

    left = run_jobs(
        ["a", "b", "c", "d"], jobs.do, 1, events.append, may_start, address=nodes.address
    )

    assert [event.job for event in events if event.kind == "done"] == ["a", "b"] and left == [
        "c",
        "d",
    ]


@slow
def test_with_a_worker_and_then_a_node_killed_half_way_the_best_are_those_of_an_undisturbed_run(
    nodes: Any, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = list(build_pool(many(8 * BLOCK), tmp_path / "pool").units())
    scorer = Scorer(POLICIES["nte"].score, tagger_loader([model], "cpu"), 100)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    undisturbed, _ = score_units(units, scorer, tmp_path / "a")
    lost = nodes.add_node(num_cpus=1)
    killed: list[bool] = []

    def disturb(seen: int, done: int) -> None:
        if done >= 5 * BLOCK and not killed:
            nodes.remove_node(lost, allow_graceful=False)
            killed.append(True)

    monkeypatch.setattr(job, "score_unit", partial(dying, tmp_path / "died", units[3].key))
    best, seen = score_units(
        units, scorer, tmp_path / "b", executor_of(f"ray:{nodes.address}"), 3, disturb
    )

    assert (tmp_path / "died").exists() and killed
    assert best == undisturbed and seen == 8 * BLOCK


def test_engines_that_are_not_there_are_said_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ConfigError, match="--engine must be local, ray or ray:ADDRESS; got 'dask'"):
        executor_of("dask")
    with pytest.raises(ConfigError, match="got 'local:auto'"):
        executor_of("local:auto")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=r"the engine ray needs .* pip install 'seqmix\[scale\]'"
    ):
        executor_of("ray")


@slow
def test_an_address_nobody_answers_at_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match=r"Ray does not answer at 127.0.0.1:9 .*ray start --head"):
        run_jobs(["a"], jobs.do, 1, lambda event: None, address="127.0.0.1:9")


@slow
def test_a_pool_is_scored_and_a_set_augmented_on_a_cluster_as_they_are_here(
    nodes: Any, model: Path, tmp_path: Path
) -> None:
    assert run(["rank", "gazette:train", "gazette:dev", "--pool", str(tmp_path / "pool")]) == 0
    score = [
        "rank",
        str(tmp_path / "pool"),
        "--model",
        str(model),
        "--top",
        "30",
        "--device",
        "cpu",
        "--out",
    ]
    augment = ["augment", "gazette:train", "--variant", "mention", "--part-size", "250", "--out"]
    ray_here = ["--engine", f"ray:{nodes.address}"]

    for command in (score, augment):
        assert (
            run([*command, str(tmp_path / "ours")])
            == run([*command, str(tmp_path / "theirs"), *ray_here])
            == 0
        )
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes() != b""


@slow
def test_a_sweep_gives_the_same_table_on_a_cluster(nodes: Any, tmp_path: Path) -> None:
    tiny.write_bert(tmp_path / "bert")
    (tmp_path / "toys.toml").write_text(
        'title = "Toys"\ndata = "gazette"\nseeds = 2\n'
        '[set]\n"tagger.encoder" = "models/bert"\n"loop.seed_size" = 6\n"loop.rounds" = 1\n'
        '"query.size" = 3\n"training.epochs" = 1\n[arms."none"]\n"augment.variant" = "none"\n'
    )
    command = [
        "sweep",
        str(tmp_path / "toys.toml"),
        "--models",
        str(tmp_path),
        "--workers",
        "2",
        "--device",
        "cpu",
        "--out",
    ]

    assert run([*command, str(tmp_path / "a")]) == 0
    assert run([*command, str(tmp_path / "b"), "--engine", f"ray:{nodes.address}"]) == 0

    ours, theirs = (
        [
            {k: v for k, v in row.items() if k not in ("seconds", "finished")}
            for row in read_results([tmp_path / name / "results.csv"])
        ]
        for name in ("a", "b")
    )
    assert ours == theirs and len(ours) == 4


@slow
def test_without_an_address_a_cluster_of_our_own_comes_and_goes(tmp_path: Path) -> None:
    """The last one here.

    After a cluster of its own, Ray starts no actor on another cluster from the same process.
    """
    units = list(build_pool(many(2 * BLOCK), tmp_path / "pool").units())
    (tmp_path / "side").mkdir()

    best, _ = score_units(
        units,
        Scorer(POLICIES["nte"].score, arithmetic, 10),
        tmp_path / "side",
        executor_of("ray"),
        AS_MANY_AS_FIT,
    )

    assert len(best) == 10 and not ray.is_initialized()
