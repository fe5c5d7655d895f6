"""Hostile corpora through the real commands: a clear refusal, or correct work in bounded memory.

The slow tests have the sizes of the promise, each command in a process of its own; the others are
the same, small and in this process.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.data.tagset import TagSet
from seqmix.errors import TagError
from seqmix.tagger import Tagger
from seqmix.tagger.tagger import MAX_TAGS
from tests.support.hostile import command, endless, long_token, many_types
from tests.support.tiny import write_bert, write_roberta

BOUND = 3000  # MiB: torch and the encoder take a third of it before anything is read
GOOD = (
    "Lena\tB-PER\nleft\tO\nOslo\tB-LOC\n\n" * 1
    + "Bo\tB-PER\nlives\tO\nin\tO\nRome\tB-LOC\n\n"
    + "Ada\tB-PER\nleft\tO\n\n"
)


@pytest.fixture
def encoder(tmp_path: Path) -> str:
    return write_bert(tmp_path / "encoder")


def trained(data: Path, encoder: str, out: Path, *more: str) -> Path:
    assert (
        run(
            [
                "train",
                str(data),
                "--out",
                str(out),
                "--encoder",
                encoder,
                "--set",
                "epochs=1",
                *more,
            ]
        )
        == 0
    )
    return out


@pytest.mark.parametrize("tokens", [3_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_one_endless_sentence_is_trained_on_and_tagged_to_its_last_token(
    tokens: int, tmp_path: Path, encoder: str
) -> None:
    data, seqmix = (
        endless(tmp_path / "train.conll", tokens),
        partial(command, apart=tokens > 100_000),
    )

    learned = seqmix(
        "train", data, "--out", tmp_path / "model", "--encoder", encoder, "--set", "epochs=1"
    )
    tagged = seqmix("predict", tmp_path / "model", data, "--out", tmp_path / "out.conll")
    facts = seqmix("info", data, "--json")
    scored = seqmix("evaluate", tmp_path / "out.conll", data, "--json")

    assert (learned.code, tagged.code, facts.code, scored.code) == (0, 0, 0, 0), (
        learned.said,
        tagged.said,
        facts.said,
        scored.said,
    )
    assert json.loads(facts.out)["longest"] == tokens
    assert json.loads(scored.out)["tokens"] == tokens
    assert max(learned.peak, tagged.peak) < BOUND


def test_what_is_read_in_parts_is_what_is_read_at_once(
    tmp_path: Path, encoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = trained(endless(tmp_path / "a.conll", 300), encoder, tmp_path / "model")
    sentences = list(formats.read(endless(tmp_path / "b.conll", 3000)))
    whole = next(Tagger.load(model).probabilities(sentences))
    states = next(Tagger.load(model).embeddings(sentences))
    monkeypatch.setattr("seqmix.tagger.network.PLACES", 300)

    assert next(Tagger.load(model).probabilities(sentences)) == pytest.approx(whole, abs=1e-5)
    assert next(Tagger.load(model).embeddings(sentences)) == pytest.approx(states, abs=1e-4)


@pytest.mark.parametrize("types", [1_500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_endless_types_are_read_and_scored_but_no_tagger_is_made_of_them(
    types: int, tmp_path: Path, encoder: str
) -> None:
    data, seqmix = (
        many_types(tmp_path / "train.conll", types),
        partial(command, apart=types > 10_000),
    )

    facts, scored = seqmix("info", data, "--json"), seqmix("evaluate", data, data, "--json")
    assert json.loads(facts.out)["spans"] == types
    assert json.loads(scored.out)["f1"] == 1
    for head in ("linear", "crf"):
        refused = seqmix(
            "train", data, "--out", tmp_path / "model", "--encoder", encoder, "--head", head
        )
        assert f"got {2 * types}" in refused.error and "column" in refused.error
        assert refused.peak < BOUND
    assert seqmix("convert", data, tmp_path / "out.jsonl").code == 0
    assert (
        seqmix(
            "augment",
            data,
            "--rate",
            "0.1",
            "--variant",
            "mention",
            "--out",
            tmp_path / "more.jsonl",
        ).peak
        < BOUND
    )


def test_the_most_tags_a_tagger_takes_are_still_decoded(tmp_path: Path, encoder: str) -> None:
    data = many_types(tmp_path / "train.conll", MAX_TAGS // 2)
    tagger = Tagger.load(trained(data, encoder, tmp_path / "model", "--limit", "5"))

    assert len(next(tagger.predict([s.unlabeled() for s in formats.read(data)]))) == 10
    with pytest.raises(TagError, match="at most 2000"):
        Tagger(encoder).start(TagSet.ordered(f"t{i}" for i in range(MAX_TAGS + 1)), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("letters", [100_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("write", [write_bert, write_roberta])
def test_a_token_of_endless_letters_is_a_token(letters: int, write: object, tmp_path: Path) -> None:
    data, encoder = long_token(tmp_path / "train.conll", letters), write(tmp_path / "encoder")  # type: ignore[operator]
    seqmix = partial(command, apart=letters > 1_000_000)

    learned = seqmix(
        "train", data, "--out", tmp_path / "model", "--encoder", encoder, "--set", "epochs=1"
    )
    tagged = seqmix("predict", tmp_path / "model", data, "--out", tmp_path / "out.conll")
    assert (learned.code, tagged.code) == (0, 0), (learned.said, tagged.said)
    assert [s.tokens for s in formats.read(tmp_path / "out.conll")] == [
        s.tokens for s in formats.read(data)
    ]
    assert max(learned.peak, tagged.peak) < BOUND
    (tmp_path / "raw.txt").write_text("x" * letters + "\nLena left\n")
    assert (
        seqmix(
            "predict", tmp_path / "model", tmp_path / "raw.txt", "--out", tmp_path / "raw.jsonl"
        ).code
        == 0
    )
    result = seqmix("init", tmp_path / "project", "--text", tmp_path / "raw.txt", "--tags", "PER")
    assert result.code == 0 and result.peak < BOUND


def test_no_sentences_are_no_sentences(
    tmp_path: Path, encoder: str, capfd: pytest.CaptureFixture[str]
) -> None:
    empty, good = tmp_path / "train.conll", tmp_path / "good.conll"
    empty.write_text("\n\n-DOCSTART- O\n\n")
    good.write_text(GOOD)
    model = trained(good, encoder, tmp_path / "model")

    assert (
        run(["info", str(empty)]) == run(["convert", str(empty), str(tmp_path / "out.jsonl")]) == 0
    )
    assert run(["predict", str(model), str(empty), "--out", str(tmp_path / "tagged.conll")]) == 0
    assert (tmp_path / "out.jsonl").read_text() == (tmp_path / "tagged.conll").read_text() == ""
    for name in ("dev", "test"):
        (tmp_path / f"{name}.conll").write_text(GOOD)
    for arguments, why in (
        (["train", str(empty), "--out", str(tmp_path / "m")], "no sentence here has labels"),
        (["evaluate", str(model), str(empty)], "no sentence here has labels"),
        (
            ["augment", str(empty), "--out", str(tmp_path / "a.jsonl")],
            "no sentence here has labels",
        ),
        (["simulate", "--data", str(tmp_path), "--out", str(tmp_path / "run")], "but there are 0"),
        (
            ["init", str(tmp_path / "p"), "--text", str(empty), "--tags", "PER"],
            "there is nothing to label",
        ),
    ):
        capfd.readouterr()
        assert run(arguments) == 2
        assert why in capfd.readouterr().err


@pytest.mark.parametrize("tag", ["O", "B-PER", "NOUN"])
@pytest.mark.parametrize("head", ["linear", "crf"])
def test_a_corpus_of_one_tag_is_trained_scored_and_simulated(
    tag: str, head: str, tmp_path: Path, encoder: str
) -> None:
    rows = [f"w{i}\t{tag}\nx{i}\t{tag}\n\n" for i in range(40)]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.conll").write_text("".join(rows))
    model = trained(tmp_path / "train.conll", encoder, tmp_path / "model", "--head", head)

    assert run(["evaluate", str(model), str(tmp_path / "test.conll")]) == 0
    settings = [
        f"tagger.encoder={encoder}",
        f"tagger.head={head}",
        "loop.seed_size=10",
        "loop.rounds=1",
        "query.size=5",
        "training.epochs=1",
    ]
    changes = [
        word for setting in [*settings, "augment.score_range=off"] for word in ("--set", setting)
    ]
    assert run(["simulate", "--data", str(tmp_path), "--out", str(tmp_path / "run"), *changes]) == 0


def test_two_sentences_with_one_id_are_refused_by_name(
    tmp_path: Path, encoder: str, capfd: pytest.CaptureFixture[str]
) -> None:
    line = '{"id": "twice", "tokens": ["Lena", "%s"], "ner_tags": ["B-PER", "O"]}\n'
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.jsonl").write_text(line % "left" + line % "came")
    data = str(tmp_path / "train.jsonl")
    for arguments in (
        ["train", data, "--out", str(tmp_path / "m"), "--encoder", encoder],
        ["evaluate", data, data],
        ["augment", data, "--out", str(tmp_path / "a.jsonl")],
        ["simulate", "--data", str(tmp_path), "--out", str(tmp_path / "run")],
        ["init", str(tmp_path / "p"), "--text", data, "--tags", "PER", "--labels", "drop"],
    ):
        capfd.readouterr()
        assert run(arguments) == 2, arguments
        message = capfd.readouterr().err
        assert "twice" in message and "ids must differ" in message and message.count("\n") <= 2


def test_nul_bytes_are_letters_like_any_other(tmp_path: Path, encoder: str) -> None:
    data = tmp_path / "train.conll"
    data.write_bytes(b"\0\tB-PER\nle\0ft\tO\n\0\0\tB-P\0R\n\n" + GOOD.encode())
    before = [(s.tokens, s.tags) for s in formats.read(data)]
    model = trained(data, encoder, tmp_path / "model")

    assert run(["predict", str(model), str(data), "--out", str(tmp_path / "out.conll")]) == 0
    assert run(["evaluate", str(model), str(data)]) == 0
    for name in ("out.jsonl", "out.json", "out.conllu", "brat"):
        format = {"brat": "brat", "out.conllu": "conllu"}.get(name)
        assert (
            run(
                [
                    "convert",
                    str(data),
                    str(tmp_path / name),
                    *(
                        ["--to", f"{format}:key=NER" if format == "conllu" else format]
                        if format
                        else []
                    ),
                ]
            )
            == 0
        )
        assert "".join(next(iter(formats.read(tmp_path / name))).tokens) == "".join(
            before[0][0]
        )  # brat holds no cut but our own
    assert [s.tokens for s in formats.read(tmp_path / "out.conll")] == [
        tokens for tokens, _ in before
    ]
    assert (
        run(
            [
                "init",
                str(tmp_path / "project"),
                "--text",
                str(data),
                "--tags",
                "PER",
                "--labels",
                "drop",
            ]
        )
        == 0
    )


@pytest.mark.parametrize(
    "name", ["jsonl-tokens", "jsonl-spans", "doccano", "prodigy", "argilla", "labelstudio"]
)
def test_half_a_character_is_refused_when_it_is_read(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = tmp_path / "good.conll"
    good.write_text(GOOD)
    data = tmp_path / ("data.json" if name in ("argilla", "labelstudio") else "data.jsonl")
    formats.write(formats.read(good), data, name)
    data.write_text(data.read_text().replace("Lena", "Len\\ud800"))

    for arguments in (
        ["info", str(data)],
        ["convert", str(data), str(tmp_path / "out.conll")],
        ["train", str(data), "--out", str(tmp_path / "m")],
    ):
        capfd.readouterr()
        assert run([*arguments, "--read", name]) == 2
        message = capfd.readouterr().err
        assert (
            "half of a surrogate pair" in message
            and str(data) in message
            and message.count("\n") == 1
        )
    assert not (tmp_path / "out.conll").exists()
