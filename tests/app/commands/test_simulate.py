"""The whole loop through the command line, with a tiny encoder on real parts."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from tests.support import tiny

NAMES, PLACES = ("Lena", "Ada", "Bo", "Mary"), ("Oslo", "Rome", "Acme")
FRAMES = (
    ("{n}", "lives", "in", "{p}"),
    ("{n}", "left", "{p}"),
    ("the", "{p}", "of", "{n}"),
    ("{n}", "and", "Smith", "visited", "{p}"),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    made = []
    for n in NAMES:
        for p in PLACES:
            for f, frame in enumerate(FRAMES):
                tokens = tuple(word.format(n=n, p=p) for word in frame)
                tags = tuple(
                    "B-PER" if word in ("{n}", "Smith") else "B-LOC" if word == "{p}" else "O"
                    for word in frame
                )
                made.append(Sentence(f"{n}{p}{f}", tokens, tags))
    formats.write(made[:36], folder / "train.jsonl")
    formats.write(made[36:42], folder / "dev.conll")
    formats.write(made[42:], folder / "test.conll")
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoder") / "bert")


def settings(encoder: str, **changes: object) -> list[str]:
    given = {
        "tagger.encoder": json.dumps(encoder), "loop.seed_size": 8, "loop.rounds": 2,
        "query.size": 4, "training.epochs": 2, "augment.window": 2, "augment.density": 0.5,
        "augment.score_range": '"off"', "augment.rate": 0.5, **changes,
    }  # fmt: skip
    return [
        word
        for key, value in given.items()
        for word in ("--set", f"{key.replace('__', '.')}={value}")
    ]


def test_a_simulated_run_repeats_and_reports(
    data: Path, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        assert (
            run(
                ["simulate", "--data", str(data), "--out", str(tmp_path / name), *settings(encoder)]
            )
            == 0
        )
    told = capsys.readouterr().err
    assert "round 2 of 2" in told and "all 2 rounds are done" in told

    assert (tmp_path / "a" / "rounds.jsonl").read_bytes() == (
        tmp_path / "b" / "rounds.jsonl"
    ).read_bytes()
    assert (tmp_path / "a" / "model" / "model.safetensors").read_bytes() == (
        tmp_path / "b" / "model" / "model.safetensors"
    ).read_bytes()
    lines = [
        json.loads(line) for line in (tmp_path / "a" / "rounds.jsonl").read_text().splitlines()
    ]
    assert [line["labeled"] for line in lines] == [8, 12, 16] and lines[-1]["generated"] > 0
    assert run(["info", str(tmp_path / "a")]) == 0
    assert "stopped: all 2 rounds" in capsys.readouterr().out
    assert run(["info", str(tmp_path / "a"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rounds": lines}

    assert (
        run(
            [
                "simulate",
                "--data",
                str(data),
                "--out",
                str(tmp_path / "none"),
                *settings(encoder, **{"augment.variant": "none"}),
            ]
        )
        == 0
    )
    assert (
        run(
            [
                "report",
                str(tmp_path / "none"),
                str(tmp_path / "a"),
                "--out",
                str(tmp_path / "report.html"),
            ]
        )
        == 0
    )
    page = (tmp_path / "report.html").read_text()
    assert "nte+sub" in page and (tmp_path / "report_files" / "curves.csv").exists()
    assert run(["evaluate", str(tmp_path / "a" / "model"), str(data / "test.conll")]) == 0


@pytest.mark.parametrize(
    "policy",
    [
        "random",
        "lc_prime",
        "qbc",
        "mnlp",
        "margin",
        "bald",
        "tag_count",
        "reweighted",
        "fluctuation",
        "kmeans",
        "coreset",
        "badge",
    ],
)
def test_every_policy_runs_with_a_real_tagger(
    policy: str, data: Path, encoder: str, tmp_path: Path
) -> None:
    changes = {
        "query.policy": policy,
        "augment.variant": "none",
        "training.epochs": 1,
        "query.without_entity": 0.25,
    }
    assert (
        run(
            [
                "simulate",
                "--data",
                str(data),
                "--out",
                str(tmp_path / "run"),
                *settings(encoder, **changes),
            ]
        )
        == 0
    )


def test_least_confidence_runs_with_a_crf(data: Path, encoder: str, tmp_path: Path) -> None:
    changes = {
        "query.policy": "lc",
        "tagger.head": "crf",
        "augment.variant": "mention",
        "augment.guard": 2,
        "loop.rounds": 1,
        "loop.warm": "true",
    }
    assert (
        run(
            [
                "simulate",
                "--data",
                str(data),
                "--out",
                str(tmp_path / "run"),
                *settings(encoder, **changes),
            ]
        )
        == 0
    )
    line = json.loads((tmp_path / "run" / "rounds.jsonl").read_text().splitlines()[0])
    assert set(line["guard"]) == {"helps", "gain", "folds"}


def test_a_run_resumes_only_with_the_data_and_the_encoder_it_was_started_with(
    data: Path, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, model, out = tmp_path / "data", tmp_path / "bert", tmp_path / "run"
    shutil.copytree(data, place)
    shutil.copytree(encoder, model)
    command = [
        "simulate",
        "--data",
        str(place),
        "--out",
        str(out),
        *settings(str(model), **{"augment.variant": "none"}),
    ]
    assert run(command) == 0
    whole = (out / "rounds.jsonl").read_bytes()
    (out / "rounds.jsonl").write_bytes(
        whole.splitlines(keepends=True)[0]
    )  # as a kill after round 0 leaves it
    (out / "model").rename(out / "rounds" / "000" / "model")
    capsys.readouterr()

    def refused(path: Path, old: bytes, new: bytes) -> str:
        before = path.read_bytes()
        assert old in before
        path.write_bytes(before.replace(old, new))
        assert run(command) == 2
        path.write_bytes(before)
        return capsys.readouterr().err

    assert f"{out} holds a run on other data: train changed since" in refused(
        place / "train.jsonl", b"B-PER", b"B-ORG"
    )
    assert "other data: test changed" in refused(
        place / "test.conll", (place / "test.conll").read_bytes()[-40:], b""
    )
    assert "other data: dev changed" in refused(place / "dev.conll", b"lives", b"lived")
    assert "other model folders: encoder changed" in refused(
        model / "config.json", b'"hidden_size": 32', b'"hidden_size":  32'
    )
    assert len((out / "rounds.jsonl").read_bytes().splitlines()) == 1, (
        "nothing was done with what was refused"
    )
    assert (
        run(command) == 0
        and (out / "rounds.jsonl").read_bytes().splitlines()[0] == whole.splitlines()[0]
    )
    assert sorted(json.loads((out / "inputs.json").read_text())) == [
        "dev",
        "encoder",
        "test",
        "train",
    ]


def test_a_run_from_before_digests_were_kept_resumes_and_says_so(
    data: Path, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "simulate",
        "--data",
        str(data),
        "--out",
        str(tmp_path / "run"),
        *settings(encoder, **{"augment.variant": "none"}),
    ]
    assert run(command) == 0
    assert "unknown" not in capsys.readouterr().err
    (tmp_path / "run" / "inputs.json").unlink()

    assert run(command) == 0
    assert "whether this is the same data is unknown" in capsys.readouterr().err
    assert not (tmp_path / "run" / "inputs.json").exists(), (
        "what it was started with is not made up"
    )


def test_bad_input_is_one_clear_line_and_nothing_is_lost(
    data: Path, encoder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        assert run(["simulate", *arguments]) == 2
        told = capsys.readouterr().err.strip().splitlines()
        assert len(told) == 1 and told[0].startswith("error: ")
        return told[0]

    assert "need 108 different sentences, but there are 36" in refused(
        "--data",
        str(data),
        "--out",
        str(tmp_path / "r"),
        *settings(encoder, **{"loop.seed_size": 100}),
    )
    assert "there is no such folder" in refused(
        "--data", "nowhere", "--out", str(tmp_path / "r"), *settings(encoder)
    )
    assert "no file for train" in refused(
        "--data", str(tmp_path), "--out", str(tmp_path / "r"), *settings(encoder)
    )
    assert "say where" in refused("--data", str(data), *settings(encoder))
    (tmp_path / "file").write_text("x")
    assert "cannot" in refused(
        "--data", str(data), "--out", str(tmp_path / "file" / "run"), *settings(encoder)
    )
    assert not (tmp_path / "r").exists()
    assert run(["info", str(tmp_path)]) == 2


def test_a_sentence_that_stands_twice_in_the_data_does_not_run_the_last_round_dry(
    data: Path, encoder: str, tmp_path: Path
) -> None:
    doubled = tmp_path / "data"
    doubled.mkdir()
    train = list(formats.read(data / "train.jsonl"))
    formats.write(
        [*train, *(Sentence(f"again{s.id}", s.tokens, s.tags) for s in train)],
        doubled / "train.jsonl",
    )
    for name in ("dev.conll", "test.conll"):
        (doubled / name).write_bytes((data / name).read_bytes())
    changes = {"loop.slice": 16, "augment.variant": "none", "training.epochs": 1}

    assert (
        run(
            [
                "simulate",
                "--data",
                str(doubled),
                "--out",
                str(tmp_path / "run"),
                *settings(encoder, **changes),
            ]
        )
        == 0
    )
    assert (
        json.loads((tmp_path / "run" / "rounds.jsonl").read_text().splitlines()[-1])["labeled"]
        == 16
    )


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_a_run_that_asks_for_parts_repeats_and_counts_their_tokens(
    data: Path, encoder: str, tmp_path: Path, head: str
) -> None:
    changes = {"query__part": 2, "query__tokens": 7, "tagger__head": head}
    for name in ("a", "b"):
        out = ["--out", str(tmp_path / name)]
        assert run(["simulate", "--data", str(data), *out, *settings(encoder, **changes)]) == 0

    text = (tmp_path / "a" / "rounds.jsonl").read_text()
    assert text == (tmp_path / "b" / "rounds.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    for before, line in pairwise(lines):
        asked = sum(end - start for start, end in line["parts"])
        assert line["tokens"] == before["tokens"] + asked and 2 <= asked <= 7
        assert line["labeled"] == before["labeled"] + len(line["parts"])
