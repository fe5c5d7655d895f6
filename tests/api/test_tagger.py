"""The tagger people use: text in, entities out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import seqmix
from seqmix.app import few_labels
from seqmix.app.few_labels import few_labels_config
from seqmix.data.spans import Entity
from seqmix.errors import ConfigError
from seqmix.tagger import tagger as core
from tests.support import tiny

LENA = "Lena lives in  Oslo."


def same(a: core.Tagger, b: core.Tagger) -> bool:
    """Whether two taggers give the same probabilities, to the last bit."""
    rows = (np.concatenate(list(t.probabilities(tiny.toy(4)))) for t in (a, b))
    return bool(np.array_equal(*rows))


def test_a_text_gives_its_entities_with_offsets_and_probabilities(trained):
    entities = trained(LENA)

    assert [(e.text, e.label, e.start, e.end) for e in entities] == [
        ("Lena", "PER", 0, 4),
        ("Oslo", "LOC", 15, 19),
    ]
    assert all(LENA[e.start : e.end] == e.text for e in entities)
    sentence = seqmix.Sentence.from_text(LENA)
    (path,) = next(trained.best_paths([sentence], by_token=True))
    assert [e.probability for e in entities] == [path.by_token[0], path.by_token[3]]


def test_an_entity_is_as_probable_as_its_least_sure_token():
    sentence = seqmix.Sentence("s1", ("New", "York"), ("B-LOC", "I-LOC"))

    assert sentence.entities((0.9, 0.6)) == [Entity("New York", "LOC", 0, 8, 0.6)]


def test_lists_in_lists_out(trained):
    tokens = ["Lena", "lives", "in", "Oslo", "."]
    one = trained(LENA)
    two = [(e.text, e.label) for e in one]

    for texts in (
        [LENA, tokens],
        (LENA, tokens),
        iter([LENA, tuple(tokens)]),
        [seqmix.Sentence.from_text(LENA), seqmix.Sentence("s", tuple(tokens))],
    ):
        first, second = trained(texts)
        assert first == pytest.approx(one)
        assert [(e.text, e.label) for e in second] == two
    assert trained(seqmix.Sentence.from_text(LENA)) == one
    assert trained([]) == [] and trained("") == [] and trained(["", LENA])[0] == []


def test_predict_gives_sentences_of_whatever_it_gets(trained):
    tokens = ("Lena", "lives", "in", "Oslo", ".")
    texts = [LENA, list(tokens), seqmix.Sentence("mine", tokens)]

    tagged = list(trained.predict(texts))

    assert [s.id for s in tagged] == ["text:1", "text:2", "mine"]
    assert {s.tokens for s in tagged} == {tokens} and len({s.tags for s in tagged}) == 1
    assert list(trained.predict(LENA)) == tagged[:1]


@pytest.mark.parametrize("method", ["probabilities", "best_paths", "embeddings"])
def test_every_method_takes_text(trained, method):
    assert len(list(getattr(trained, method)([LENA, ["Lena", "left"]]))) == 2


def test_a_seed_is_a_generator_and_the_same_bytes(encoder):
    settings = seqmix.Settings(steps=2)
    by_core = core.Tagger(encoder, "crf", settings).fit(tiny.toy(), np.random.default_rng(3))

    def fitted(*rng, **seed):
        return seqmix.Tagger(encoder, settings=settings).fit(tiny.toy(), *rng, **seed)

    assert same(by_core, fitted(np.random.default_rng(3)))
    assert same(by_core, fitted(3))
    assert same(by_core, fitted(seed=3))
    assert same(fitted(), fitted(seed=0))
    assert not same(by_core, fitted())


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        (None, 300),
        ({"batch_size": 1, "dropout": 0.2}, 400),
        ({"epochs": 10}, 20),
        ({"epochs": 3}, 6),
        ({"steps": 7}, 7),
    ],
)
def test_it_takes_enough_steps_unless_it_is_told_how_long(encoder, settings, steps, monkeypatch):
    taken: list[int] = []
    monkeypatch.setattr(
        core, "train", lambda network, data, how, *_: taken.append(how.total_steps(len(data.ids)))
    )
    given = None if settings is None else seqmix.Settings(**settings)
    tagger = seqmix.Tagger(encoder, settings=given).fit(tiny.toy(40))

    assert (tagger.head, taken) == ("crf", [steps])
    tagger.twin().fit(tiny.toy(40), warm=True)
    tagger.settings = seqmix.Settings(steps=5)
    assert taken == [steps, steps] and tagger.fit(tiny.toy(40)) and taken[2:] == [5]


def test_a_tagger_that_is_trained_again_takes_the_steps_of_the_new_sentences(
    encoder, monkeypatch, tmp_path
):
    taken: list[int | None] = []
    monkeypatch.setattr(core, "train", lambda network, data, how, *_: taken.append(how.steps))
    tagger = seqmix.Tagger(encoder).fit(tiny.toy(40))
    tagger.fit(tiny.toy(100))
    tagger.save(tmp_path / "ner")
    seqmix.Tagger.load(tmp_path / "ner").fit(tiny.toy(40))

    assert taken == [300, 600, 600], "a loaded tagger trains as its folder says"


def test_tokens_and_tags_are_learned_as_sentences_are(encoder):
    tokens, tags = [s.tokens for s in tiny.toy()], [s.tags for s in tiny.toy()]
    pairs, sentences = (
        seqmix.Tagger(encoder, settings=seqmix.Settings(steps=2)).fit(data)
        for data in (zip(tokens, tags, strict=True), tiny.toy())
    )

    assert same(pairs, sentences)


def test_a_tagger_says_what_it_is(trained, encoder, tmp_path):
    fresh = seqmix.Tagger(encoder, "crf")
    trained.save(tmp_path / "ner")
    loaded = seqmix.Tagger.load(tmp_path / "ner")

    assert repr(fresh) == f"Tagger(encoder='{encoder}', head='crf', device='cpu', not trained)"
    assert repr(trained).endswith("head='crf', device='cpu', labels=['LOC', 'ORG', 'PER'])")
    assert (repr(loaded), type(loaded)) == (repr(trained), seqmix.Tagger)
    assert loaded.labels == ("LOC", "ORG", "PER")
    assert loaded(LENA) == trained(LENA)


def test_the_score_is_that_of_its_predictions(trained):
    gold = tiny.toy(12)
    predicted = [s.tags for s in trained.predict(s.unlabeled() for s in gold)]

    assert trained.score(gold) == seqmix.score([s.tags for s in gold], predicted)


def test_a_learner_keeps_the_tagger_people_use(encoder):
    learner = seqmix.ActiveLearner(
        tagger=seqmix.Tagger(encoder, settings=seqmix.Settings(steps=1)),
        pool=seqmix.Pool.of([], tiny.toy(4)),
    )
    assert isinstance(learner.tagger, seqmix.Tagger)


# With unlabeled text


@pytest.fixture
def short_recipe(monkeypatch) -> None:
    """The same recipe, with few steps."""
    less = {"adapt": {"epochs": 1}, "self_training": {"steps": 6}}

    def config(changes, quick=False, seed=0):
        return few_labels_config({**changes, **less}, quick, seed)

    monkeypatch.setattr("seqmix.app.few_labels.few_labels_config", config)


def test_with_unlabeled_text_it_is_the_recipe_few_labels(encoder, short_recipe):
    text = [f"{' '.join(s.tokens)} x{i}" for i, s in enumerate(tiny.toy(6))]
    steps: list[int] = []
    settings = seqmix.Settings(epochs=1, steps=4, batch_size=8)

    tagger = seqmix.Tagger(encoder, settings=settings)
    tagger.fit(
        tiny.toy(8), seed=1, unlabeled=text, progress=lambda done, total, loss: steps.append(done)
    )

    changes = {
        "tagger": {"encoder": encoder, "device": "cpu"},
        "training": {"epochs": 1, "min_steps": 4, "batch_size": 8},
    }
    sentences = [seqmix.Sentence.from_text(t, f"text:{n}") for n, t in enumerate(text, 1)]
    config = few_labels.few_labels_config(changes, seed=1)
    assert same(tagger, few_labels.train_few_labels(tiny.toy(8), sentences, config))
    assert tagger.head == "crf" and len(steps) > 3 * 4 + 6
    assert tagger.settings == replace(settings, steps=6, lr=5e-5), "those of the student"
    assert tagger.fit(tiny.toy(8), seed=1).settings.steps == 4
    assert len(tagger([LENA])) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"rng": np.random.default_rng(0)},
        {"warm": True},
        {"tag_set": seqmix.TagSet.ordered(["O", "B-PER"])},
    ],
)
def test_the_recipe_takes_a_seed_and_nothing_it_would_ignore(encoder, other):
    with pytest.raises(ConfigError, match="with unlabeled text, fit takes a seed"):
        seqmix.Tagger(encoder).fit(tiny.toy(), unlabeled=["Lena left."], **other)


# What cannot be


def test_wrong_calls_say_what_to_pass(trained, encoder, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    fresh, toy = seqmix.Tagger(encoder), tiny.toy(4)
    sentence, from_text = seqmix.Sentence, seqmix.Sentence.from_text
    calls = {
        "fit(seqmix.read('file.conll')) learns": lambda: fresh.fit("file.conll"),
        "fit(seqmix.read('a.conll')) learns": lambda: fresh.fit(Path("a.conll")),
        "fit takes labeled sentences or (tokens, tags) pairs, such as": lambda: fresh.fit(None),
        "there is no labeled sentence to train on; got no sentences": lambda: fresh.fit([]),
        "got 1 sentence: label text as": lambda: fresh.fit([from_text("Lena left")]),
        "item 1 is ['Lena', 'left']": lambda: fresh.fit([["Lena", "left"]]),
        "fit(zip(tokens, tags)), and then": lambda: fresh.fit([["Lena"]], [["B-PER"]]),
        "got 2 tokens and 1 tag rows": lambda: fresh.fit([(["Lena", "left"], ["O"])]),
        "entities=[(start, end, label), …])": lambda: fresh.fit([("Lena", {"entities": []})]),
        "a tag must be a name such as B-PER": lambda: fresh.fit([(["Lena"], [1])]),
        "must be a list with one tag per token": lambda: sentence("s", ("Lena",), "B-PER"),
        "Sentence.from_text(text) cuts raw text": lambda: sentence("s", "Lena left"),
        "Sentence.from_text needs a string": lambda: from_text(["Lena"]),
        "seed must be a whole number": lambda: fresh.fit(toy, seed="x"),
        "give fit an rng or a seed, not both": lambda: fresh.fit(toy, 1, seed=1),
        "tag_set must be a seqmix.TagSet": lambda: fresh.fit(toy, tag_set=["O", "B-PER"]),
        "seqmix.Settings(…), such as": lambda: seqmix.Tagger(settings={"epochs": 3}),
        "head must be linear or crf; got 'CRF'": lambda: seqmix.Tagger(head="CRF"),
        "encoder must be starter, a Hugging": lambda: seqmix.Tagger(5),
        "or 'starter', which needs no": lambda: seqmix.Tagger("no-such-encoder").fit(toy),
        "lists of tokens or Sentences, such as [\"Lena left.\"]; got 5": lambda: trained.predict(5),
        "such as [\"Lena left.\"]; got None": lambda: trained.predict(None),
        "such as [\"Lena left.\"]; got {'text'": lambda: trained({"text": "Lena left"}),
        "Sentences; item 2 is 7": lambda: trained(["Lena", 7]),
        "Sentences; item 1 is ['Lena', 7]": lambda: trained([["Lena", 7]]),
        "not trained yet; call fit first": lambda: fresh.predict(["Lena left"]),
        "not trained yet; call fit first, or": lambda: fresh("Lena left"),
        "not trained yet; call fit first, or load": lambda: fresh.save(tmp_path / "x"),
        "is not a tagger: it has no readable": lambda: seqmix.Tagger.load(tmp_path / "no"),
        "some tokens have no label": lambda: trained.score(
            [sentence("s", ("a", "b"), ("O", None))]
        ),
        "there is no device 'gpu' here": lambda: seqmix.Tagger(device="gpu"),
    }  # fmt: skip
    for message, call in calls.items():
        with pytest.raises(seqmix.SeqMixError) as raised:
            call()
        assert message in str(raised.value), str(raised.value)
        assert "\n" not in str(raised.value)
    assert repr(fresh).endswith("not trained)"), "a refused call leaves the tagger as it was"
