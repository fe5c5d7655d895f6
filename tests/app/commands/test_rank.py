"""`seqmix rank` from the outside."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.scale.pool import open_pool
from seqmix.tagger import Settings, Tagger
from tests.support import tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scored")
    tagger = Tagger(tiny.write_bert(folder / "encoder"), settings=Settings(steps=10), device="cpu")
    tagger.fit(tiny.toy(), np.random.default_rng(0)).save(folder / "model")
    return folder / "model"


def score(pool: object, model: Path, out: Path, *more: str) -> int:
    return run(
        ["rank", str(pool), "--model", str(model), "--out", str(out), "--device", "cpu", *more]
    )


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_pool_is_built_described_and_scored(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool, top = tmp_path / "pool", tmp_path / "top.jsonl"
    (tmp_path / "more.jsonl").write_text(
        '{"tokens": ["Lena", "left"]}\n' * 2 + '{"tokens": ["-DOCSTART-"]}\n{"tokens": []}\n'
    )
    assert run(["rank", "gazette:train", str(tmp_path / "more.jsonl"), "--pool", str(pool)]) == 0
    assert (
        "501 sentences in 1 shard," in (told := capsys.readouterr().err)
        and "1 repeated" in told
        and "1 -DOCSTART-" in told
    )

    assert run(["info", str(pool), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 501
    assert score(pool, model, top, "--top", "20") == 0

    assert (
        "ranking 501 sentences by nte on cpu, one worker (local)"
        in (told := capsys.readouterr().err)
        and "per second" in told
    )
    found = read(top)
    assert len(found) == 20 and list(found[0]) == ["id", "score", "tokens"]
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)  # type: ignore[type-var]
    assert [s.id for s in formats.read(top)] == [one["id"] for one in found], (
        "what is written is a format that is read"
    )


def test_files_that_are_no_pool_give_what_their_pool_gives(model: Path, tmp_path: Path) -> None:
    (tmp_path / "shards").mkdir()
    for name in ("train", "dev"):
        formats.write(formats.read(_gazette(name)), tmp_path / "shards" / f"{name}.jsonl")
    assert run(["rank", str(tmp_path / "shards"), "--pool", str(tmp_path / "pool")]) == 0

    for place, out in (("pool", "a.jsonl"), ("shards", "b.jsonl")):
        assert score(tmp_path / place, model, tmp_path / out, "--top", "7", "--policy", "mnlp") == 0

    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert not list(tmp_path.glob("*.parts"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--policy", "kmeans"],
            "--policy must score each sentence by itself (random, lc",
        ),
        (["--policy", "coreset"], "got coreset"),
        (["--policy", "fluctuation"], "got fluctuation"),
        (["--policy", "qbc"], "give --model two times or more"),
        (["--policy", "mine"], "there is no policy 'mine'"),
        (["--engine", "dask"], "--engine must be local, ray or ray:ADDRESS; got 'dask'"),
        (["--engine", "local:auto"], "--engine must be"),
        (["--device", "tpu9"], "there is no device 'tpu9'"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    arguments: list[str],
    message: str,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert score("gazette:dev", model, tmp_path / "top.jsonl", *arguments) == 2

    said = capsys.readouterr().err
    assert message in said and len(said.splitlines()) == 1 and not list(tmp_path.iterdir())


def test_names_that_are_wrong_are_said(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(
            [
                "rank",
                "gazette:dev",
                str(tmp_path / "nothing"),
                "--pool",
                str(tmp_path / "pool"),
            ]
        )
        == 2
    )
    assert (
        "there is no such file or folder" in capsys.readouterr().err
        and not (tmp_path / "pool").exists()
    )
    assert run(["info", str(tmp_path)]) == 2
    assert "no known format is recognized in this folder" in capsys.readouterr().err
    assert score("gazette:dev", tmp_path, tmp_path / "top.jsonl") == 2
    assert "is not a tagger" in capsys.readouterr().err
    assert score(tmp_path / "nothing", model, tmp_path / "top.jsonl") == 2
    assert "there is no such file or folder" in capsys.readouterr().err


def test_a_pool_that_is_broken_or_empty_is_one_line_and_leaves_nothing_in_the_way(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    (tmp_path / "broken.parquet").write_text("no Parquet")
    parquet.write_table(
        pa.table({"tokens": pa.array([], pa.list_(pa.string()))}), tmp_path / "none.parquet"
    )
    (tmp_path / "none.jsonl").write_text("")
    (tmp_path / "twins.jsonl").write_text(
        '{"id": "a", "tokens": ["x"]}\n{"id": "a", "tokens": ["y"]}\n'
    )
    before = sorted(tmp_path.iterdir())
    for source, message in (
        ("broken.parquet", "broken.parquet: cannot read this shard"),
        ("none.parquet", "none.parquet: expected sentences, but there are none"),
        ("none.jsonl", "expected sentences for a pool, but there are none"),
        ("twins.jsonl", "two sentences have the id 'a'"),
    ):
        assert score(tmp_path / source, model, tmp_path / "top.jsonl") == 2
        assert (
            message in capsys.readouterr().err.splitlines()[-1]
            and sorted(tmp_path.iterdir()) == before
        )


def test_a_copy_made_with_other_options_is_not_scored(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    (tmp_path / "a.conll").write_text("x Lena O\nx left O\n")
    with monkeypatch.context() as patch:
        patch.setattr("seqmix.scale.ranking_job.score_units", stop)
        assert score(tmp_path / "a.conll", model, tmp_path / "top.jsonl") == 130
    assert score(tmp_path / "a.conll", model, tmp_path / "top.jsonl", "--read", "token=1") == 2
    assert score(tmp_path / "a.conll", model, tmp_path / "top.jsonl") == 0
    assert [one["tokens"] for one in read(tmp_path / "top.jsonl")] == [["x", "x"]]


def test_a_file_beyond_what_memory_should_hold_becomes_a_pool_and_gives_the_same(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert score("gazette:dev", model, tmp_path / "a.jsonl") == 0
    assert "a pool is built" not in capsys.readouterr().err
    for limit in ("SENTENCES", "TOKENS"):
        with monkeypatch.context() as patch:
            patch.setattr(f"seqmix.scale.sources.{limit}", 50)
            assert score("gazette:dev", model, tmp_path / f"{limit}.jsonl") == 0
        assert "a pool is built" in capsys.readouterr().err
        assert read(tmp_path / f"{limit}.jsonl") == read(tmp_path / "a.jsonl")


def test_without_the_extra_its_name_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(["rank", "gazette:dev", "--pool", str(tmp_path / "pool")]) == 2
    assert (
        "pip install 'seqmix[scale]'" in capsys.readouterr().err
        and not (tmp_path / "pool").exists()
    )


def test_a_large_set_is_augmented_in_parts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = ["augment", "gazette:train", "--variant", "mention", "--rate", "0.1", "--out"]
    for out, more in (("a", []), ("b", ["--workers", "2"])):
        assert run([*plain, str(tmp_path / out), "--part-size", "250", *more]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() and len(
        read(tmp_path / "a")
    ) == 50

    capsys.readouterr()
    assert run([*plain, str(tmp_path / "c"), "--workers", "2"]) == 2
    assert "--part-size 5000" in capsys.readouterr().err
    assert run([*plain, str(tmp_path / "c"), "--part-size", "9", "--set", "table=contextual"]) == 2
    assert "--part-size needs table=encoder" in capsys.readouterr().err


def test_mixing_in_parts_gives_sentences_with_their_lineage(tmp_path: Path) -> None:
    arguments = [
        "augment",
        "gazette:train",
        "--limit",
        "60",
        "--part-size",
        "30",
        "--set",
        "score_range=off",
        "--set",
        "seen=true",
        "--rate",
        "0.2",
    ]
    assert run([*arguments, "--out", str(tmp_path / "a")]) == 0

    words = {token for s in formats.read(_gazette("train")) for token in s.tokens}
    found = read(tmp_path / "a")
    assert 0 < len(found) <= 12 and all(one["lineage"]["method"] == "sub" for one in found)  # type: ignore[index]
    assert {token for one in found for token in one["tokens"]} <= words  # type: ignore[attr-defined]


def _gazette(name: str) -> Path:
    from seqmix.data import samples

    return Path(samples.__file__).parent / "gazette" / f"{name}.conll"


def test_rounded_weights_give_nearly_the_same_best_and_are_another_job(
    model: Path, tmp_path: Path
) -> None:
    pool = tmp_path / "pool"
    assert run(["rank", "gazette:train", "--pool", str(pool)]) == 0
    assert (
        score(pool, model, tmp_path / "a.jsonl", "--top", "50")
        == score(pool, model, tmp_path / "b.jsonl", "--top", "50", "--int8")
        == 0
    )

    exact, rounded = read(tmp_path / "a.jsonl"), read(tmp_path / "b.jsonl")
    assert len({one["id"] for one in exact} & {one["id"] for one in rounded}) >= 40
    assert [one["score"] for one in exact] != [one["score"] for one in rounded]


def test_a_pool_whose_bytes_changed_is_one_line_that_names_the_shard(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "pool"
    assert run(["rank", "gazette:train", "--pool", str(pool)]) == 0
    shard = pool / "00000.arrow"
    whole = shard.read_bytes()
    at = whole.index(b"Bratislava") if b"Bratislava" in whole else whole.index(b"the")
    lengths = np.cumsum([0, *(len(sentence) for sentence in open_pool(pool))], dtype="<i4")
    lists = (
        whole.index(lengths[:8].tobytes()) + 12
    )  # where the fourth sentence starts: pyarrow would follow it wherever it points

    for damage in (
        whole[:at] + b"Q" + whole[at + 1 :],
        whole[:600] + b"\xff" * 8400 + whole[9000:],
        whole[:lists] + b"\xff\xff\xff\x7f" + whole[lists + 4 :],
    ):
        shard.write_bytes(damage)
        for command in (
            ["rank", str(pool), "--model", str(model), "--device", "cpu"],
            ["rank", str(pool), "--pool", str(tmp_path / "again")],
        ):
            capsys.readouterr()
            out = ["--out", str(tmp_path / "out")] if "--model" in command else []
            assert run([*command, *out]) == 2
            assert (
                "00000.arrow" in (told := capsys.readouterr().err)
                and "cannot read this shard" in told
            )


def test_a_moved_pool_and_a_damaged_journal_are_refused(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, out = tmp_path / "pool", tmp_path / "top.jsonl"
    assert run(["rank", "gazette:train", "--pool", str(pool)]) == 0
    with monkeypatch.context() as broken:
        broken.setattr(
            "seqmix.scale.ranking_job.write_scored",
            lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        assert score(pool, model, out) == 130
    pool.rename(tmp_path / "elsewhere")
    capsys.readouterr()

    assert score(tmp_path / "elsewhere", model, out) == 2
    assert "holds another unfinished job" in capsys.readouterr().err
    (tmp_path / "elsewhere").rename(pool)
    journal = tmp_path / "top.jsonl.parts" / "units.jsonl"
    written = journal.read_text()
    journal.write_text("{half a line\n" + written)
    assert score(pool, model, out) == 2
    assert "units.jsonl is damaged" in capsys.readouterr().err
    journal.write_text(written)
    assert score(pool, model, out) == 0 and len(read(out)) == 500


def test_one_policy_one_model_and_a_committee_knows_the_same_tags(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = [
        s.with_tags(["O" if tag == "O" else tag[:2] + "X" for tag in s.tags]) for s in tiny.toy()
    ]  # type: ignore[index]
    tagger = Tagger(str(model.parent / "encoder"), settings=Settings(steps=2), device="cpu")
    tagger.fit(other, np.random.default_rng(0)).save(tmp_path / "other")

    for policy, message in (
        ("nte", "takes one model; got 2"),
        ("qbc", "must have the same tags"),
    ):
        assert (
            score(
                "gazette:dev",
                model,
                tmp_path / "out.jsonl",
                "--policy",
                policy,
                "--model",
                str(tmp_path / "other"),
            )
            == 2
        )
        assert message in capsys.readouterr().err


def test_an_output_that_cannot_be_is_refused_before_any_work(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts").mkdir()
    formats.write(tiny.toy(), tmp_path / "texts" / "a.jsonl")

    for out, message in (
        (tmp_path, "is a folder"),
        (tmp_path / "texts" / "top.jsonl", "texts is read; name another"),
    ):
        assert score(tmp_path / "texts", model, out) == 2
        assert message in (told := capsys.readouterr().err) and "ranking" not in told
    assert [file.name for file in (tmp_path / "texts").iterdir()] == ["a.jsonl"]


def test_building_tells_how_far_reading_and_writing_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seqmix.app.console.EVERY", 0)
    lines = [json.dumps({"id": str(i), "tokens": ["sentence", str(i)]}) + "\n" for i in range(5000)]
    (tmp_path / "lines.jsonl").write_text("".join(lines))

    assert run(["rank", str(tmp_path / "lines.jsonl"), "--pool", str(tmp_path / "pool")]) == 0

    told = [line for line in capsys.readouterr().err.splitlines() if "per second" in line]
    assert [line.split(",")[0] for line in told] == [
        f"{what}: {n} sentences" for what in ("reading", "writing") for n in (2048, 4096, 5000)
    ]
    assert not any(", -" in line for line in told)
