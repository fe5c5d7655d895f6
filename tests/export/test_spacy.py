"""A tagger as a spaCy component: the same spans and tokens, and it travels with the pipeline."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.errors import ModelError
from seqmix.tagger import Settings, Tagger
from tests.support import tiny

spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
from spacy.tokens import Doc  # noqa: E402

from seqmix.export.spacy import export_spacy  # noqa: E402

ROOT = Path(__file__).parents[2]
SENTENCES = [sentence.unlabeled() for sentence in tiny.toy(24)]


@pytest.fixture(scope="module", params=["linear", "crf"])
def tagger(request, tmp_path_factory) -> Tagger:
    encoder = tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")
    settings = Settings(epochs=20, batch_size=4, lr=3e-3)
    return Tagger(encoder, request.param, settings).fit(tiny.toy(24), np.random.default_rng(0))


@pytest.fixture(scope="module")
def model(tagger, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("taggers") / "ner"
    tagger.save(folder)
    return folder


@pytest.fixture
def nlp(model):
    nlp = spacy.blank("en")
    nlp.add_pipe("seqmix", config={"model": str(model)})
    return nlp


def doc_of(nlp, tokens) -> Doc:
    return Doc(nlp.vocab, words=list(tokens))


def marks(doc) -> list[tuple[int, int, str]]:
    return [(entity.start, entity.end, entity.label_) for entity in doc.ents]


def expected(tagger, sentences) -> list[list[tuple[int, int, str]]]:
    return [
        [(s.start, s.end, s.type) for s in spans(tagged.tags)]
        for tagged in tagger.predict(sentences)
    ]


def test_the_same_tokens_have_the_same_spans_one_by_one_and_in_batches(nlp, tagger):
    want = expected(tagger, SENTENCES)

    docs = list(nlp.pipe((doc_of(nlp, s.tokens) for s in SENTENCES), batch_size=7))

    assert [marks(doc) for doc in docs] == want
    assert [marks(nlp(doc_of(nlp, s.tokens))) for s in SENTENCES] == want
    assert sum(map(len, want)) > 24


def test_spans_have_their_scores(nlp, tagger):
    doc = nlp(doc_of(nlp, SENTENCES[0].tokens))

    group = doc.spans["seqmix"]
    ((best,),) = tagger.best_paths(SENTENCES[:1], by_token=True)
    scores = [min(best.by_token[s.start : s.end]) for s in spans(best.tags)]
    assert [(s.start, s.end, s.label_) for s in group] == marks(doc)
    assert group.attrs["scores"] == pytest.approx(scores, abs=1e-5)


def test_white_space_that_spacy_makes_tokens_of_is_not_shown_to_the_tagger(nlp, tagger):
    doc = nlp("Mary  Smith lives in \n Oslo .")

    tokens = ("Mary", "Smith", "lives", "in", "Oslo", ".")
    (want,) = expected(tagger, [Sentence("a", tokens)])
    visible = [token.i for token in doc if not token.is_space]
    assert marks(doc) == [(visible[a], visible[b - 1] + 1, type) for a, b, type in want] != []
    assert [marks(doc) for doc in nlp.pipe(["", "  "])] == [[], []]


def test_a_doc_with_sentences_is_tagged_sentence_by_sentence(model, tagger):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("seqmix", config={"model": str(model)})
    parts = [s for s in SENTENCES[:8] if s.tokens[-1] == "."]

    doc = nlp(doc_of(nlp, [token for s in parts for token in s.tokens]))

    edges = np.cumsum([0, *(len(s) for s in parts)])
    want = expected(tagger, parts)
    assert marks(doc) == [
        (e + a, e + b, t) for e, all in zip(edges, want, strict=False) for a, b, t in all
    ]


def test_entities_that_are_there_stay_and_what_overlaps_is_counted_and_said_once(model, tagger):
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "CITY", "pattern": name} for name in ("Oslo", "Rome")])
    component = nlp.add_pipe("seqmix", config={"model": str(model)})

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        docs = list(nlp.pipe(doc_of(nlp, s.tokens) for s in SENTENCES))

    left_out = sum(
        doc[a].text in ("Oslo", "Rome")
        for doc, s in zip(docs, expected(tagger, SENTENCES), strict=True)
        for a, _, _ in s
    )
    assert component.counts == {"overlapping": left_out} and left_out > 1
    assert len([w for w in caught if "overlap" in str(w.message)]) == 1
    assert any(entity.label_ == "CITY" for doc in docs for entity in doc.ents)


def test_the_tagger_travels_with_the_pipeline(nlp, model, tagger, tmp_path):
    moved = tmp_path / "moved"
    model.rename(moved)  # what the config names is gone
    try:
        with pytest.raises(ModelError, match="is not a tagger"):
            nlp("Lena")
    finally:
        moved.rename(model)
    nlp.to_disk(tmp_path / "pipeline")
    model.rename(moved)
    try:
        again = spacy.load(tmp_path / "pipeline")
        unpacked = spacy.blank("en")
        unpacked.add_pipe("seqmix")
        unpacked.from_bytes(again.to_bytes())
    finally:
        moved.rename(model)
    want = expected(tagger, SENTENCES)
    for loaded in (again, unpacked):
        assert [marks(loaded(doc_of(loaded, s.tokens))) for s in SENTENCES] == want
    assert again.meta["labels"]["seqmix"] == ["LOC", "ORG", "PER"]
    assert again.meta["requirements"] == ["seqmix>=0.1.0,<0.2.0"]


def test_bytes_that_name_files_elsewhere_are_refused(nlp):
    import srsly

    component = nlp.get_pipe("seqmix")
    for name in ("../evil", "/tmp/evil", "..", ""):
        with pytest.raises(ModelError, match="plain name"):
            component.from_bytes(srsly.msgpack_dumps({name: b"x"}))


def test_without_a_tagger_it_says_what_to_give():
    nlp = spacy.blank("en")
    nlp.add_pipe("seqmix")

    with pytest.raises(ModelError, match=re.escape('config={"model": FOLDER}')):
        nlp("Lena")


def test_spacy_measures_it_as_it_measures_its_own(nlp):
    from spacy.training import Example

    gold = []
    for sentence in tiny.toy(24):
        want = [(s.start, s.end, s.type) for s in spans([str(tag) for tag in sentence.tags])]
        reference = doc_of(nlp, sentence.tokens)
        reference.ents = [spacy.tokens.Span(reference, a, b, label=type) for a, b, type in want]
        gold.append(Example(doc_of(nlp, sentence.tokens), reference))

    assert nlp.evaluate(gold)["ents_f"] > 0.9


def test_where_seqmix_is_installed_spacy_finds_it_by_itself(tagger, tmp_path):
    """The entry point of pyproject.toml in a process that never imports seqmix by name."""
    if tagger.head == "crf":
        pytest.skip("a process takes seconds, and the head makes no difference here")
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    installed = tmp_path / "site" / "seqmix-0.1.0.dist-info"
    installed.mkdir(parents=True)
    lines = [
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in e.items())
        for group, e in entries.items()
    ]
    (installed / "entry_points.txt").write_text("\n".join(lines))
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: seqmix\nVersion: 0.1.0\n")
    export_spacy(tagger, tmp_path / "Names 2", "de")
    code = (
        "import json, sys, spacy; nlp = spacy.load(sys.argv[1]); doc = nlp('Lena lives in Oslo .');"
        "spans = [[e.start, e.end, e.label_] for e in doc.ents];"
        "print(json.dumps([nlp.meta['name'], nlp.lang, spans]))"
    )

    path = os.pathsep.join([str(installed.parent), str(ROOT / "src")])
    command = [sys.executable, "-c", code, str(tmp_path / "Names 2")]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )

    (want,) = expected(tagger, [Sentence("a", ("Lena", "lives", "in", "Oslo", "."))])
    assert json.loads(ended.stdout) == ["names_2", "de", [list(mark) for mark in want]]


def test_a_language_that_spacy_does_not_know_is_named(tagger, tmp_path):
    with pytest.raises(ModelError, match="a code that spaCy knows, such as en, de or xx; got 'qq'"):
        export_spacy(tagger, tmp_path / "out", "qq")


def test_the_command_writes_a_pipeline_with_its_scores(model, tmp_path, capsys):
    formats.write(tiny.toy(12), tmp_path / "test.conll")
    out, options = tmp_path / "names", ["--test", str(tmp_path / "test.conll")]

    assert run(["export", str(model), "--to", "spacy:de", "--out", str(out), *options]) == 0

    assert "spacy.load opens it" in capsys.readouterr().err
    nlp = spacy.load(out)
    assert (nlp.lang, nlp.pipe_names) == ("de", ["seqmix"])
    assert 0.5 < nlp.meta["performance"]["ents_f"] <= 1
    assert run(["export", str(model), "--to", "hf:de", "--out", str(out)]) == 2
    assert "--to spacy" in capsys.readouterr().err
