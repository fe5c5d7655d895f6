"""A tagger exported for Hugging Face gives the same tags without seqmix."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from seqmix.data.samples import sample
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, ModelError
from seqmix.export.decode import decode
from seqmix.export.hf import COUNTED_ON, export_hf, transitions
from seqmix.tagger import Settings, Tagger
from tests.support import tiny

HEADS = ("linear", "crf")
FILES = ("config.json", "model.safetensors", "transitions.json", "decode.py", "README.md")
ALONE = """
import json, sys
sys.modules["seqmix"] = None  # importing it fails
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer
sys.path.insert(0, sys.argv[1])
from decode import decode

model = AutoModelForTokenClassification.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
chain = json.load(open(sys.argv[1] + "/transitions.json"))
for words in json.load(sys.stdin):
    batch = tokenizer(words, is_split_into_words=True, return_tensors="pt")
    firsts = [batch.word_ids().index(i) for i in range(len(words))]
    with torch.no_grad():
        scores = model(**batch).logits[0, firsts].double().numpy()
    print(json.dumps(decode(scores, chain)))
"""


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoders") / "bert")


@pytest.fixture(scope="module", params=HEADS)
def tagger(request, encoder) -> Tagger:
    settings = Settings(epochs=3, batch_size=4)
    return Tagger(encoder, request.param, settings).fit(tiny.toy(24), np.random.default_rng(0))


@pytest.fixture(scope="module")
def exported(tagger, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exports") / "names"
    export_hf(tagger, folder, tiny.toy(12))
    return folder


def test_without_seqmix_the_tags_are_the_same(tagger, exported):
    sentences = [sentence.unlabeled() for sentence in tiny.toy(24)]
    expected = [list(sentence.tags) for sentence in tagger.predict(sentences)]
    words = json.dumps([list(sentence.tokens) for sentence in sentences])

    command = [sys.executable, "-c", ALONE, str(exported)]
    done = subprocess.run(command, input=words, capture_output=True, text=True, check=True)

    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


def test_the_pipeline_loads_it_with_names_of_its_tags(tagger, exported):
    from transformers import pipeline

    tag = pipeline("token-classification", model=str(exported), aggregation_strategy="simple")

    assert tuple(tag.model.config.id2label.values()) == tagger.tags
    assert isinstance(tag("Lena lives in Oslo"), list)


def test_transformers_4_finds_the_class_of_the_tokenizer(exported):
    config = json.loads((exported / "tokenizer_config.json").read_text(encoding="utf-8"))

    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert "is_local" not in config


def test_the_folder_has_what_it_needs_and_the_card_has_measured_figures(exported):
    assert all((exported / name).is_file() for name in FILES)
    card = (exported / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: token-classification" in card
    assert "12 sentences" in card
    assert "tags (" in card and "differ between the two" in card


def test_the_code_on_the_card_runs_without_seqmix_and_gives_the_tags(tagger, exported):
    card = (exported / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", card, re.S)
    code = "import sys; sys.modules['seqmix'] = None\n" + "\n".join(blocks)
    words = ("Lena", "Berg", "left", "Oslo", ".")
    (expected,) = tagger.predict([Sentence("a", words)])

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=exported.parent,
        capture_output=True,
        text=True,
        check=True,
    )

    assert len([line for line in blocks[1].splitlines() if line]) == 10
    printed = json.loads(done.stdout.splitlines()[-1])
    assert printed == [[*pair] for pair in zip(words, expected.tags, strict=True)]


def test_without_labels_the_card_counts_tags_on_the_sample(tagger, tmp_path):
    measured = export_hf(tagger, tmp_path / "names")

    card = (tmp_path / "names" / "README.md").read_text(encoding="utf-8")
    sentences = sample(COUNTED_ON)
    assert (measured.sentences, measured.with_decoder) == (len(sentences), None)
    assert measured.tokens == sum(map(len, sentences))
    assert f"{measured.differing:,} of {measured.tokens:,} tags (" in card
    assert f"on the {len(sentences)} sentences of `{COUNTED_ON}`" in card


def test_the_hub_reads_the_card(tagger, exported):
    from huggingface_hub import ModelCard

    about = ModelCard.load(exported / "README.md").data

    assert (about.library_name, about.pipeline_tag) == ("transformers", "token-classification")
    assert about.tags == ["seqmix"]


def test_the_decoder_never_breaks_the_tag_scheme(tagger):
    chain = transitions(tagger)
    scores = np.random.default_rng(0).normal(size=(200, len(tagger.tags)))

    tags = decode(scores, chain)

    for before, after in zip(["O", *tags], tags, strict=False):
        assert not after.startswith("I-") or before[2:] == after[2:]


def test_the_decoder_finds_the_best_of_all_paths():
    chain = {
        "tags": ["a", "b"],
        "start": [0, 1],
        "end": [0.5, 0],
        "transitions": [[0.2, -1], [0, 2]],
    }
    rng = np.random.default_rng(1)
    for _ in range(20):
        scores = rng.normal(size=(4, 2))
        paths = np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T

        def total(path, scores=scores):
            moves = sum(chain["transitions"][i][j] for i, j in pairwise(path))
            return (
                chain["start"][path[0]]
                + chain["end"][path[-1]]
                + moves
                + sum(scores[t, tag] for t, tag in enumerate(path))
            )

        best = max(paths.tolist(), key=total)
        assert decode(scores, chain) == [chain["tags"][tag] for tag in best]


def test_sentences_without_all_labels_cannot_measure_it(tagger, tmp_path):
    with pytest.raises(DataError, match="labeled completely"):
        export_hf(tagger, tmp_path / "out", [Sentence("a", ("Lena",))])

    assert not (tmp_path / "out").exists()


def test_an_untrained_tagger_cannot_be_exported(encoder, tmp_path):
    with pytest.raises(ModelError, match="not trained"):
        export_hf(Tagger(encoder), tmp_path / "out")


def test_the_command_exports_a_trained_tagger_and_measures_it(tagger, tmp_path, capsys):
    from seqmix.app.cli import run
    from seqmix.data import formats

    tagger.save(tmp_path / "ner")
    formats.write(tiny.toy(12), tmp_path / "test.conll")
    out = tmp_path / "names"

    options = ["--out", str(out), "--test", str(tmp_path / "test.conll")]
    assert run(["export", str(tmp_path / "ner"), "--to", "hf", *options]) == 0

    assert "with its decode.py" in capsys.readouterr().err
    assert all((out / name).is_file() for name in FILES)
    assert run(["export", str(tmp_path / "ner"), "--out", str(out)]) == 2
    assert "--to hf" in capsys.readouterr().err
