"""The tagger people use: what goes in comes out in order, tagged legally, and survives the disk."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path

import huggingface_hub.constants
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from seqmix.data.scheme import is_legal
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, ModelError, TagError
from seqmix.query.uncertainty import least_confidence_sum, margin, token_entropy
from seqmix.tagger import Settings, Tagger
from tests.support import tiny

HEADS = ("linear", "crf")
each_head = pytest.mark.parametrize("head", HEADS)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def taggers(bert) -> dict[str, Tagger]:
    """One of each head, hardly trained: unsure of everything, so that nothing is right by luck."""
    return {
        head: Tagger(bert, head, Settings(steps=3, lr=1e-3)).fit(tiny.toy(), rng())
        for head in HEADS
    }


@pytest.fixture(params=HEADS)
def tagger(request, taggers) -> Tagger:
    return taggers[request.param]


@pytest.fixture
def saved(tagger, tmp_path) -> Path:
    tagger.save(tmp_path / "model")
    return tmp_path / "model"


def bare(sentences: list[Sentence]) -> list[Sentence]:
    return [sentence.unlabeled() for sentence in sentences]


MIXED = [
    Sentence("long", tuple(["Lena", "visited", "Bergen", "and"] * 40)),
    Sentence("none", ()),
    Sentence("one", ("Oslo",)),
    *bare(tiny.toy(8)),
    Sentence("odd", ("\u200b", "😀", "Lena", "\x01")),
    Sentence("none again", ()),
]


# What comes out


def test_sentences_come_back_in_order_with_their_ids_and_tokens(tagger):
    actual = list(tagger.predict(MIXED))

    assert [(s.id, s.tokens) for s in actual] == [(s.id, s.tokens) for s in MIXED]
    assert all(s.hard for s in actual)


def test_a_result_does_not_depend_on_the_company(tagger):
    together = list(tagger.probabilities(MIXED))

    for sentence, expected in zip(MIXED, together, strict=True):
        (alone,) = tagger.probabilities([sentence])
        np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_text_and_offsets_stay(tagger):
    sentence = Sentence("t", ("Lena", "left"), (), "Lena  left", ((0, 4), (6, 10)))
    (actual,) = tagger.predict([sentence])

    assert (actual.text, actual.offsets) == (sentence.text, sentence.offsets)


def test_an_empty_sentence_has_an_empty_answer(tagger):
    empty = Sentence("none", ())

    assert [p.shape for p in tagger.probabilities([empty])] == [(0, len(tagger.tag_set))]
    assert [e.shape for e in tagger.embeddings([empty])] == [(0, 32)]
    assert [[path.tags for path in paths] for paths in tagger.best_paths([empty], n=3)] == [[()]]
    assert list(tagger.predict([empty])) == [empty]


def test_no_sentence_has_no_answer(tagger):
    assert list(tagger.predict([])) == list(tagger.probabilities([])) == []


@pytest.mark.parametrize("method", ["predict", "probabilities", "best_paths", "embeddings"])
def test_a_stream_is_answered_before_it_ends(taggers, method):
    taken = 0

    def stream():
        nonlocal taken
        for number in range(5000):
            taken += 1
            yield Sentence(str(number), ("Lena", "left"))

    answers = getattr(taggers["linear"], method)(stream())
    assert taken == 0
    next(answers)

    assert 0 < taken < 5000
    if method == "predict":
        assert [s.id for s in islice(answers, 4999)] == [str(number) for number in range(1, 5000)]


@pytest.mark.parametrize("measure", ["entropy", "least", "margin"])
def test_how_unsure_a_tagger_is_follows_from_its_probabilities(tagger, measure):
    score = {"entropy": token_entropy, "least": least_confidence_sum, "margin": margin}[measure]

    expected = [score(probs) for probs in tagger.probabilities(MIXED) if len(probs)]

    assert list(tagger.unsure([s for s in MIXED if len(s)], measure)) == pytest.approx(
        expected, rel=1e-9, abs=1e-12
    )


def test_probabilities_are_distributions(tagger):
    for sentence, rows in zip(MIXED, tagger.probabilities(MIXED), strict=True):
        assert rows.shape == (len(sentence), len(tagger.tag_set))
        assert rows.dtype == np.float32
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(1), 1, atol=1e-5)


def test_embeddings_are_the_states_of_the_encoder(taggers):
    linear = taggers["linear"]
    (states,) = linear.embeddings([Sentence("x", ("Lena", "left", "Oslo"))])
    (rows,) = linear.probabilities([Sentence("x", ("Lena", "left", "Oslo"))])
    with torch.no_grad():
        expected = torch.softmax(linear.network.classifier(torch.from_numpy(states)), 1).numpy()

    np.testing.assert_allclose(rows, expected, atol=1e-6)


# Paths


def test_best_paths_are_legal_and_their_tags_known(tagger):
    for paths in tagger.best_paths(MIXED, n=5):
        for path in paths:
            assert is_legal(path.tags)


def test_without_the_restriction_some_path_is_illegal(tagger):
    """Or the test above shows nothing."""
    assert not all(
        is_legal(path.tags)
        for paths in tagger.best_paths(MIXED, n=5, legal=False)
        for path in paths
    )


def test_n_best_paths_are_distinct_sorted_and_probable_to_some_degree(tagger):
    for sentence, paths in zip(MIXED, tagger.best_paths(MIXED, n=7), strict=True):
        chances = [path.probability for path in paths]
        assert (
            len({path.tags for path in paths})
            == len(paths)
            == (7 if len(sentence) > 1 else 4 if len(sentence) else 1)
        )
        assert chances == sorted(chances, reverse=True)
        assert all(0 < chance <= 1 for chance in chances)
        assert sum(chances) <= 1 + 1e-5
        assert all(len(path.tags) == len(sentence) for path in paths)


def test_the_best_of_n_is_the_best_of_one(tagger):
    one, many = tagger.best_paths(MIXED), tagger.best_paths(MIXED, n=4)

    assert [paths[0].tags for paths in one] == [paths[0].tags for paths in many]


def test_all_paths_of_a_short_sentence_share_the_whole_probability(tagger):
    n = len(tagger.tag_set) ** 2
    (paths,) = tagger.best_paths([Sentence("x", ("Lena", "left"))], n=n + 10, legal=False)

    assert len(paths) == n
    assert sum(path.probability for path in paths) == pytest.approx(1, abs=1e-4)


def test_by_token_gives_the_probability_of_each_tag_of_the_path(tagger):
    sentences = [s for s in MIXED if len(s)]
    both = zip(
        tagger.best_paths(sentences, n=2, by_token=True),
        tagger.probabilities(sentences),
        strict=True,
    )
    for paths, rows in both:
        for path in paths:
            expected = [
                row[tagger.tag_set.id(tag)] for row, tag in zip(rows, path.tags, strict=True)
            ]
            assert path.by_token == pytest.approx(expected, abs=1e-6)
    assert all(path.by_token == () for paths in tagger.best_paths(sentences) for path in paths)


def test_the_probability_of_a_path_of_the_linear_head_is_the_product_of_its_tokens(taggers):
    for (path,) in taggers["linear"].best_paths(bare(tiny.toy(4)), by_token=True):
        assert path.probability == pytest.approx(np.prod(path.by_token), rel=1e-4)


def test_keep_agrees_with_the_labels_a_sentence_has(tagger):
    for seed in range(20):
        drawn = rng(seed)
        sentences = [
            s.with_tags([tag if drawn.random() < 0.5 else None for tag in s.tags])
            for s in tiny.toy()
        ]
        for sentence, actual in zip(sentences, tagger.predict(sentences, keep=True), strict=True):
            assert all(
                given is None or given == tag
                for given, tag in zip(sentence.tags, actual.tags, strict=True)
            )
            assert is_legal(actual.tags)


def test_keep_holds_every_one_of_the_n_best_to_the_labels(tagger):
    sentence = Sentence("x", ("Lena", "left", "Mary", "Smith"), (None, "O", "B-PER", None))

    (paths,) = tagger.best_paths([sentence], n=6, keep=True)

    assert len(paths) == 6
    assert all(path.tags[1:3] == ("O", "B-PER") for path in paths)


def test_keep_takes_a_soft_row_as_the_tags_that_have_weight(tagger):
    sentence = Sentence("x", ("Lena", "left"), ({"B-PER": 0.2, "B-LOC": 0.8}, None))

    (paths,) = tagger.best_paths([sentence], n=50, keep=True)

    assert {path.tags[0] for path in paths} == {"B-PER", "B-LOC"}


def test_labels_are_no_matter_without_keep(tagger):
    labeled = tiny.toy()

    assert list(tagger.predict(labeled)) == list(tagger.predict(bare(labeled)))


@pytest.mark.parametrize(
    "tags", [("I-PER", "I-LOC", None), ("O", "I-PER", "O"), (None, "I-ORG", "I-PER")]
)
def test_keep_with_labels_that_no_legal_path_has_does_not_fail(tagger, tags):
    (paths,) = tagger.best_paths([Sentence("x", ("Lena", "left", "Oslo"), tags)], n=3, keep=True)

    assert all(len(path.tags) == 3 for path in paths)
    assert paths[0].probability == 0


def test_a_tag_set_without_spans_allows_every_path(bert):
    tagged = [
        Sentence("a", ("the", "Oslo"), ("DET", "NOUN")),
        Sentence("b", ("Lena", "left"), ("NOUN", "VERB")),
    ]
    tagger = Tagger(bert, "crf", Settings(steps=2)).fit(tagged, rng())

    (paths,) = tagger.best_paths([Sentence("x", ("Lena", "left"))], n=20)

    assert len(paths) == 9


def test_n_best_of_a_long_sentence_are_not_lost_to_underflow(tagger):
    """0.2 to the power of 200 is no float32."""
    (paths,) = tagger.best_paths([Sentence("long", ("Lena", "left") * 100)], n=5)

    assert len(paths) == 5
    assert all(path.probability > 0 for path in paths)


# Threads


def test_predictions_do_not_depend_on_the_number_of_threads(tagger):
    before, actual = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            actual.append(np.concatenate(list(tagger.probabilities(MIXED))))
            assert torch.get_num_threads() == threads  # predicting leaves the setting alone
    finally:
        torch.set_num_threads(before)

    assert np.array_equal(*actual)


# Warm start


def test_a_warm_start_goes_on_where_the_last_fit_ended(bert):
    tagger = Tagger(bert, "linear", Settings(steps=60, lr=3e-3)).fit(tiny.toy(), rng())
    network, learned = tagger.network, np.concatenate(list(tagger.probabilities(tiny.toy())))
    tagger.settings = Settings(steps=1, lr=1e-6)
    tagger.fit(tiny.toy(), rng(1), warm=True)

    assert tagger.network is network
    np.testing.assert_allclose(
        np.concatenate(list(tagger.probabilities(tiny.toy()))), learned, atol=1e-3
    )


def test_sentences_of_little_weight_teach_little(bert):
    right = [Sentence(f"a{n}", ("Lena", "left"), ("B-PER", "O")) for n in range(8)]
    wrong = [Sentence(f"b{n}", ("Lena", "left"), ("O", "B-PER")) for n in range(16)]
    settings = Settings(epochs=20, batch_size=8, lr=1e-3)

    def learned(weight: float) -> tuple[str, ...]:
        noise = [replace(sentence, weight=weight) for sentence in wrong]
        tagger = Tagger(bert, settings=settings).fit([*right, *noise], np.random.default_rng(0))
        return next(tagger.best_paths([right[0].unlabeled()]))[0].tags

    assert learned(0.01) == ("B-PER", "O")
    assert learned(1.0) == ("O", "B-PER")


def test_a_cold_start_forgets(bert):
    tagger = Tagger(bert, "linear", Settings(steps=60, lr=3e-3)).fit(tiny.toy(), rng())
    tagger.settings = Settings(steps=1, lr=1e-6)
    tagger.fit(tiny.toy(), rng())
    fresh = Tagger(bert, "linear", Settings(steps=1, lr=1e-6)).fit(tiny.toy(), rng())

    actual, expected = (np.concatenate(list(t.probabilities(tiny.toy()))) for t in (tagger, fresh))
    assert np.array_equal(actual, expected)


def test_a_warm_start_from_nothing_is_a_cold_one(bert):
    warm, cold = (
        Tagger(bert, "linear", Settings(steps=2)).fit(tiny.toy(), rng(), warm=warm)
        for warm in (True, False)
    )

    assert list(warm.predict(tiny.toy())) == list(cold.predict(tiny.toy()))


def test_a_warm_start_refuses_tags_it_never_knew(bert):
    tagger = Tagger(bert, "linear", Settings(steps=1)).fit(tiny.toy(), rng())
    with pytest.raises(TagError, match="unknown tag"):
        tagger.fit([Sentence("x", ("a",), ("B-NEW",))], rng(), warm=True)


def test_a_loaded_tagger_can_be_trained_on(saved):
    tagger = Tagger.load(saved)
    before = np.concatenate(list(tagger.probabilities(tiny.toy())))
    tagger.settings = Settings(steps=3, lr=1e-3)
    tagger.fit(tiny.toy(), rng(), warm=True)

    assert np.abs(np.concatenate(list(tagger.probabilities(tiny.toy()))) - before).max() > 1e-3


# The disk


def test_a_saved_tagger_gives_the_same_probabilities_when_loaded(tagger, saved):
    loaded = Tagger.load(saved)

    assert (loaded.head, loaded.encoder, loaded.settings, loaded.tag_set) == (
        tagger.head,
        tagger.encoder,
        replace(tagger.settings, epochs=10),
        tagger.tag_set,
    )
    for actual, expected in zip(
        loaded.probabilities(MIXED), tagger.probabilities(MIXED), strict=True
    ):
        assert np.array_equal(actual, expected)
    assert list(loaded.predict(MIXED)) == list(tagger.predict(MIXED))


def test_a_saved_starter_gives_the_same_probabilities_when_loaded(tmp_path):
    tagger = Tagger("starter", "crf", Settings(steps=1)).fit(tiny.toy(2), rng())
    tagger.save(tmp_path / "model")
    before = torch.get_rng_state()
    loaded = Tagger.load(tmp_path / "model")

    for actual, expected in zip(
        loaded.probabilities(MIXED), tagger.probabilities(MIXED), strict=True
    ):
        assert np.array_equal(actual, expected)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loaded_roberta_gives_the_same_probabilities(roberta, tmp_path):
    tagger = Tagger(roberta, "linear", Settings(steps=2)).fit(tiny.toy(), rng())
    tagger.save(tmp_path / "model")

    for actual, expected in zip(
        Tagger.load(tmp_path / "model").probabilities(MIXED),
        tagger.probabilities(MIXED),
        strict=True,
    ):
        assert np.array_equal(actual, expected)


def test_a_saved_tagger_says_how_many_epochs_it_took(bert, tmp_path):
    tagger = Tagger(bert, "linear", Settings(batch_size=4)).fit(tiny.toy(4), rng())
    tagger.save(tmp_path / "model")

    assert (tagger.settings.epochs, tagger.settings.total_steps(4)) == (None, 10)
    assert Tagger.load(tmp_path / "model").settings.epochs == 10


def test_a_saved_tagger_is_safe_to_open(saved):
    assert {path.suffix for path in saved.iterdir()} == {".safetensors", ".json"}


def test_saving_over_a_tagger_replaces_it_and_leaves_nothing_beside(tagger, saved):
    (saved / "merges.txt").write_text("of the tokenizer before")
    tagger.save(saved)

    assert not (saved / "merges.txt").exists()
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def empty_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def drop_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def drop_one_tensor(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, folder / "model.safetensors")


def drop_one_layer(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {key: value for key, value in weights.items() if "layer.1." not in key},
        folder / "model.safetensors",
    )


def reshape_one_tensor(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["classifier.weight"] = weights["classifier.weight"][:2].contiguous()
    save_file(weights, folder / "model.safetensors")


def foreign_tensor(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file({**weights, "encoder.extra": torch.zeros(2)}, folder / "model.safetensors")


def drop_description(folder: Path) -> None:
    (folder / "tagger.json").unlink()


def break_description(folder: Path) -> None:
    (folder / "tagger.json").write_text("{")


def listed_description(folder: Path) -> None:
    (folder / "tagger.json").write_text("[]")


def other_version(folder: Path) -> None:
    edit(folder, format_version=99)


def no_tags(folder: Path) -> None:
    edit(folder, tags=[])


def no_head(folder: Path) -> None:
    described = json.loads((folder / "tagger.json").read_text())
    del described["head"]
    (folder / "tagger.json").write_text(json.dumps(described))


def unknown_head(folder: Path) -> None:
    edit(folder, head="tail")


def unknown_setting(folder: Path) -> None:
    edit(folder, settings={"speed": 3})


def drop_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def break_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "bert", ')


def drop_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def break_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


def edit(folder: Path, **changes: object) -> None:
    described = json.loads((folder / "tagger.json").read_text())
    (folder / "tagger.json").write_text(json.dumps({**described, **changes}))


@pytest.mark.parametrize(
    "damage",
    [
        cut_weights,
        empty_weights,
        drop_weights,
        drop_one_tensor,
        drop_one_layer,
        reshape_one_tensor,
        foreign_tensor,
        drop_description,
        break_description,
        listed_description,
        other_version,
        no_tags,
        no_head,
        unknown_head,
        unknown_setting,
        drop_config,
        break_config,
        drop_tokenizer,
        break_tokenizer,
    ],
    ids=lambda damage: damage.__name__,
)
def test_a_damaged_folder_is_an_error_of_one_line_that_names_it(taggers, tmp_path, damage):
    taggers["linear"].save(tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(ModelError) as caught:
        Tagger.load(tmp_path / "model")

    assert str(tmp_path / "model") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_not_there_is_an_error_of_one_line(tmp_path):
    with pytest.raises(ModelError, match="is not a tagger"):
        Tagger.load(tmp_path / "nowhere")


# What is refused


@pytest.mark.parametrize("method", ["predict", "probabilities", "best_paths", "embeddings"])
def test_a_tagger_that_is_not_trained_says_so(method):
    with pytest.raises(ModelError, match="not trained yet"):
        next(getattr(Tagger(), method)([Sentence("x", ("a",))]))


def test_a_tagger_that_is_not_trained_is_not_saved(tmp_path):
    with pytest.raises(ModelError, match="not trained yet"):
        Tagger().save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_unknown_head_is_an_error_that_names_the_known_ones():
    with pytest.raises(ConfigError, match="linear or crf"):
        Tagger(head="tail")


@pytest.mark.parametrize("device", ["bogus", "cuda:99"])
def test_a_device_that_is_not_there_is_an_error(device):
    with pytest.raises(ConfigError, match=device):
        Tagger(device=device)


@pytest.mark.parametrize(
    "name", ["no-such-owner/no-such-model", "no-such-model", "./no/such/folder", ""]
)
def test_an_unknown_encoder_is_an_error_without_network_and_at_once(name, monkeypatch, capfd):
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    start = time.monotonic()
    with pytest.raises(ModelError, match="'starter', which needs no network") as caught:
        Tagger(name).fit(tiny.toy(2), rng())

    assert time.monotonic() - start < 15
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_folder_without_a_model_is_an_error(tmp_path):
    with pytest.raises(ModelError, match="the folder"):
        Tagger(str(tmp_path)).fit(tiny.toy(2), rng())


def test_loading_an_encoder_prints_nothing(bert, capfd):
    Tagger(bert, settings=Settings(steps=1)).fit(tiny.toy(2), rng())

    assert capfd.readouterr() == ("", "")
