"""What users of spaCy, Hugging Face and scikit-learn type first: it works, or says what to type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import seqmix
from seqmix.serve.project import create_project
from seqmix.serve.settings import ProjectSettings
from tests.support import tiny

TEXT = "Lena lives in Oslo."
NAMES = ["Lena", "Oslo"]
TAGS = ("B-PER", "O", "O", "B-LOC", "O")

WORKING = {
    "[e.text for e in tagger(TEXT)]": NAMES,
    "[e.label for e in tagger(TEXT)]": ["PER", "LOC"],
    "[(e.start, e.end) for e in tagger(TEXT)]": [(0, 4), (14, 18)],
    "all(0 < e.probability <= 1 for e in tagger(TEXT))": True,
    "[[e.text for e in found] for found in tagger([TEXT, TEXT])]": [NAMES, NAMES],
    "[e.text for e in tagger([['Lena', 'lives', 'in', 'Oslo', '.']])[0]]": NAMES,
    "[s.tags for s in tagger.predict([TEXT])]": [TAGS],
    "[s.tags for s in tagger.predict(TEXT)]": [TAGS],
    "next(tagger.probabilities([TEXT])).shape": (5, 7),
    "fresh().fit(data).labels": ("LOC", "ORG", "PER"),
    "fresh().fit(data, seed=3).labels": ("LOC", "ORG", "PER"),
    "fresh().fit(data, np.random.default_rng(3)).labels": ("LOC", "ORG", "PER"),
    "fresh().fit(zip(tokens, tags)).labels": ("LOC", "ORG", "PER"),
    "fresh().fit(seqmix.read(folder / 'train.conll')).labels": ("LOC", "ORG", "PER"),
    "tagger.score(data).f1 > 0.5": True,
    "'labels=' in repr(tagger) and 'not trained' in repr(fresh())": True,
    "tagger.save(folder / 'ner') or seqmix.Tagger.load(folder / 'ner')(TEXT) == tagger(TEXT)": True,
    "seqmix.load(ner)(TEXT) == tagger(TEXT)": True,
    "repr(tagger.score(data)).startswith('Score(f1=')": True,
    "seqmix.Sentence.from_text(TEXT).tokens": ("Lena", "lives", "in", "Oslo", "."),
    "[TEXT[a:b] for a, b in seqmix.tokenize(TEXT)][:2]": ["Lena", "lives"],
    "[e.text for e in seqmix.Sentence.from_text(TEXT, entities=[(0, 4, 'PER')]).entities()]": [
        "Lena"
    ],
    "len(list(seqmix.read(seqmix.to_pandas(data))))": 8,
    "len(list(seqmix.read(seqmix.to_dataset(data))))": 8,
    "seqmix.Project(folder / 'names').tags": ("PER",),
    "len(seqmix.POLICIES) > 10": True,
}
REFUSED = {
    "fresh().fit('train.conll')": "fit(seqmix.read('train.conll')) learns from it",
    "fresh().fit(tokens, tags)": "fit(zip(tokens, tags))",
    "fresh().fit([('Lena left', {'entities': [(0, 4, 'PER')]})])": "Sentence.from_text(text, ent",
    "fresh()('Lena left')": "call fit first, or load one",
    "tagger(None)": 'such as ["Lena left."]; got None',
    "tagger.evaluate(data)": "type tagger.score(sentences)",
    "tagger.predict_proba([TEXT])": "type tagger.probabilities(sentences)",
    "tagger.pipe([TEXT])": "type tagger(texts) or tagger.predict(texts)",
    "tagger.to('cuda')": "type Tagger.load(folder, device)",
    "tagger.nothing": "'Tagger' object has no attribute 'nothing'",
    "seqmix.load('nowhere')": "nowhere is not a tagger",
    "seqmix.load(['ner'])": "expected the name of a tagger",
    "seqmix.load('x.onnx', 'cuda')": "runs on the CPU; got the device cuda",
    "seqmix.pipeline('ner')": "type seqmix.load(folder)",
    "seqmix.Tagger.load('x.onnx')": "seqmix.load('x.onnx')",
    "seqmix.Tagger.load('hf:ner')": "seqmix.load('hf:ner')",
    "seqmix.Tagger.from_pretrained('ner')": 'type seqmix.load(folder), or seqmix.load("hf:NAME")',
    "seqmix.Sentence.from_text(TEXT, entities=[(0, 3, 'PER')])": 'misaligned="expand" or "drop"',
    "seqmix.PolicySpec('nte')": "a policy is a function; got 'nte'",
    "seqmix.from_pandas(data)": "type seqmix.read(table)",
    "seqmix.from_dataset(data)": "type seqmix.read(dataset)",
}


@pytest.fixture(scope="module")
def names(trained, encoder, tmp_path_factory) -> dict[str, object]:
    """What the calls refer to."""
    folder: Path = tmp_path_factory.mktemp("calls")
    data = tiny.toy(8)
    seqmix.write(data, folder / "train.conll")
    trained.save(folder / "loaded")
    create_project(
        folder / "names", [seqmix.Sentence.from_text(TEXT)], ProjectSettings("names", ("PER",))
    )
    return {
        "np": np,
        "seqmix": seqmix,
        "TEXT": TEXT,
        "tagger": trained,
        "fresh": lambda: seqmix.Tagger(encoder, settings=seqmix.Settings(steps=1)),
        "data": data,
        "tokens": [list(sentence.tokens) for sentence in data],
        "tags": [list(sentence.tags) for sentence in data],
        "folder": folder,
        "ner": folder / "loaded",
    }


@pytest.mark.parametrize("call", WORKING)
def test_it_works(call, names):
    if "to_dataset" in call:
        pytest.importorskip("datasets", reason="needs the extra hf")
    if "to_pandas" in call:
        pytest.importorskip("pandas", reason="needs the extra hf")

    assert eval(call, names) == WORKING[call]


@pytest.mark.parametrize("call", REFUSED)
def test_it_says_what_to_type(call, names):
    with pytest.raises((seqmix.SeqMixError, AttributeError)) as raised:
        eval(call, names)

    assert REFUSED[call] in str(raised.value)
