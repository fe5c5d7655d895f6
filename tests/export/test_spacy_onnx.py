"""A tagger exported to ONNX for spaCy gives the same spans where seqmix cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.tagger import Settings, Tagger
from tests.support import tiny

spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnxscript", reason="needs the extra onnx")
from spacy.tokens import Doc  # noqa: E402

from seqmix.export import spacy_onnx  # noqa: E402

LONG = Sentence("long", tuple(token for s in tiny.toy(40) for token in s.tokens))
WIDE = Sentence("wide", ("Lena", "x" * 3000, "lives", "in", "Oslo", "."))
SENTENCES = [*(sentence.unlabeled() for sentence in tiny.toy(24)), LONG.unlabeled(), WIDE]
ALONE = """
import json, sys
sys.modules["seqmix"] = None  # importing it fails
sys.path.insert(0, sys.argv[1])
import spacy
# where seqmix is not installed it has no entry points
spacy.registry._entry_point_factories.entry_points = False
import seqmix_component
from spacy.tokens import Doc

nlp = spacy.load(sys.argv[1])
docs = nlp.pipe((Doc(nlp.vocab, words=words) for words in json.load(sys.stdin)), batch_size=9)
print(json.dumps([[[e.start, e.end, e.label_] for e in doc.ents] for doc in docs]))
"""


@pytest.fixture(scope="module", params=["linear", "crf"])
def tagger(request, tmp_path_factory) -> Tagger:
    encoder = tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")
    settings = Settings(epochs=20, batch_size=4, lr=3e-3)
    return Tagger(encoder, request.param, settings).fit(tiny.toy(24), np.random.default_rng(0))


@pytest.fixture(scope="module")
def exported(tagger, tmp_path_factory) -> Path:
    """What the command writes."""
    folder = tmp_path_factory.mktemp("exports")
    tagger.save(folder / "ner")
    out = folder / "Names 2"
    words = ["export", str(folder / "ner"), "--to", "spacy-onnx:de", "--out", str(out)]
    assert run(words) == 0
    return out


def expected(tagger) -> list[list[list[object]]]:
    return [
        [[s.start, s.end, s.type] for s in spans(tagged.tags)]
        for tagged in tagger.predict(SENTENCES)
    ]


def marks(doc) -> list[list[object]]:
    return [[entity.start, entity.end, entity.label_] for entity in doc.ents]


def test_without_seqmix_the_spans_are_the_same_of_long_texts_too(tagger, exported):
    words = json.dumps([sentence.tokens for sentence in SENTENCES])

    command = [sys.executable, "-c", ALONE, str(exported)]
    ended = subprocess.run(command, input=words, capture_output=True, text=True, check=True)

    want = expected(tagger)
    assert json.loads(ended.stdout) == want and sum(map(len, want)) > 60


def test_where_seqmix_is_installed_nothing_needs_importing(tagger, exported):
    nlp = spacy.load(exported)
    unpacked = spacy.blank("de")
    unpacked.add_pipe("seqmix_onnx")
    unpacked.from_bytes(nlp.to_bytes())

    assert (nlp.lang, nlp.pipe_names, nlp.meta["name"]) == ("de", ["seqmix_onnx"], "names_2")
    assert not any("seqmix" in need for need in nlp.meta["requirements"])
    for loaded in (nlp, unpacked):
        docs = loaded.pipe(Doc(loaded.vocab, words=list(s.tokens)) for s in SENTENCES)
        assert [marks(doc) for doc in docs] == expected(tagger)
        assert loaded.get_pipe("seqmix_onnx").labels == ("LOC", "ORG", "PER")


def test_entities_that_are_there_stay_and_white_space_is_not_tagged(exported):
    nlp = spacy.load(exported)
    ruler = nlp.add_pipe("entity_ruler", first=True)
    ruler.add_patterns([{"label": "CITY", "pattern": "Oslo"}])

    doc = nlp("Mary  Smith lives in \n Oslo .")

    assert [(e.text, e.label_) for e in doc.ents] == [("Mary  Smith", "PER"), ("Oslo", "CITY")]
    assert [nlp(text).ents for text in ("", "  ")] == [(), ()]


def test_without_a_tagger_it_says_what_to_give():
    nlp = spacy.blank("en")
    nlp.add_pipe("seqmix_onnx")

    with pytest.raises(ValueError, match=r'config=\{"model": "ner.onnx"\}'):
        nlp("Lena")


def test_spacy_package_can_import_the_file_beside_a_pipeline(exported):
    """As `spacy package --code` does: without an entry in `sys.modules`."""
    from spacy.util import import_file

    source = exported / f"{spacy_onnx.MODULE}.py"
    import_file("code_of_a_package", source)

    assert "from seqmix" not in source.read_text(encoding="utf-8")
    assert "code_of_a_package" not in sys.modules
