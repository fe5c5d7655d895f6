"""Sentences of one template are recognized, and asked apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.query.policies import POLICIES, combined
from seqmix.query.spec import PolicySpec
from seqmix.query.templates import Apart, apart, masked, templates
from tests.support.pool_views import make_view

OVENS = (
    "Heat the oven to 350 F / gas mark 4 and line a tin with paper .",
    "Heat the oven to 180 C / gas mark 6 and line a tray with paper .",
    "HEAT the oven to 90 C / gas mark 1 and grease a tin with butter .",
)
OTHERS = ("Whisk two eggs until they are stiff .", "Leave it to rest overnight , in the fridge .")


def sentences(*texts: str) -> list[Sentence]:
    return [Sentence(str(at), tuple(text.split())) for at, text in enumerate(texts)]


def longest_first(view):
    return ((sentence.id, len(sentence)) for sentence in view.sentences())


def test_sentences_that_share_half_of_their_words_are_of_one_template():
    of = templates(sentences(OVENS[0], OTHERS[0], OVENS[1], OTHERS[1], OVENS[2]))

    assert of == {"0": 0, "1": 1, "2": 0, "3": 3, "4": 0}


def test_a_repeated_word_counts_as_often_as_it_is_there():
    of = templates(sentences("very very very very good", "very good", "good very very very VERY"))

    assert of == {"0": 0, "1": 1, "2": 0}


def test_what_is_marked_is_masked_so_that_a_template_is_what_stands_around_it():
    texts = ("Add half a cup of double cream and stir .", "Add 3 g of salt and stir .")
    marked = ("O B-A I-A I-A O B-I I-I O O O", "O B-A I-A O B-I O O O")
    plain = sentences(*texts)

    hidden = [masked(s, tags.split()) for s, tags in zip(plain, marked, strict=True)]

    assert hidden[0].tokens == hidden[1].tokens == ("Add", "<A>", "of", "<I>", "and", "stir", ".")
    assert templates(plain) == {"0": 0, "1": 1}
    assert templates(hidden) == {"0": 0, "1": 0}


def test_empty_sentences_and_no_sentences_have_templates_too():
    assert templates([]) == {}
    assert templates([Sentence("a", ()), Sentence("b", ())]) == {"a": 0, "b": 1}


def test_the_order_changes_no_more_than_needed():
    template = {"a1": 0, "a2": 0, "a3": 0, "b": 1, "c": 2, "d": 3}

    assert apart(["a1", "a2", "b", "c", "d", "a3"], template, 3) == [
        "a1",
        "b",
        "c",
        "a2",
        "d",
        "a3",
    ]
    assert apart(["a1", "b", "c", "a2", "d"], template, 3) == ["a1", "b", "c", "a2", "d"]


def test_what_was_asked_last_counts():
    template = {"a1": 0, "a2": 0, "b": 1, "c": 2, "d": 3}

    assert apart(["a2", "b", "c", "d"], template, 3, ["a1"]) == ["b", "c", "a2", "d"]
    assert apart(["a2", "b", "c", "d"], template, 3, ["a1", "d"]) == ["b", "a2", "c", "d"]


def test_with_too_few_templates_the_one_that_waited_longest_is_next():
    template = {f"{letter}{n}": at for at, letter in enumerate("ab") for n in range(3)}

    order = apart(["a0", "a1", "a2", "b0", "b1", "b2"], template, 10)

    assert order == ["a0", "b0", "a1", "b1", "a2", "b2"]


@given(st.lists(st.integers(0, 6), max_size=50), st.integers(2, 8))
def test_a_template_is_once_in_a_stretch_if_others_could_be_there(of: list[int], gap: int):
    order = [str(at) for at in range(len(of))]
    template = dict(zip(order, of, strict=True))

    placed = apart(order, template, gap)

    assert sorted(placed) == sorted(order)
    for which in set(of):  # within a template the order stays
        mine = [id for id in placed if template[id] == which]
        assert mine == [id for id in order if template[id] == which]
    for at, id in enumerate(placed):
        lately = {template[id] for id in placed[max(0, at - gap + 1) : at]}
        if template[id] in lately:
            assert {template[other] for other in placed[at:]} <= lately


def test_a_policy_can_keep_templates_apart():
    view = make_view(30, 2)
    texts = [OVENS[at % 3] if at < 20 else f"{chr(97 + at)}x {chr(97 + at)}y" for at in range(30)]
    view.pool[:] = [
        Sentence(s.id, tuple(text.split())) for s, text in zip(view.pool, texts, strict=True)
    ]
    rng = np.random.default_rng(0)

    plain = PolicySpec(longest_first).choose(view, 8, rng)
    chosen = combined(PolicySpec(longest_first), apart=8).choose(view, 8, rng)

    ovens = [s.id for s in view.pool[:20]]
    assert sum(id in ovens for id in plain) == 8
    assert sum(id in ovens for id in chosen) == 1


def test_a_gap_of_one_is_no_gap():
    assert combined("nte", apart=1) == combined("nte") == POLICIES["nte"]
    with pytest.raises(ConfigError, match="at least 2 sentences; got 1"):
        Apart(POLICIES["nte"], 1)
