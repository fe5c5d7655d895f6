"""What commands say to people who got something slightly wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from tests.support import tiny

EVIL = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\x7f"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")


def train(command, encoder, data: Path, *more: object):
    return command(
        "train", data, "--encoder", encoder, "--steps", 1, "--out", data.parent / "t", *more
    )


# Data that is not what it was taken for


@pytest.mark.parametrize(
    ("rows", "warning"),
    [
        ("Lena B-PER 1 x\nleft O 2 x\n\nOslo B-LOC 3 x\n", "every token has the tag 'x'"),
        ("B-PER 1 Lena\nO 2 left\n\nB-LOC 3 Oslo\nO 4 .\n", "look like words"),
        ("Lena B-PER\nOslo B-LOC\n", "no token has the tag O"),
    ],
)
def test_a_tag_column_that_looks_like_none_is_warned_about(
    seqmix_command, encoder, tmp_path, rows, warning
):
    (tmp_path / "four.conll").write_text(rows)
    token = ("--read", "token=2") if rows.startswith("B-PER") else ()

    ended = train(seqmix_command, encoder, tmp_path / "four.conll", *token)

    assert ended.code == 0
    (line,) = [line for line in ended.err.splitlines() if line.startswith("warning: ")]
    assert warning in line and "--read tag=" in line


def test_good_data_is_not_warned_about_and_the_tags_are_printed(seqmix_command, encoder, tmp_path):
    (tmp_path / "pos.conll").write_text("Lena PROPN\nleft VERB\n. PUNCT\n\nOslo PROPN\n")
    formats.write(tiny.toy(3), tmp_path / "spans.conll")

    for name, tags in (
        ("pos", "tags: PROPN, VERB, PUNCT"),
        ("spans", "types of span: LOC, ORG, PER"),
    ):
        ended = train(seqmix_command, encoder, tmp_path / f"{name}.conll")
        assert ended.code == 0 and "warning" not in ended.err
        assert tags in ended.err.splitlines()


def test_one_sentence_and_one_step_are_written_so(seqmix_command, encoder, tmp_path):
    (tmp_path / "one.conll").write_text("Lena B-PER\nleft O\n")

    assert (
        "on 1 sentence, 1 step on cpu" in train(seqmix_command, encoder, tmp_path / "one.conll").err
    )
    assert seqmix_command("convert", tmp_path / "one.conll", tmp_path / "one.jsonl").err.startswith(
        "1 sentence written to "
    )


def test_scores_after_training_say_that_they_are_of_the_dev_data(seqmix_command, encoder, tmp_path):
    formats.write(tiny.toy(3), tmp_path / "three.conll")

    ended = train(seqmix_command, encoder, tmp_path / "three.conll", "--dev", "gazette:dev")

    first, second, *_ = ended.out.splitlines()
    assert first == "scores on the dev data, gazette:dev" and second.startswith("processed ")


def test_a_table_given_for_labeled_data_is_said_to_be_raw_text(seqmix_command, encoder, tmp_path):
    (tmp_path / "mails.csv").write_text("id,text\n1,Lena left Oslo\n2,Omar hired Bo in Rome\n")

    line = train(seqmix_command, encoder, tmp_path / "mails.csv").err
    assert (
        "mails.csv: no sentence here has labels; it was read as raw text, one sentence per line"
        in line
    )
    assert "--read" in line and "conll" in line


@pytest.mark.parametrize("words", ["Lena left Oslo", "the old {}", "{}", "We saw {} THERE."])
def test_lines_of_as_many_words_are_still_raw_text(seqmix_command, tmp_path, words):
    (tmp_path / "t.txt").write_text("".join(words.format(f"place{n}") + "\n" for n in range(30)))

    assert formats.guess(tmp_path / "t.txt").name == "text"
    assert (
        seqmix_command("init", tmp_path / "p", "--text", tmp_path / "t.txt", "--tags", "PER").code
        == 0
    )


def test_what_a_folder_of_text_holds_beside_text_is_named(seqmix_command, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Lena left Oslo.\n")
    for name in ("a.pdf", "b.docx", ".DS_Store"):
        (tmp_path / "docs" / name).write_bytes(b"%PDF")

    ended = seqmix_command("init", tmp_path / "p", "--text", tmp_path / "docs", "--tags", "PER")

    assert ended.code == 0
    assert (
        "left out, since only .txt is read: a.pdf, b.docx" in ended.err
        and "DS_Store" not in ended.err
    )


# Names that are wrong


def test_a_data_folder_that_is_not_there_is_said_before_anything_loads(tmp_path):
    code = (
        "import sys; from seqmix.app.cli import run; ended = run(sys.argv[1:]); "
        "sys.exit(9 if 'torch' in sys.modules else ended)"
    )
    arguments = [
        sys.executable,
        "-c",
        code,
        "simulate",
        "--preset",
        "conll03",
        "--data",
        "NOSUCH",
        "--out",
        str(tmp_path / "a"),
    ]

    ended = subprocess.run(arguments, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (
        2,
        "error: NOSUCH: there is no such folder; --data must be a folder "
        "with files named train, dev and test, or the sample gazette\n",
    )


def test_a_run_that_is_not_there_is_said(seqmix_command, tmp_path):
    for name, words in (
        ("nosuchrun", "there is no such run"),
        ("empty", "is not a run directory: it has no rounds.jsonl"),
    ):
        (tmp_path / "empty").mkdir(exist_ok=True)
        ended = seqmix_command("report", tmp_path / name, "--out", tmp_path / "r.html")
        assert (ended.code, ended.err) == (2, f"error: {tmp_path / name}: {words}\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("augment.rate=lots", "augment.rate must be a number; got 'lots'"),
        ("augment.rate=-1", "augment.rate must be at least 0; got -1"),
        ("augment.rate=1e308", "augment.rate must be at most 100; got 1e+308"),
        ("augment.rate=[0.1, 'x']", "augment.rate must be a number; got 'x'"),
        ("augment.alpha=1e308", "augment.alpha must be at most 1000000; got 1e+308"),
        ("augment.window=2.5", "augment.window must be a whole number; got 2.5"),
        ("augment.keep_case=perhaps", "augment.keep_case must be true or false; got 'perhaps'"),
        ("augment.variant=subb", "augment.variant must be 'none', 'whole'"),
        ("tagger.encoder=7", "tagger.encoder must be text; got 7"),
        ("augment.ratee=0.3", "augment.ratee: there is no such key; did you mean augment.rate?"),
        ("agument.rate=0.3", "agument: there is no such key; did you mean augment?"),
        ("augment=3", "augment must be a section of keys; got 3"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_in_plain_words(seqmix_command, change, message):
    ended = seqmix_command("simulate", "--data", "gazette", "--set", change, "--dry-run")

    assert ended.code == 2
    assert ended.err.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("option", "value"),
    [("alpha", "1e308"), ("alpha", "inf"), ("alpha", "0"), ("min_count", "-1")],
)
def test_an_option_of_augment_out_of_range_is_refused(seqmix_command, option, value):
    ended = seqmix_command(
        "augment",
        "gazette:dev",
        "--limit",
        20,
        "--explain",
        "figures",
        "--set",
        f"{option}={value}",
    )

    assert ended.code == 2 and "Traceback" not in ended.err
    assert option in ended.err


@pytest.mark.parametrize("device", ["mps", "xla", "meta", "mps:0"])
def test_a_device_that_is_not_ours_is_one_line(seqmix_command, encoder, tmp_path, device):
    formats.write(tiny.toy(3), tmp_path / "three.conll")

    ended = train(seqmix_command, encoder, tmp_path / "three.conll", "--device", device)

    assert (ended.code, ended.err) == (
        2,
        f"error: there is no device {device!r} here; give cpu or cuda\n",
    )


def test_only_formats_that_can_be_written_are_offered(seqmix_command, tmp_path):
    for arguments in (("x.csv",), ("x.csv", "--to", "nonsense")):
        line = seqmix_command("convert", "gazette:dev", tmp_path / arguments[0], *arguments[1:]).err
        assert (
            "conll" in line
            and "ace05" not in line
            and "text" not in line.replace(str(tmp_path), "")
        )


# What strangers write


def test_no_escape_sequence_reaches_the_terminal(seqmix_command, encoder, tmp_path):
    (tmp_path / "evil.conll").write_text(f"Lena B-{EVIL}PER\nleft O\n")
    (tmp_path / f"{EVIL}.conll").write_text("Lena O extra\nleft O\n")
    model = tmp_path / "t"
    assert train(seqmix_command, encoder, tmp_path / "evil.conll").code == 0
    described = model / "tagger.json"
    described.write_text(
        described.read_text().replace('"encoder": "', '"encoder": "\\u001b[2J\\u009b')
    )

    told = ""
    for arguments in (
        ("info", tmp_path / "evil.conll"),
        ("info", tmp_path / "evil.conll", "--json"),
        ("info", model),
        ("info", model, "--json"),
        ("evaluate", tmp_path / "evil.conll", tmp_path / "evil.conll"),
        ("evaluate", tmp_path / "evil.conll", tmp_path / "evil.conll", "--json"),
        ("info", tmp_path / f"{EVIL}.conll"),
        ("info", tmp_path / f"{EVIL}.none"),
        ("predict", model, tmp_path / "evil.conll", "--out", tmp_path / f"{EVIL}.jsonl"),
        (
            "train",
            tmp_path / "evil.conll",
            "--encoder",
            encoder,
            "--steps",
            1,
            "--out",
            tmp_path / EVIL,
        ),
    ):
        ended = seqmix_command(*arguments)
        told += ended.out + ended.err
    assert "\\u001b" in told and "\\u009b" in told
    assert not [c for c in told if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]


def test_json_stays_json(capsys, tmp_path):
    import json

    (tmp_path / "evil.conll").write_text(f"Lena B-{EVIL}PER\nleft O\n")
    assert run(["info", str(tmp_path / "evil.conll"), "--json"]) == 0
    assert f"B-{EVIL}PER" in json.loads(capsys.readouterr().out)["tags"]
