"""A tagger exported to ONNX predicts what the tagger does, without torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import seqmix
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError, SeqMixError
from seqmix.export.onnx import Checked, export_onnx
from seqmix.onnx_runtime.model_file import describe_model
from seqmix.onnx_runtime.tagger import OnnxTagger
from seqmix.tagger import Settings, Tagger
from tests.support import ROOT, tiny

LONG = Sentence("long", tuple(token for s in tiny.toy(40) for token in s.tokens))
TEXTS = [*(sentence.unlabeled() for sentence in tiny.toy(24)), LONG, Sentence("empty", ())]


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")


def train(encoder: str, head: str) -> Tagger:
    settings = Settings(epochs=6, batch_size=4)
    return Tagger(encoder, head, settings, "cpu").fit(tiny.toy(), np.random.default_rng(0))


@pytest.fixture(scope="module", params=["linear", "crf"])
def tagger(request, bert) -> Tagger:
    return train(bert, request.param)


@pytest.fixture(scope="module")
def exported(tagger, tmp_path_factory) -> tuple[Path, Checked]:
    file = tmp_path_factory.mktemp("onnx") / "names.onnx"
    return file, export_onnx(tagger, file, test=tiny.toy(12))


@pytest.fixture(scope="module")
def runner(exported) -> OnnxTagger:
    return OnnxTagger(exported[0], threads=2)


def test_the_check_compared_every_tag_and_f1(exported):
    checked = exported[1]

    assert checked.differing == 0 and checked.tokens > 1000 and 0 < checked.largest < 1e-4
    assert checked.f1 == checked.original


@pytest.mark.parametrize("options", [{}, {"legal": False}, {"keep": True}])
def test_the_tags_are_the_same(tagger, runner, options):
    texts = [*TEXTS, tiny.toy(1)[0].with_tags((None, None, "B-PER", None, None))]

    assert [*runner.predict(texts, **options)] == [*tagger.predict(texts, **options)]


def test_the_best_paths_and_their_probabilities_are_the_same(tagger, runner):
    ours = runner.best_paths(TEXTS, n=3, by_token=True)
    for a, b in zip(ours, tagger.best_paths(TEXTS, n=3, by_token=True), strict=True):
        assert [path.tags for path in a] == [path.tags for path in b]
        assert [path.probability for path in a] == pytest.approx(
            [path.probability for path in b], abs=1e-4
        )
        assert np.array([p.by_token for p in a]) == pytest.approx(
            np.array([p.by_token for p in b]), abs=1e-4
        )


@pytest.mark.parametrize("measure", ["entropy", "least", "margin"])
def test_probabilities_and_measures_are_the_same(tagger, runner, measure):
    for a, b in zip(runner.probabilities(TEXTS), tagger.probabilities(TEXTS), strict=True):
        assert a == pytest.approx(b, abs=1e-4) and a.dtype == b.dtype and a.shape == b.shape
    assert [*runner.unsure(TEXTS, measure)] == pytest.approx(
        [*tagger.unsure(TEXTS, measure)], rel=1e-3, abs=1e-3
    )


def test_text_gives_entities_as_from_a_tagger(tagger, runner):
    texts = ["Lena lives in Oslo.", ["Ada", "left", "Rome"]]
    expected = seqmix.Tagger.__call__(tagger, texts)

    assert [[(e.text, e.label, e.start) for e in found] for found in runner(texts)] == [
        [(e.text, e.label, e.start) for e in found] for found in expected
    ]
    assert len(runner(texts[0])) == len(expected[0]) and runner.labels == ("LOC", "ORG", "PER")
    assert "crf" in repr(runner) or "linear" in repr(runner)


def test_what_the_file_does_not_hold_is_refused_in_one_line(runner):
    for refused in (runner.embeddings, runner.save, lambda _: runner.int8()):
        with pytest.raises(SeqMixError, match="ONNX"):
            refused([])


def test_a_roberta_whose_positions_start_elsewhere_is_the_same(tmp_path):
    tagger = train(tiny.write_roberta(tmp_path / "roberta"), "linear")

    checked = export_onnx(tagger, tmp_path / "roberta.onnx")

    assert checked.differing == 0 and checked.largest < 1e-4


def test_the_commands_run_it_without_torch(tagger, exported, tmp_path):
    formats.write(tiny.toy(12), tmp_path / "test.conll")
    code = """
import sys
sys.modules["torch"] = sys.modules["transformers"] = None  # importing them fails
from seqmix.app.cli import run
model, data, out = sys.argv[1:]
assert run(["predict", model, data, "--out", out, "--confidence"]) == 0
assert run(["predict", model, data, "--out", out + ".soft.jsonl", "--soft"]) == 0
assert run(["evaluate", model, data, "--json"]) == 0
assert run(["info", model, "--json"]) == 0
assert run(["predict", model, data, "--out", out, "--device", "cuda"]) == 2
"""
    out = tmp_path / "out.jsonl"
    words = [sys.executable, "-c", code, exported[0], tmp_path / "test.conll", out]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr
    scores, facts = map(json.loads, ended.stdout.splitlines())
    assert scores["f1"] == pytest.approx(exported[1].f1)
    assert facts["tags"] == list(tagger.tags) and facts["precision"] == "float32"
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    best = [paths[0] for paths in tagger.best_paths(s.unlabeled() for s in tiny.toy(12))]
    assert [tuple(row["ner_tags"]) for row in rows] == [path.tags for path in best]
    assert [row["probability"] for row in rows] == pytest.approx(
        [path.probability for path in best], abs=1e-4
    )


def test_the_example_gives_the_same_tags_without_seqmix(tagger, exported):
    example = ROOT / "examples" / "onnx_predict.py"
    code = """
import runpy, sys
sys.modules["seqmix"] = sys.modules["torch"] = sys.modules["transformers"] = None
file = sys.argv.pop(1)
runpy.run_path(file, run_name="__main__")
"""
    texts = [" ".join(sentence.tokens) for sentence in tiny.toy(24)]
    words = [sys.executable, "-c", code, example, exported[0]]
    ended = subprocess.run(
        words, input="\n".join(texts), capture_output=True, text=True, check=True
    )

    assert ended.stdout.splitlines() == [
        " ".join(f"{token}/{tag}" for token, tag in zip(s.tokens, s.tags, strict=True))
        for s in tagger.predict(sentence.unlabeled() for sentence in tiny.toy(24))
    ]
    assert len([line for line in example.read_text().splitlines() if line]) <= 20


def test_int8_says_what_it_changed(bert, tmp_path, capsys):
    from seqmix.app.cli import run

    train(bert, "crf").save(tmp_path / "ner")
    formats.write(tiny.toy(12), tmp_path / "test.conll")
    file = tmp_path / "int8.onnx"
    words = ["export", str(tmp_path / "ner"), "--to", "onnx-int8", "--out", str(file)]

    assert run([*words, "--test", str(tmp_path / "test.conll")]) == 0

    said = capsys.readouterr().err
    assert "differ from the tagger's" in said and "the tagger has" in said
    assert describe_model(file)["precision"] == "int8"
    assert b"MatMulInteger" in file.read_bytes()


@pytest.mark.parametrize("at", [1000, -3000, -4])
def test_a_file_with_a_flipped_bit_is_refused(exported, tmp_path, at):
    content = bytearray(exported[0].read_bytes())
    content[at] ^= 1
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(content)

    with pytest.raises(ModelError, match="damaged"):
        OnnxTagger(damaged)


def test_other_files_are_refused_in_one_line(tmp_path):
    (tmp_path / "other.onnx").write_bytes(b"\x08\x07 something else")

    with pytest.raises(ModelError, match=r"not a tagger .* --to onnx"):
        OnnxTagger(tmp_path / "other.onnx")
    with pytest.raises(ModelError, match="No such file"):
        OnnxTagger(tmp_path / "missing.onnx")


def test_an_export_that_tags_otherwise_is_an_error_and_leaves_no_file(bert, tmp_path, monkeypatch):
    before = OnnxTagger._scores

    def shifted(self, sentences):
        scores, ends = before(self, sentences)
        return scores + np.arange(len(self.tags)) * 5, ends

    monkeypatch.setattr(OnnxTagger, "_scores", shifted)

    with pytest.raises(ModelError, match="differ"):
        export_onnx(train(bert, "linear"), tmp_path / "wrong.onnx")
    assert list(tmp_path.iterdir()) == []


def test_an_untrained_tagger_cannot_be_exported(bert, tmp_path):
    with pytest.raises(ModelError, match="not trained"):
        export_onnx(Tagger(bert), tmp_path / "none.onnx")
