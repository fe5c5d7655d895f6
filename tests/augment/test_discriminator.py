"""The discriminator: a score that is the sentence's own, however it was computed."""

from __future__ import annotations

import copy
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from algorithm2 import perplexity
from seqmix.augment.discriminator import Perplexity, encode
from seqmix.augment.score_range import ScoreRange
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.starter import load_language_model
from tests.support.toys import toy_sentences


def sentences() -> list[Sentence]:
    words = [
        "the Oslo",
        "Lena lives in Rome",
        "Ada",
        "Mary Smith works at Acme and visited the left of Oslo in the Rome of Bo",
        "Acme Acme Acme",
    ]
    return [Sentence(str(i), tuple(text.split())) for i, text in enumerate(words)]


def alone(name: str, sentence: Sentence) -> float:
    model, tokenizer = load_language_model(name)
    return perplexity(" ".join(sentence.tokens), model, tokenizer, tokenizer.bos_token_id)


def test_a_score_is_that_of_the_sentence_alone(lm: str) -> None:
    found = Perplexity(lm).scores(sentences())

    np.testing.assert_allclose(found, [alone(lm, s) for s in sentences()], rtol=1e-4)


def test_sharing_a_prefix_changes_nothing_and_saves_work(lm: str) -> None:
    stem = ("Mary", "Smith", "works", "at", "Acme", "and", "visited", "the")
    family = [
        Sentence(str(i), (*stem, *rest))
        for i, rest in enumerate(
            [("Oslo",), ("Rome", "of", "Bo"), ("left", "Oslo"), ("Ada", "Ada")]
        )
    ]
    plain, sharing = Perplexity(lm), Perplexity(lm)

    np.testing.assert_allclose(sharing.scores(family, ["p"] * 4), plain.scores(family), rtol=1e-4)
    assert sharing.computed < 0.6 * plain.computed


def test_what_is_proven_out_of_range_is_dropped_and_nothing_else(lm: str) -> None:
    many = [Sentence(str(i), s.tokens * 2) for i, s in enumerate(toy_sentences(30, longest=5))]
    full, early = Perplexity(lm), Perplexity(lm)
    true = full.scores(many)
    limit = float(np.quantile(true, 0.3))

    found = early.scores(many, above=limit)

    assert np.array_equal(np.isinf(found), true > limit)
    np.testing.assert_allclose(found[true <= limit], true[true <= limit], rtol=1e-4)
    assert early.computed < full.computed


def test_each_sentence_may_have_a_limit_of_its_own(lm: str) -> None:
    many = [Sentence(str(i), s.tokens * 2) for i, s in enumerate(toy_sentences(30, longest=5))]
    full, early = Perplexity(lm), Perplexity(lm)
    true = full.scores(many)
    limits = true * np.where(np.arange(30) % 3 == 0, 1.001, 0.01)

    found = early.scores(many, above=limits)

    assert np.array_equal(np.isinf(found), true > limits)
    np.testing.assert_allclose(found[true <= limits], true[true <= limits], rtol=1e-4)
    assert early.computed < full.computed


def test_a_sentence_of_one_piece_has_a_score_and_none_has_infinity(lm: str) -> None:
    found = Perplexity(lm).scores([Sentence("a", ("the",)), Sentence("b", ())])

    assert 1 <= found[0] < math.inf and math.isinf(found[1])


def test_the_papers_base_two_is_an_option(lm: str) -> None:
    natural, paper = (Perplexity(lm, base).scores(sentences()) for base in ("e", "2"))

    np.testing.assert_allclose(paper, 2 ** np.log(natural), rtol=1e-6)


@pytest.mark.parametrize(
    ("bos", "others", "begins"),
    [
        ("<|im_start|>", ["<|endoftext|>", "<|im_end|>"], "<|endoftext|>"),
        (None, ["<|endoftext|>"], "<|endoftext|>"),
        ("<s>", ["<|endoftext|>"], "<s>"),
        ("<|im_start|>", [], "[SEP]"),
    ],
)
def test_a_marker_of_chats_is_no_beginning_of_a_text(
    lm: str, bos: str | None, others: list[str], begins: str
) -> None:
    model, tokenizer = load_language_model(lm)
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.add_tokens([*others, *([bos] if bos else [])], special_tokens=True)
    tokenizer.bos_token = bos

    ids = encode(("the", "Oslo"), tokenizer, model)

    assert ids[0] == tokenizer.convert_tokens_to_ids(begins)


def test_a_text_is_scored_once(lm: str) -> None:
    judge = Perplexity(lm)
    judge.scores(sentences())
    before = judge.computed

    judge.scores(sentences()[::-1])

    assert judge.computed == before


def test_a_sentence_longer_than_the_model_is_cut_to_fit(lm: str) -> None:
    assert np.isfinite(Perplexity(lm).scores([Sentence("a", ("the",) * 200)]))[0]


def test_a_sentence_is_read_to_the_last_piece_that_fits(lm: str) -> None:
    start = ("a",) * 46  # 48 positions: one for the start of the text, 47 for pieces
    one, other, longer = Perplexity(lm).scores(
        [Sentence(end, (*start, *end)) for end in ("b", "c", "bd")]
    )

    assert one != pytest.approx(other) and one == pytest.approx(longer)


def test_the_count_of_pieces_starts_at_zero_for_everybody(lm: str) -> None:
    assert Perplexity(lm).computed == 0
    with pytest.raises(TypeError):
        Perplexity(lm, computed=5)


def test_order_and_batch_do_not_matter(lm: str) -> None:
    many = toy_sentences(25)
    one = Perplexity(lm).scores(many)
    other = Perplexity(lm).scores(many[::-1])[::-1]

    np.testing.assert_allclose(one, other, rtol=1e-4)


def test_the_starter_prefers_sentences_to_word_salad() -> None:
    text = [
        "The",
        "president",
        "of",
        "France",
        "met",
        "the",
        "prime",
        "minister",
        "of",
        "Japan",
        "in",
        "Paris",
        "on",
        "Monday",
        ".",
    ]
    salad = np.random.default_rng(0).permutation(text)

    natural, shuffled = Perplexity().scores(
        [Sentence("a", tuple(text)), Sentence("b", tuple(salad.tolist()))]
    )

    assert natural < shuffled / 3


def test_a_sentence_longer_than_the_model_is_cut_without_alarm() -> None:
    code = (
        "from seqmix.augment.discriminator import Perplexity; "
        "from seqmix.data.sentence import Sentence; "
        "print(Perplexity().scores([Sentence('a', ('word', 'and') * 400)])[0] > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "True\n" and done.stderr == ""


def test_quantiles_become_scores_of_the_real_sentences() -> None:
    limits = ScoreRange(0.25, 0.75, quantiles=True).in_scores([1.0, 2.0, 3.0, 4.0, 5.0])

    assert (
        limits.holds(2.0) and limits.holds(4.0) and not limits.holds(1.9) and not limits.holds(4.1)
    )


@pytest.mark.parametrize("bad", [(500, 0, False), (-1, 5, False), (5, 5, False), (0.2, 1.2, True)])
def test_an_empty_range_is_refused(bad: tuple) -> None:
    with pytest.raises(ConfigError, match="score range"):
        ScoreRange(*bad)


def test_a_relative_range_is_not_in_quantiles() -> None:
    with pytest.raises(ConfigError, match="not both"):
        ScoreRange(0.1, 0.9, quantiles=True, relative=True)


def test_an_unknown_base_is_refused() -> None:
    with pytest.raises(ConfigError, match="'e' or '2'"):
        Perplexity(base="10")


def test_scoring_leaves_no_gradient_behind(lm: str) -> None:
    Perplexity(lm).scores(sentences())
    assert torch.is_grad_enabled()
