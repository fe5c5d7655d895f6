"""`seqmix adapt` from outside."""

from __future__ import annotations

import json
import re

import pytest
import torch

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.starter import load_encoder
from tests.support import tiny


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> str:
    """The tiny BERT with a masked-LM head."""
    folder = tmp_path_factory.mktemp("masked")
    model, tokenizer = load_encoder(tiny.write_bert(folder / "bare"), masked_lm=True)
    model.save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    return str(folder / "bert")


def described(folder) -> dict:
    return json.loads((folder / "adapt.json").read_text(encoding="utf-8"))


def test_adapt_writes_an_encoder_that_train_takes_by_its_folder(capfd, tmp_path, small):
    capfd.readouterr()
    code = run(
        [
            "adapt",
            "gazette:train",
            "--encoder",
            small,
            "--set",
            "epochs=1",
            "--device",
            "cpu",
            "--out",
            str(tmp_path / "new" / "encoder"),
        ]
    )
    out, err = capfd.readouterr()

    assert code == 0
    assert re.fullmatch(
        r"held-out loss: \d\.\d{3} before, \d\.\d{3} after "
        r"\(nats per hidden piece, 20 sentences\)\n",
        out,
    )
    lines = err.splitlines()
    assert re.fullmatch(rf"adapting {re.escape(small)} to \d+ sentences, 1 epoch", lines[0])
    assert re.fullmatch(r"adapting: \d+ of \d+ steps, loss \d\.\d{3}", lines[1])
    assert re.fullmatch(rf"written to {re.escape(str(tmp_path))}/new/encoder after \d+ s", lines[2])
    assert len(lines) == 3
    given = [
        "--encoder",
        str(tmp_path / "new" / "encoder"),
        "--set",
        "steps=2",
        "--out",
        str(tmp_path / "tagger"),
    ]
    assert run(["train", "gazette:dev", *given]) == 0


def test_raw_text_and_labeled_files_are_read_together(tmp_path, small):
    (tmp_path / "raw.txt").write_text("Lena left Oslo.\n\nAcme, of Rome!\n", encoding="utf-8")
    formats.write([s.with_tags(s.tags) for s in tiny.toy(3)], tmp_path / "three.conll")
    files = [str(tmp_path / "raw.txt"), str(tmp_path / "three.conll")]
    code = run(
        [
            "adapt",
            *files,
            "--encoder",
            small,
            "--set",
            "steps=2",
            "--device",
            "cpu",
            "--out",
            str(tmp_path / "encoder"),
        ]
    )

    assert code == 0
    text = described(tmp_path / "encoder")["text"]
    assert (text["sentences"], text["tokens"]) == (5, 4 + 5 + sum(len(s) for s in tiny.toy(3)))


def test_text_too_small_to_hold_any_out_is_said(capfd, tmp_path, small):
    (tmp_path / "raw.txt").write_text("Lena left Oslo.\n", encoding="utf-8")
    capfd.readouterr()
    given = [
        "--encoder",
        small,
        "--set",
        "steps=1",
        "--device",
        "cpu",
        "--seed",
        "4",
        "--set",
        "lr=0.01",
        "--set",
        "batch_tokens=64",
    ]
    assert (
        run(["adapt", str(tmp_path / "raw.txt"), *given, "--out", str(tmp_path / "encoder")]) == 0
    )

    assert (
        capfd.readouterr().out
        == "held-out loss: none, the text is too small to hold sentences out\n"
    )
    settings = described(tmp_path / "encoder")["settings"]
    assert (settings["steps"], settings["seed"], settings["lr"], settings["batch_tokens"]) == (
        1,
        4,
        0.01,
        64,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["empty.txt"], "there is no sentence here"),
        (["nowhere.txt"], "nowhere.txt"),
        (["gazette:dev", "--out", "there"], "already exists"),
        (["gazette:dev", "--encoder", "there"], "cannot load the model 'there'"),
        (["gazette:dev", "--set", "epochs=0"], "epochs must be at least 1; got 0"),
        (["gazette:dev", "--set", "lr=2"], "lr must be below 1; got 2"),
        (["gazette:dev", "--seed", "-1"], "--seed must be 0 or more; got -1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_work_is_one_line_and_exit_code_2(
    capfd, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n \n")
    (tmp_path / "there").mkdir()
    before = sorted(tmp_path.iterdir())
    capfd.readouterr()
    code = run(["adapt", "--out", "new", *arguments])
    err = capfd.readouterr().err

    assert code == 2
    assert err.splitlines()[-1].startswith("error: ")
    assert message in err.splitlines()[-1]
    assert sorted(tmp_path.iterdir()) == before
