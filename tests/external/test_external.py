"""Models of Hugging Face and spaCy as taggers: they tag our tokens, with our names, and suggest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForTokenClassification

from seqmix.app.cli import run
from seqmix.app.commands.label.labelstudio import build_backend
from seqmix.app.taggers import load_tagger
from seqmix.app.trainer_process import build_parts
from seqmix.data import formats
from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.errors import ConfigError, ModelError, TagError
from seqmix.external.hf import LabelMap
from seqmix.external.names import ExternalName, is_external, parse_external
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.query.policies import POLICIES
from seqmix.serve.project import open_project
from seqmix.serve.trainer.trainer import Trainer
from tests.support import tiny
from tests.support.stores import suggestion_of, unlabeled

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory) -> Path:
    """A BERT for token classification of random weights."""
    folder = tmp_path_factory.mktemp("models") / "bert-ner"
    tiny.write_bert(folder)
    config = BertConfig.from_pretrained(folder, id2label=dict(enumerate(LABELS)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        model = BertForTokenClassification(config).eval()
        with torch.no_grad():  # centered, so that every label occurs
            model.classifier.weight.normal_(std=2.0)
            model.classifier.bias -= model(torch.arange(5, 60)[None]).logits.mean((0, 1))
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Path:
    spacy = pytest.importorskip("spacy", reason="needs the extra spacy")
    nlp = spacy.blank("en")
    patterns = [("PERSON", "Lena"), ("PERSON", "Mary Smith"), ("GPE", "New York"), ("GPE", "$5")]
    nlp.add_pipe("entity_ruler").add_patterns(
        [{"label": label, "pattern": pattern} for label, pattern in patterns]
    )
    folder = tmp_path_factory.mktemp("models") / "ruler"
    nlp.to_disk(folder)
    return folder


def test_names_are_parsed_and_wrong_ones_say_what_they_must_look_like():
    name = parse_external("hf:some/model:PER=person,ORG")

    assert name == ExternalName("hf", "some/model", {"PER": "person", "ORG": "ORG"})
    assert (name.renamed("PER"), name.renamed("LOC")) == ("person", None)
    assert parse_external(str(name)) == name
    assert parse_external("spacy:en_core_web_sm").renamed("GPE") == "GPE"
    assert not is_external("hf") and not is_external("models/ner") and is_external("hf:x")
    for wrong in ("hf:", "spacy::PER=x", "hf:x:", "hf:x:=y"):
        with pytest.raises(ConfigError, match="must look like hf:FOLDER"):
            parse_external(wrong)


def test_a_hugging_face_model_gives_each_word_the_label_of_its_first_piece(classifier):
    model = BertForTokenClassification.from_pretrained(classifier).eval()
    tokenizer = tiny.bert_tokenizer()
    sentences = [sentence.unlabeled() for sentence in tiny.toy(24)]

    probabilities = list(load_tagger(f"hf:{classifier}", "cpu").probabilities(sentences))

    seen = set()
    for sentence, probs in zip(sentences, probabilities, strict=True):
        batch = tokenizer(list(sentence.tokens), is_split_into_words=True, return_tensors="pt")
        firsts = [batch.word_ids().index(i) for i in range(len(sentence))]
        with torch.no_grad():
            scores = model(batch.input_ids, batch.attention_mask).logits[0, firsts]
        expected = torch.softmax(scores, 1).numpy()
        order = [LABELS.index(tag) for tag in ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")]
        outside = probs[:, 0]
        assert outside == pytest.approx(expected[:, 0], abs=1e-5)
        # a span that the model opens with I- is written with B-, so both together stay the same
        for a, b in ((1, 3), (2, 4)):
            both = expected[:, [order[a], order[b]]].sum(1)
            assert probs[:, [a, b]].sum(1) == pytest.approx(both, abs=1e-5)
        seen.update(LABELS[i] for i in expected.argmax(1))
    assert len(seen) >= 3


def test_its_paths_are_legal_and_its_types_have_our_names(classifier):
    tagger = load_tagger(f"hf:{classifier}:PER=person", "cpu")
    every = load_tagger(f"hf:{classifier}", "cpu")
    sentences = [*(s.unlabeled() for s in tiny.toy(24)), Sentence("empty", ())]

    assert tagger.tag_set.tags == ("O", "B-person", "I-person")
    paths = [best for (best,) in tagger.best_paths(sentences, by_token=True)]
    for path, sentence, full in zip(paths, sentences, every.predict(sentences), strict=True):
        assert is_legal(path.tags) and len(path.tags) == len(path.by_token) == len(sentence)
        persons = [(s.start, s.end) for s in spans(full.tags) if s.type == "PER"]
        assert [(s.start, s.end) for s in spans(path.tags)] == persons
        assert path.probability == pytest.approx(np.prod(path.by_token))
    assert sum(tag != "O" for path in paths for tag in path.tags) > 0


def test_a_sentence_longer_than_the_model_reads_is_tagged_whole(classifier):
    words = tuple(word for sentence in tiny.toy(24) for word in sentence.tokens)

    (tagged,) = load_tagger(f"hf:{classifier}", "cpu").predict([Sentence("long", words)])

    assert len(words) > 64 and len(tagged.tags) == len(words)


@pytest.mark.parametrize(
    ("labels", "best", "expected"),
    [
        (("O", "I-PER", "B-PER"), [1, 1, 2, 0], ["B-PER", "I-PER", "B-PER", "O"]),  # IOB1
        (("O", "B-X", "I-X", "E-X", "S-X"), [4, 4, 1, 3, 4], ["B-X", "B-X", "B-X", "I-X", "B-X"]),
        (("O", "PER", "LOC"), [1, 1, 2, 0, 1], ["B-PER", "I-PER", "B-LOC", "O", "B-PER"]),
        (("NOUN", "VERB"), [0, 0, 1], ["NOUN", "NOUN", "VERB"]),
    ],
)
def test_labels_of_any_scheme_become_bio_tags(labels, best, expected):
    probs = np.full((len(best), len(labels)), 0.1, dtype=np.float32)
    probs[range(len(best)), best] += 1 - 0.1 * len(labels)
    meaning = LabelMap(ExternalName("hf", "x"), labels)

    tags, rows = meaning.tagged(probs)

    assert list(tags) == expected
    assert rows.sum(axis=1) == pytest.approx(1)
    assert [meaning.tag_set.tags[i] for i in rows.argmax(axis=1)] == expected


def test_what_is_no_token_classifier_or_has_no_mapped_type_is_refused(classifier, tmp_path):
    with pytest.raises(ModelError, match=r"must be one for token classification; .*classifier"):
        load_tagger(f"hf:{tiny.write_bert(tmp_path / 'bert')}", "cpu")
    with pytest.raises(TagError, match="none of the types that it maps; its types are LOC, PER"):
        load_tagger(f"hf:{classifier}:Person=person", "cpu")
    with pytest.raises(ModelError, match="cannot be saved"):
        load_tagger(f"hf:{classifier}", "cpu").save(tmp_path)


def test_spacy_entities_are_aligned_with_our_tokens_by_characters(pipeline):
    tagger = load_tagger(f"spacy:{pipeline}:PERSON=PER,GPE=LOC")
    texts = ["Mary Smith  left New York.", "Lena paid $5", "nobody", ""]
    sentences = [Sentence.from_text(text, str(i)) for i, text in enumerate(texts)]

    tagged = list(tagger.predict(sentences))

    found = [[(s.start, s.end, s.type) for s in spans(sentence.tags)] for sentence in tagged]
    assert found == [[(0, 2, "PER"), (3, 5, "LOC")], [(0, 1, "PER"), (2, 4, "LOC")], [], []]
    assert not tagger.counts


def test_spacy_entities_that_cut_our_tokens_are_widened_and_counted(pipeline):
    tagger = load_tagger(f"spacy:{pipeline}")
    whole = Sentence("a", ("New York-based",), (), "New York-based", ((0, 14),))

    (tagged,) = tagger.predict([whole])

    assert tagged.tags == ("B-GPE",)
    assert tagger.counts == {"misaligned": 1}


def test_a_sentence_without_text_is_read_as_its_tokens(pipeline):
    (tagged,) = load_tagger(f"spacy:{pipeline}").predict([Sentence("a", ("in", "New", "York"))])

    assert tagged.tags == ("O", "B-GPE", "I-GPE")


def test_what_spacy_cannot_load_is_one_line(tmp_path):
    pytest.importorskip("spacy", reason="needs the extra spacy")
    with pytest.raises(ModelError, match="spaCy cannot load 'no_such_pipeline'"):
        load_tagger("spacy:no_such_pipeline")


@pytest.mark.parametrize("policy", [n for n, p in POLICIES.items() if p.alone and p.score])
def test_policies_rank_with_it_or_say_what_it_lacks(policy, classifier):
    tagger = load_tagger(f"hf:{classifier}", "cpu")
    sentences = {s.id: s.unlabeled() for s in tiny.toy(6)}
    view = TaggerView(Pool(sentences), tagger, lambda: [tagger] * 2, {}, np.random.default_rng(0))

    if policy == "bald":
        with pytest.raises(ModelError, match="has no embeddings"):
            dict(POLICIES[policy].score(view))
        return
    assert dict(POLICIES[policy].score(view)).keys() == sentences.keys()


def test_predict_evaluate_and_rank_take_it(classifier, pipeline, tmp_path, capsys):
    data, out = tmp_path / "data.conll", tmp_path / "out.conll"
    formats.write(tiny.toy(12), data)

    assert run(["predict", f"hf:{classifier}", str(data), "--out", str(out)]) == 0
    predicted = list(formats.read(out))
    assert run(["evaluate", f"hf:{classifier}", str(out)]) == 0
    assert "FB1: 100.00" in capsys.readouterr().out.replace("FB1:  ", "FB1: ")
    assert len(predicted) == 12

    name = f"spacy:{pipeline}:PERSON=PER,GPE=LOC"
    assert run(["evaluate", name, str(data)]) == 0
    assert "PER: precision: 100.00%" in capsys.readouterr().out

    best = tmp_path / "best.jsonl"
    options = ["--model", f"hf:{classifier}", "--top", "3", "--out", str(best), "--device", "cpu"]
    assert run(["rank", str(data), *options]) == 0
    scores = [json.loads(line)["score"] for line in best.read_text().splitlines()]
    assert len(scores) == 3 and scores == sorted(scores, reverse=True) and scores[-1] > 0
    of_spacy = ["rank", str(data), "--model", name, "--top", "2", "--out", str(best)]
    assert run(of_spacy) == 2
    assert "choose tag_count or qbc or random" in capsys.readouterr().err
    assert run([*of_spacy, "--policy", "tag_count"]) == 0
    assert run(["rank", str(data), *options, "--int8"]) == 2
    assert "--int8 is for taggers that seqmix trained" in capsys.readouterr().err


def test_a_project_that_begins_with_it_suggests_before_there_are_answers(
    pipeline, tmp_path, capsys
):
    text, folder = tmp_path / "notes.txt", tmp_path / "notes"
    text.write_text("Nobody came .\nLena left New York .\nMary Smith stayed .\n")
    arguments = ["init", str(folder), "--text", str(text), "--tags", "person,place"]
    settings = ["--set", "audit_share=0", "--set", "encoder=" + tiny.write_bert(tmp_path / "bert")]

    assert run([*arguments, *settings, "--set", f"start=spacy:{pipeline}"]) == 2
    assert "must suggest at least one of person, place" in capsys.readouterr().err
    assert not folder.exists()

    start = f"start=spacy:{pipeline}:PERSON=person,GPE=place"
    assert run([*arguments, *settings, "--set", start]) == 0
    with open_project(folder) as project:
        assert Trainer(project, build_parts(project)).step()
        suggested = {
            s.tokens[0]: suggestion_of(project.store, s.id)[0] for s in unlabeled(project.store)
        }
    marks = {
        word: [(s["start"], s["end"], s["tag"]) for s in found["spans"]]
        for word, found in suggested.items()
    }
    assert marks == {
        "Nobody": [],
        "Lena": [(0, 1, "person"), (2, 4, "place")],
        "Mary": [(0, 2, "person")],
    }
    assert run(["project", str(folder), "--set", f"start=spacy:{pipeline}"]) == 2
    assert "must suggest at least one of" in capsys.readouterr().err


def test_label_studio_begins_with_it(pipeline, tmp_path):
    labels = '<Labels name="label" toName="text"><Label value="person"/></Labels>'
    config = f'<View>{labels}<Text name="text" value="$text"/></View>'
    backend = build_backend(tmp_path, {}, Path(f"spacy:{pipeline}:PERSON=person"))
    body = {"project": "1.1794743715", "label_config": config}
    try:
        backend.start()
        backend.setup({"project": body["project"], "schema": config})
        tasks = [{"id": 1, "data": {"text": "Mary Smith left"}}]
        (result,) = backend.predict({**body, "tasks": tasks})["results"]
    finally:
        backend.close()

    values = [(part["value"]["start"], part["value"]["labels"]) for part in result["result"]]
    assert values == [(0, ["person"])]
