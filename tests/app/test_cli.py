"""The command line from outside: what it writes, what it says, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import seqmix
from seqmix.app import console
from seqmix.app.cli import app, run
from seqmix.app.commands.train.predict import bracketed
from seqmix.data import formats
from seqmix.data.samples import sample
from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence
from tests.support import tiny


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="module")
def model(tmp_path_factory, encoder) -> Path:
    out = tmp_path_factory.mktemp("taggers") / "tagger"
    assert (
        run(["train", "gazette:dev", "--encoder", encoder, "--steps", "3", "--out", str(out)]) == 0
    )
    return out


@pytest.fixture
def conll(tmp_path) -> Path:
    """Three sentences in two columns."""
    path = tmp_path / "three.conll"
    formats.write([s.with_tags(s.tags) for s in tiny.toy(3)], path)
    return path


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


# train


def test_train_writes_a_tagger_and_scores_it_on_held_out_data(seqmix_command, tmp_path):
    """The one with the starter, as in the README."""
    out = tmp_path / "new" / "tagger"
    ended = seqmix_command(
        "train",
        "gazette:dev",
        "--dev",
        "gazette:dev",
        "--steps",
        3,
        "--set",
        "batch_size=4",
        "--out",
        out,
    )

    assert ended.code == 0
    assert {"config.json", "model.safetensors", "tagger.json", "tokenizer.json"} <= {
        path.name for path in out.iterdir()
    }
    assert listed(tmp_path / "new")[0] == "tagger"  # nothing hidden beside it
    assert ended.out.startswith("scores on the dev data, gazette:dev\nprocessed ")
    assert "FB1" in ended.out


def test_progress_is_plain_lines_when_standard_error_is_no_terminal(
    seqmix_command, tmp_path, encoder
):
    ended = seqmix_command(
        "train", "gazette:dev", "--encoder", encoder, "--steps", 3, "--out", tmp_path / "tagger"
    )

    lines = ended.err.splitlines()
    assert not re.search(r"[\r\x1b]", ended.err)
    assert lines.pop(0) == "types of span: LOC, MISC, ORG, PER"
    assert lines[0] == f"training {encoder} with a crf head on 100 sentences, 3 steps on cpu"
    assert re.fullmatch(r"training: 3 of 3 steps, loss \d\.\d{3}", lines[1])
    assert re.fullmatch(rf"written to {re.escape(str(tmp_path))}/tagger after \d+ s", lines[2])
    assert len(lines) == 3
    assert ended.out == ""


def test_trouble_with_the_disk_that_nobody_foresaw_is_one_line(monkeypatch, capfd, tmp_path):
    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path / "a.conll"))

    monkeypatch.setattr("seqmix.app.commands.files.info.read_data", full)
    assert run(["info", "gazette:dev"]) == 2

    assert capfd.readouterr().err == f"error: {tmp_path}/a.conll: No space left on device\n"


def test_a_long_work_says_every_ten_seconds_how_far_it_is(monkeypatch, capfd):
    clock = iter([0.0, 3.0, 11.0, 12.0, 22.0, 40.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(clock))
    with console.progress("training") as update:
        for done in range(1, 6):
            update(done, 5, 0.5)

    assert capfd.readouterr().err.splitlines() == [
        "training: 2 of 5 steps, loss 0.500, about 16 s left",
        "training: 4 of 5 steps, loss 0.500, about 6 s left",
        "training: 5 of 5 steps, loss 0.500",
    ]


def test_the_same_seed_gives_the_same_tagger_and_another_another(seqmix_command, tmp_path, encoder):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        given = ("--encoder", encoder, "--steps", 2, "--limit", 10, "--seed", seed, "--head", "crf")
        assert seqmix_command("train", "gazette:dev", *given, "--out", tmp_path / name).code == 0

    a, b, c = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert a == b != c


def test_train_takes_over_from_a_tagger_of_the_same_name(seqmix_command, tmp_path, encoder):
    for head in ("linear", "crf"):
        assert (
            seqmix_command(
                "train",
                "gazette:dev",
                "--encoder",
                encoder,
                "--steps",
                1,
                "--head",
                head,
                "--out",
                tmp_path / "t",
            ).code
            == 0
        )

    assert json.loads((tmp_path / "t" / "tagger.json").read_text())["head"] == "crf"
    assert {path.parts[0] for path in map(Path, listed(tmp_path))} == {"t"}


# predict


def test_predict_tags_raw_text(seqmix_command, model, tmp_path):
    (tmp_path / "raw.txt").write_text(
        "Lena left Oslo.\n\nAcme, of Rome, hired (three) people in May 2020!\n", encoding="utf-8"
    )
    ended = seqmix_command(
        "predict", model, tmp_path / "raw.txt", "--out", tmp_path / "tagged.jsonl"
    )

    first, second = formats.read(tmp_path / "tagged.jsonl")
    assert ended.code == 0
    assert first.tokens == ("Lena", "left", "Oslo", ".")
    assert first.text == "Lena left Oslo."
    assert second.hard
    assert is_legal(second.tags)


def test_predict_prints_the_entities_where_no_file_is_asked_for(seqmix_command, model, tmp_path):
    text = "Lena left Oslo.  Acme hired her!"
    (tmp_path / "raw.txt").write_text(text + "\n", encoding="utf-8")

    ended = seqmix_command("predict", model, tmp_path / "raw.txt")

    assert ended.code == 0
    assert re.sub(r"\[\w+ |\]", "", ended.out) == text + "\n"
    for option in (["--confidence"], ["--soft"], ["--to", "conll"]):
        assert "need --out FILE" in seqmix_command("predict", model, "gazette:dev", *option).err


def test_entities_are_printed_in_brackets():
    words, tags = ("Lena", "B", "."), ("B-PER", "I-PER", "O")
    assert bracketed(Sentence("1", words, tags)) == "[PER Lena B] ."
    labeled = Sentence.from_text("Oslo, or Rome.", entities=[(0, 4, "LOC"), (9, 13, "LOC")])
    assert bracketed(labeled) == "[LOC Oslo], or [LOC Rome]."


def test_predict_reads_and_writes_columns_and_ignores_their_labels(
    seqmix_command, model, conll, tmp_path
):
    unlabeled = tmp_path / "bare.conll"
    unlabeled.write_text(re.sub(r"\t.*", "", conll.read_text()))
    for source, out in ((conll, "a.conll"), (unlabeled, "b.conll")):
        assert seqmix_command("predict", model, source, "--out", tmp_path / out).code == 0

    assert (tmp_path / "a.conll").read_text() == (tmp_path / "b.conll").read_text()
    assert [s.tokens for s in formats.read(tmp_path / "a.conll")] == [s.tokens for s in tiny.toy(3)]


def test_predict_writes_the_format_asked_for(seqmix_command, model, conll, tmp_path):
    assert (
        seqmix_command("predict", model, conll, "--out", tmp_path / "tagged", "--to", "conll").code
        == 0
    )

    assert len(list(formats.read(tmp_path / "tagged", "conll"))) == 3


def test_confidence_stands_beside_the_tags(seqmix_command, model, conll, tmp_path):
    assert (
        seqmix_command(
            "predict", model, conll, "--confidence", "--out", tmp_path / "sure.jsonl"
        ).code
        == 0
    )
    assert seqmix_command("predict", model, conll, "--out", tmp_path / "plain.jsonl").code == 0

    records = [json.loads(line) for line in (tmp_path / "sure.jsonl").read_text().splitlines()]
    for record in records:
        assert 0 < record["probability"] <= min(record["token_probabilities"]) <= 1
        assert len(record["token_probabilities"]) == len(record["tokens"])
    assert [s.tags for s in formats.read(tmp_path / "sure.jsonl")] == [
        s.tags for s in formats.read(tmp_path / "plain.jsonl")
    ]


def test_soft_writes_distributions(seqmix_command, model, conll, tmp_path):
    assert (
        seqmix_command("predict", model, conll, "--soft", "--out", tmp_path / "soft.jsonl").code
        == 0
    )

    found = list(formats.read(tmp_path / "soft.jsonl"))
    assert [s.id for s in found] == ["three:1", "three:2", "three:3"]
    for sentence in found:
        for row in sentence.tags:
            assert sum(row.values()) == pytest.approx(1, abs=1e-6)


# evaluate


def test_evaluate_scores_a_tagger(seqmix_command, model):
    plain, data = (
        seqmix_command("evaluate", model, "gazette:dev"),
        seqmix_command("evaluate", model, "gazette:dev", "--json"),
    )

    assert plain.code == data.code == 0
    assert plain.out.startswith("processed ")
    assert json.loads(data.out)["split"] == "gazette:dev"
    assert json.loads(data.out)["sentences"] == 100


def test_evaluate_scores_a_file_as_it_scores_the_tagger_that_wrote_it(
    seqmix_command, model, tmp_path
):
    assert (
        seqmix_command("predict", model, "gazette:dev", "--out", tmp_path / "found.conll").code == 0
    )

    from_file = seqmix_command("evaluate", tmp_path / "found.conll", "gazette:dev")
    assert from_file.code == 0
    assert from_file.out == seqmix_command("evaluate", model, "gazette:dev").out


def test_gold_scores_itself_perfectly(seqmix_command, conll):
    assert json.loads(seqmix_command("evaluate", conll, conll, "--json").out)["f1"] == 1


@pytest.mark.parametrize("side", ["gold", "found"])
def test_evaluate_refuses_tokens_without_a_label(seqmix_command, conll, tmp_path, side):
    """Dropping them would move the tags behind them by one."""
    (tmp_path / "part.conll").write_text(conll.read_text().replace("\tO\n", "\t_\n", 1))
    files = (conll, tmp_path / "part.conll") if side == "gold" else (tmp_path / "part.conll", conll)

    refused(seqmix_command("evaluate", *files), "no label")


def test_evaluate_refuses_other_sentences(seqmix_command, conll, tmp_path):
    (tmp_path / "other.conll").write_text(conll.read_text().replace("Lena", "Lea"))

    refused(seqmix_command("evaluate", tmp_path / "other.conll", conll), "same sentences")


# convert


def test_columns_to_json_and_back_are_the_same_file(seqmix_command, tmp_path):
    a, b, c = tmp_path / "a.conll", tmp_path / "b.jsonl", tmp_path / "c.conll"
    for source, out in (("gazette:dev", a), (a, b), (b, c)):
        ended = seqmix_command("convert", source, out)
        assert (ended.code, ended.out) == (0, "")
        assert ended.err.startswith(f"100 sentences written to {out}")

    assert a.read_bytes() == c.read_bytes()
    assert [s.tags for s in formats.read(b)] == [s.tags for s in sample("gazette:dev")]


def test_convert_writes_another_scheme_and_reads_it_back(seqmix_command, conll, tmp_path):
    assert (
        seqmix_command(
            "convert", conll, tmp_path / "bioes.conll", "--to", "conll:scheme=BIOES"
        ).code
        == 0
    )
    assert "\tS-" in (tmp_path / "bioes.conll").read_text()
    assert seqmix_command("convert", tmp_path / "bioes.conll", tmp_path / "bio.conll").code == 0

    assert (tmp_path / "bio.conll").read_bytes() == conll.read_bytes()


def test_convert_hardens_only_when_asked(seqmix_command, tmp_path):
    (tmp_path / "soft.jsonl").write_text(
        '{"id": "x", "tokens": ["Oslo"], "tags": [{"B-LOC": 0.7, "O": 0.3}]}\n'
    )

    refused(
        seqmix_command("convert", tmp_path / "soft.jsonl", tmp_path / "hard.conll"),
        "--to harden=yes",
    )
    assert not (tmp_path / "hard.conll").exists()
    assert (
        seqmix_command(
            "convert", tmp_path / "soft.jsonl", tmp_path / "hard.conll", "--to", "harden=yes"
        ).code
        == 0
    )
    assert (tmp_path / "hard.conll").read_text() == "Oslo\tB-LOC\n\n"


# info


def test_info_describes_a_sample(seqmix_command):
    facts = json.loads(seqmix_command("info", "gazette:dev", "--json").out)

    assert (facts["sentences"], facts["labeled"], facts["with soft labels"], facts["scheme"]) == (
        100,
        100,
        0,
        "BIO",
    )
    assert facts["spans"] == sum(facts["spans by type"].values())
    assert "sentences: 100\n" in seqmix_command("info", "gazette:dev").out


def test_info_describes_a_tagger(seqmix_command, model, encoder):
    facts = json.loads(seqmix_command("info", model, "--json").out)

    assert (facts["kind"], facts["head"], facts["encoder"], facts["settings"]["steps"]) == (
        "seqmix tagger",
        "crf",
        encoder,
        3,
    )
    assert "head: crf\n" in seqmix_command("info", model).out


def test_a_project_stands_for_its_newest_model(seqmix_command, model, conll, tmp_path):
    (tmp_path / "p" / "models").mkdir(parents=True)
    (tmp_path / "p" / "project.toml").write_text("")
    shutil.copytree(model, tmp_path / "p" / "models" / "007")
    (tmp_path / "p" / "models" / "latest").write_text("007\n")

    for name in (tmp_path / "p", tmp_path / "p" / "models" / "latest"):
        assert seqmix_command("predict", name, conll, "--out", tmp_path / "out.conll").code == 0
        assert (
            seqmix_command("evaluate", name, "gazette:dev").out
            == seqmix_command("evaluate", model, "gazette:dev").out
        )
    assert seqmix_command("info", name).out == seqmix_command("info", model).out
    shutil.rmtree(tmp_path / "p" / "models" / "007")
    assert (
        "has no model yet"
        in seqmix_command("predict", tmp_path / "p", conll, "--out", tmp_path / "out.conll").err
    )


def test_every_file_of_a_tagger_can_be_read_by_whom_the_umask_lets(model):
    assert len({file.stat().st_mode for file in model.iterdir()}) == 1


def test_info_describes_the_installation(seqmix_command):
    facts = json.loads(seqmix_command("info", "--json").out)

    assert (facts["seqmix"], facts["torch"]) == (seqmix.__version__, torch.__version__)
    assert facts["formats"] == list(formats.FORMATS)


# What goes wrong


def refused(ended, *words: str) -> None:
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err
    (line,) = ended.err.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def test_a_missing_file_is_one_line(seqmix_command, model, tmp_path):
    for arguments in (
        ("train", "nowhere.conll", "--out", tmp_path / "t"),
        ("train", "gazette:dev", "--dev", "nowhere.conll", "--out", tmp_path / "t"),
        ("predict", model, "nowhere.conll", "--out", tmp_path / "t.conll"),
        ("evaluate", model, "nowhere.conll"),
        ("evaluate", "nowhere.conll", "gazette:dev"),
        ("convert", "nowhere.conll", tmp_path / "t.conll"),
        ("info", "nowhere.conll"),
    ):
        refused(seqmix_command(*arguments), "nowhere.conll", "no such file")
    assert listed(tmp_path) == []


def test_an_unknown_sample_names_the_known_ones(seqmix_command):
    refused(seqmix_command("info", "gazette:tset"), "gazette:tset", ":train", ":test")


def test_an_unknown_format_names_the_known_ones(seqmix_command, conll, model, tmp_path):
    before = listed(tmp_path)
    refused(
        seqmix_command("convert", conll, tmp_path / "x.jsonl", "--read", "xml"), "'xml'", "conll"
    )
    refused(seqmix_command("convert", conll, tmp_path / "x.jsonl", "--to", "xml"), "'xml'", "conll")
    refused(seqmix_command("convert", conll, tmp_path / "x.unknown"), "format", "conll")
    refused(
        seqmix_command("predict", model, conll, "--out", tmp_path / "x.unknown"), "format", "conll"
    )
    assert listed(tmp_path) == before


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--head", "tail"), ("'tail'", "linear or crf")),
        (("--limit", 0), ("got 0", "100")),
        (("--limit", 101), ("got 101", "100")),
        (("--limit", -3), ("got -3",)),
        (("--steps", 0), ("steps must be at least 1; got 0",)),
        (("--set", "epochs=0"), ("epochs must be at least 1; got 0",)),
        (("--set", "batch_size=0"), ("batch_size must be at least 1; got 0",)),
        (("--set", "lr=2"), ("lr must be below 1; got 2",)),
        (("--set", "lr=nan"), ("lr must be", "got nan")),
        (("--seed", -1), ("seed",)),
        (("--device", "bogus"), ("'bogus'",)),
        (("--device", "cuda:99"), ("'cuda:99'",)),
        (("--read", "misaligned=nonsense"), ("misaligned", "'nonsense'", "error, expand or drop")),
        (("--read", "tag=9"), ("column 9",)),
    ],
    ids=str,
)
def test_a_bad_value_for_training_is_one_line_before_any_work(
    seqmix_command, tmp_path, given, words, encoder
):
    (tmp_path / "data.conll").write_text("".join(f"w{i}\tO\n\n" for i in range(100)))
    refused(
        seqmix_command(
            "train", tmp_path / "data.conll", "--encoder", encoder, "--out", tmp_path / "t", *given
        ),
        *words,
    )

    assert listed(tmp_path) == ["data.conll"]


@pytest.mark.parametrize("command", ["train", "predict", "evaluate", "convert", "info"])
def test_misaligned_nonsense_is_refused_everywhere(seqmix_command, command, model, conll, tmp_path):
    before = listed(tmp_path)
    arguments = {
        "train": (conll, "--out", tmp_path / "t"),
        "predict": (model, conll, "--out", tmp_path / "t.conll"),
        "evaluate": (model, conll),
        "convert": (conll, tmp_path / "t.jsonl"),
        "info": (conll,),
    }
    refused(
        seqmix_command(command, *arguments[command], "--read", "misaligned=nonsense"),
        "misaligned must be error, expand or drop; got 'nonsense'",
    )
    assert listed(tmp_path) == before


def test_an_unknown_scheme_names_the_known_ones(seqmix_command, conll, tmp_path):
    refused(
        seqmix_command("convert", conll, tmp_path / "t.jsonl", "--to", "scheme=BOI"),
        "'BOI'",
        "BIOES",
    )


@pytest.fixture
def broken(tmp_path) -> Path:
    """The hundredth line has a column too many.

    subtle: `:100:` is the name of an emoji, which a console may put in its place.
    """
    path = tmp_path / "broken.conll"
    path.write_text(
        "".join(f"w{i}\tO\n" + "\n" * (i % 10 == 9) for i in range(90)) + "w\tO\textra\n"
    )
    assert len(path.read_text().splitlines()) == 100
    return path


def test_a_broken_line_is_named_and_leaves_nothing_behind(seqmix_command, broken, model, tmp_path):
    for arguments in (
        ("train", broken, "--out", tmp_path / "t"),
        ("predict", model, broken, "--out", tmp_path / "deep" / "down" / "t.conll"),
        ("predict", model, broken, "--confidence", "--out", tmp_path / "deep" / "t.jsonl"),
        ("predict", model, broken, "--soft", "--out", tmp_path / "deep" / "t.jsonl"),
        ("evaluate", model, broken),
        ("convert", broken, tmp_path / "deep" / "t.jsonl"),
        ("info", broken),
    ):
        refused(seqmix_command(*arguments), f"{broken}:100: ", "expected 2 columns")
    assert listed(tmp_path) == ["broken.conll"]


def test_a_failed_command_leaves_the_file_that_was_there(seqmix_command, broken, model, tmp_path):
    (tmp_path / "t.conll").write_text("as it was")

    refused(seqmix_command("convert", broken, tmp_path / "t.conll"))
    refused(seqmix_command("predict", model, broken, "--out", tmp_path / "t.conll"))
    assert (tmp_path / "t.conll").read_text() == "as it was"


def test_a_file_that_is_no_text_is_one_line(seqmix_command, tmp_path):
    (tmp_path / "data.conll").write_bytes(b"\xff\xfe\x00\x81")

    refused(seqmix_command("info", tmp_path / "data.conll"), "UTF-8")


def test_nothing_labeled_is_one_line(seqmix_command, tmp_path):
    (tmp_path / "bare.conll").write_text("Lena\nleft\n\n")

    refused(
        seqmix_command("train", tmp_path / "bare.conll", "--out", tmp_path / "t"),
        "no sentence here has labels",
    )


def test_a_place_that_cannot_be_written_is_one_line_before_any_work(
    seqmix_command, model, conll, tmp_path, encoder
):
    (tmp_path / "file").write_text("in the way")
    before = listed(tmp_path)
    for arguments in (
        ("train", conll, "--encoder", encoder, "--steps", 1, "--out", tmp_path / "file"),
        ("train", conll, "--encoder", encoder, "--steps", 1, "--out", tmp_path / "file" / "t"),
        ("predict", model, conll, "--out", tmp_path / "file" / "t.conll"),
        ("predict", model, conll, "--confidence", "--out", tmp_path / "file" / "t.jsonl"),
        ("convert", conll, tmp_path / "file" / "t.jsonl"),
        ("convert", conll, "/proc/nowhere/t.jsonl"),
    ):
        refused(seqmix_command(*arguments))
    assert listed(tmp_path) == before
    assert (tmp_path / "file").read_text() == "in the way"


def test_what_only_json_lines_hold_is_not_written_into_other_files(
    seqmix_command, model, conll, tmp_path
):
    before = listed(tmp_path)
    refused(
        seqmix_command("predict", model, conll, "--soft", "--out", tmp_path / "t.conll"), "soft"
    )
    refused(
        seqmix_command("predict", model, conll, "--confidence", "--out", tmp_path / "t.conll"),
        "--confidence",
    )
    refused(
        seqmix_command(
            "predict", model, conll, "--confidence", "--to", "conll", "--out", tmp_path / "t.jsonl"
        ),
        "--confidence",
    )
    refused(
        seqmix_command(
            "predict", model, conll, "--confidence", "--soft", "--out", tmp_path / "t.jsonl"
        ),
        "--confidence",
        "--soft",
    )
    assert listed(tmp_path) == before


def test_a_folder_that_is_no_tagger_is_one_line(seqmix_command, conll, tmp_path):
    refused(
        seqmix_command("predict", tmp_path, conll, "--out", tmp_path / "t.conll"), "is not a tagger"
    )


def test_a_damaged_tagger_is_one_line(seqmix_command, model, conll, tmp_path, encoder):
    assert (
        seqmix_command(
            "train", conll, "--encoder", encoder, "--steps", 1, "--out", tmp_path / "t"
        ).code
        == 0
    )
    weights = tmp_path / "t" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])

    refused(
        seqmix_command("predict", tmp_path / "t", conll, "--out", tmp_path / "x.conll"), "damaged"
    )
    refused(seqmix_command("evaluate", tmp_path / "t", conll), "damaged")


def test_an_encoder_that_is_not_there_says_so_in_its_last_line(seqmix_command, conll, tmp_path):
    ended = seqmix_command("train", conll, "--encoder", tmp_path / "none", "--out", tmp_path / "t")

    assert ended.code == 2
    assert ended.err.splitlines()[-1].startswith("error: cannot load the model")
    assert "Traceback" not in ended.err
    assert not (tmp_path / "t").exists()


def test_debug_shows_where_it_went_wrong(seqmix_command, broken):
    for arguments in (("--debug", "info", broken), ("info", broken, "--debug")):
        ended = seqmix_command(*arguments)
        assert ended.code == 2
        assert "Traceback" in ended.err
        assert "conll.py" in ended.err
        assert ended.err.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "gazette:dev"),
        ("train", "gazette:dev", "--out", "t", "--steps", "many"),
        ("fly",),
        ("info", "--what"),
    ],
)
def test_a_wrong_use_is_explained(seqmix_command, arguments):
    ended = seqmix_command(*arguments)

    assert ended.code == 2
    assert "Error: " in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "command", [(), *((known.callback.__name__,) for known in app.registered_commands)], ids=str
)
def test_every_command_explains_itself(seqmix_command, command):
    ended = seqmix_command(*command, "--help")

    assert ended.code == 0
    assert "Usage: " in ended.out


def test_the_version_is_printed_by_the_module_run_as_a_program():
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-m", "seqmix", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (
        0,
        f"seqmix {seqmix.__version__}\n",
        "",
    )
