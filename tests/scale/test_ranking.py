"""The best of a pool: the same, by id and score, whoever works it out and in whatever order."""

from __future__ import annotations

import heapq
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.app.build import tagger_loader
from seqmix.app.cli import run
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, ModelError, RunError
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.query.policies import POLICIES
from seqmix.scale import local_executor
from seqmix.scale import ranking_job as job
from seqmix.scale.build_pool import build_pool
from seqmix.scale.pool import PoolOnDisk
from seqmix.scale.ranking import Best, Scored, Scorer, UnitResult, WorkerState
from seqmix.scale.ranking_job import score_units, side_folder, write_scored
from seqmix.scale.shards import BLOCK, Unit, shard_block
from seqmix.scale.sources import units_in_place
from seqmix.tagger import Tagger
from tests.support.pools import arithmetic, broken, dying, many

SIZE = 3 * BLOCK + 100
SCORED = st.builds(
    Scored, st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from("abcdefgh"), st.just(())
)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> PoolOnDisk:
    return build_pool(many(SIZE), tmp_path_factory.mktemp("pools") / "pool", shard_size=2 * BLOCK)


@given(
    scored=st.lists(SCORED, max_size=40, unique_by=lambda one: one.id),
    top=st.integers(1, 6),
    data=st.data(),
)
def test_the_best_do_not_hang_on_the_order_or_the_parts_they_come_in(
    scored: list[Scored], top: int, data: st.DataObject
) -> None:
    expected = heapq.nsmallest(top, scored, key=lambda one: (-one.score, one.id))
    order = data.draw(st.permutations(scored))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=4)))
    parts = [order[a:b] for a, b in zip([0, *cuts], [*cuts, len(order)], strict=True)]
    mine, merged = Best(top), Best(top)

    for part in parts:
        merged.take(mine.take(part))  # what a worker holds back is never missed

    assert mine.kept == merged.kept == expected


def nte(top: int = 50) -> Scorer:
    return Scorer(POLICIES["nte"].score, arithmetic, top)


def test_a_pool_scored_in_blocks_gives_what_the_policy_chooses_from_all_of_it(
    pool: PoolOnDisk, tmp_path: Path
) -> None:
    best, seen = score_units(list(pool.units()), nte(), tmp_path)

    view = TaggerView(
        Pool({s.id: s for s in pool}), arithmetic()[0], lambda: (), {}, np.random.default_rng(0)
    )
    everything = POLICIES["nte"].choose(view, SIZE, np.random.default_rng(0))
    assert seen == SIZE
    assert [(one.id, one.score) for one in best] == sorted(
        everything.items(), key=lambda pair: (-pair[1], pair[0])
    )[:50]


@pytest.mark.parametrize(
    "policy", ["nte", "lc", "lc_prime", "mnlp", "margin", "tag_count", "bald", "random"]
)
def test_each_policy_gives_the_same_bits_in_any_order(
    policy: str, pool: PoolOnDisk, model: Path, tmp_path: Path
) -> None:
    units, scorer = (
        list(pool.units())[1:],
        Scorer(POLICIES[policy].score, tagger_loader([model], "cpu"), 40, seed=3),
    )

    (forth, _), (back, _) = (
        score_units(units, scorer, _made(tmp_path / "a")),
        score_units(units[::-1], scorer, _made(tmp_path / "b")),
    )

    assert forth == back and len({one.score for one in forth}) > (
        1 if policy == "tag_count" else 10
    )


@pytest.mark.ci  # two workers that load torch
@pytest.mark.parametrize("policy", ["nte", "bald"])
def test_a_real_tagger_gives_the_same_bits_in_one_process_and_in_two(
    policy: str, pool: PoolOnDisk, model: Path, tmp_path: Path
) -> None:
    units, scorer = (
        list(pool.units()),
        Scorer(POLICIES[policy].score, tagger_loader([model], "cpu"), 40, seed=3),
    )

    alone, _ = score_units(units, scorer, _made(tmp_path / "a"))
    parallel, _ = score_units(
        units[::-1], scorer, _made(tmp_path / "b"), local_executor.run_jobs, 2
    )

    assert alone == parallel


def test_scores_are_the_taggers_own(pool: PoolOnDisk, model: Path, tmp_path: Path) -> None:
    best, _ = score_units(
        list(pool.units()), Scorer(POLICIES["nte"].score, tagger_loader([model], None), 5), tmp_path
    )

    for one in best:
        probs = next(Tagger.load(model).probabilities([Sentence(one.id, one.tokens)]))
        assert one.score == pytest.approx(
            float(-(probs * np.log(probs)).sum(axis=1).mean()), rel=1e-4
        )


def test_a_committee_is_several_taggers(pool: PoolOnDisk, model: Path, tmp_path: Path) -> None:
    last = list(pool.units())[-1]
    best, _ = score_units(
        [last], Scorer(POLICIES["qbc"].score, tagger_loader([model, model], None), 5), tmp_path
    )

    assert [one.score for one in best] == [0.0] * 5, "twins never disagree"
    assert [one.id for one in best] == sorted(s.id for s in shard_block(last))[:5], (
        "ties go to the lower id"
    )


def test_files_in_another_order_and_cut_elsewhere_give_the_same_bytes(
    model: Path, tmp_path: Path
) -> None:
    lines = [json.dumps({"id": s.id, "tokens": list(s.tokens)}) + "\n" for s in many(BLOCK + 700)]
    cuts = {
        "forth": [lines[:900], lines[900:]],
        "back": [lines[2000:], lines[500:2000], lines[:500]],
    }
    for name, parts in cuts.items():
        (tmp_path / name).mkdir()
        for number, part in enumerate(parts):
            (tmp_path / name / f"{number}.jsonl").write_text("".join(part))
        command = [
            "rank",
            str(tmp_path / name),
            "--model",
            str(model),
            "--top",
            "300",
            "--out",
            str(tmp_path / f"{name}.jsonl"),
        ]
        assert run([*command, "--device", "cpu"]) == 0

    assert (tmp_path / "forth.jsonl").read_bytes() == (tmp_path / "back.jsonl").read_bytes()


def test_a_job_that_was_killed_goes_on_and_does_no_unit_twice(
    pool: PoolOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units, done = list(pool.units()), []
    whole, _ = score_units(units, nte(), _made(tmp_path / "whole"))

    def score(self: WorkerState, unit: Unit) -> UnitResult:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(unit.key)
        return real(self, unit)

    real = WorkerState.score
    monkeypatch.setattr(job.WorkerState, "score", score)
    out = tmp_path / "top.jsonl"
    with pytest.raises(KeyboardInterrupt), side_folder(out, {"top": 50}) as folder:
        score_units(units, nte(), folder)
    with (tmp_path / "top.jsonl.parts" / "units.jsonl").open("ab") as file:
        file.write(b'["cut sho')
    done.clear()
    reported: list[tuple[int, int]] = []

    with side_folder(out, {"top": 50}) as folder:
        best, seen = score_units(
            units, nte(), folder, progress=lambda seen, done: reported.append((seen, done))
        )
        write_scored(best, out)

    assert best == whole and seen == SIZE and done == [unit.key for unit in units[2:]]
    assert reported[0] == (2 * BLOCK, 2 * BLOCK) and reported[-1] == (SIZE, SIZE)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("top")] == ["top.jsonl"]
    first = json.loads(out.read_text().splitlines()[0])
    assert (first["score"], first["id"], tuple(first["tokens"])) == best[0]


def test_another_job_beside_the_same_output_is_refused(tmp_path: Path) -> None:
    out, ours, other = (
        tmp_path / "top.jsonl",
        {"policy": "nte", "top": 50},
        {"policy": "lc", "top": 50},
    )
    with pytest.raises(KeyboardInterrupt), side_folder(out, ours):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir()), "nothing was done yet"
    with pytest.raises(KeyboardInterrupt), side_folder(out, ours) as folder:
        (folder / "units.jsonl").write_text('["00000.arrow:0", 1, []]\n')
        raise KeyboardInterrupt
    with (
        pytest.raises(
            RunError, match=r"another unfinished job, with policy 'nte'; give another --out"
        ),
        side_folder(out, other),
    ):
        pass
    with (
        side_folder(out, ours),
        pytest.raises(RunError, match="another process"),
        side_folder(out, ours),
    ):
        pass
    (tmp_path / "b.jsonl.parts").mkdir()
    (tmp_path / "b.jsonl.parts" / "job.json").write_text("[")
    with pytest.raises(RunError, match="cannot be read"), side_folder(tmp_path / "b.jsonl", {}):
        pass


def test_a_worker_that_is_killed_changes_nothing(
    pool: PoolOnDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = list(pool.units())
    undisturbed, _ = score_units(units, nte(), _made(tmp_path / "a"))
    note = tmp_path / "died"
    monkeypatch.setattr(job, "score_unit", partial(dying, note, units[1].key))

    best, seen = score_units(units, nte(), _made(tmp_path / "b"), local_executor.run_jobs, 2)

    assert note.exists() and best == undisturbed and seen == SIZE


def test_what_goes_wrong_in_a_worker_is_one_line_here(pool: PoolOnDisk, tmp_path: Path) -> None:
    gone = Scorer(POLICIES["nte"].score, broken, 5)  # a worker that needs no torch starts at once
    with pytest.raises(RunError, match=r"0000\d.arrow:\d+: .*nothing is not a tagger"):
        score_units(list(pool.units()), gone, _made(tmp_path / "a"), local_executor.run_jobs, 2)
    with pytest.raises(ModelError, match="nothing is not a tagger"):
        tagger_loader([tmp_path / "nothing"], None)()
    with pytest.raises(RunError) as caught:
        score_units(
            list(pool.units()),
            Scorer(POLICIES["nte"].score, dict, 5),
            _made(tmp_path / "c"),
            local_executor.run_jobs,
            2,
        )
    assert "KeyError" in str(caught.value) and "Traceback" in caught.value.__notes__[0]


def test_ids_that_repeat_are_refused(tmp_path: Path) -> None:
    twins = [Sentence("a", ("x",)), Sentence("a", ("y",))]
    with pytest.raises(DataError, match="two sentences of one block have the same id"):
        nte().scores(twins, arithmetic())
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    for name, word in (("a", "x"), ("b", "y")):
        parquet.write_table(
            pa.table({"id": ["same"], "tokens": [[word]]}), tmp_path / f"{name}.parquet"
        )
    with pytest.raises(DataError, match="two of the best sentences have the same id"):
        score_units(units_in_place(tmp_path) or [], nte(), _made(tmp_path / "side"))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder
