"""Each tokenizer cuts all of a text, in order, and only where it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.data.sentence import Sentence
from seqmix.data.text import tokenize
from seqmix.data.tokenizers import TOKENIZERS, token_offsets
from seqmix.errors import ConfigError

LINE = "See https://a.b/c?d=1, (www.x.org). @jo #win 2tsp CD4 3.5mg jo.b@x.co.uk! don't"


def tokens(name: str, text: str = LINE) -> list[str]:
    return [text[a:b] for a, b in token_offsets(text, name)]


def test_web_keeps_addresses_names_and_tags_whole():
    assert tokens("web") == [
        *("See", "https://a.b/c?d=1", ",", "(", "www.x.org", ")", ".", "@jo", "#win"),
        *("2tsp", "CD4", "3.5mg", "jo.b@x.co.uk", "!", "don", "'t"),
    ]


def test_numbers_stand_apart_from_units_and_not_from_the_letters_before():
    assert tokens("numbers", "2tsp CD4 3.5mg 1,000km 3rd") == [
        *("2", "tsp", "CD4", "3.5", "mg", "1,000", "km", "3", "rd")
    ]


def test_spaces_cut_nowhere_else():
    assert tokens("spaces") == LINE.split()
    assert tokens("spaces", "東京 is\u00a0big") == ["東京", "is", "big"]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(text=st.text(st.sampled_from("ab1.@#:/hw+- \n'é東́")) | st.text())
def test_every_tokenizer_cuts_all_of_the_text(name: str, text: str):
    offsets = token_offsets(text, name)
    flat = [place for pair in offsets for place in pair]

    assert flat == sorted(flat) and all(a < b for a, b in offsets)
    assert {at for a, b in offsets for at in range(a, b)} == {
        at for a, b in tokenize(text) for at in range(a, b)
    }


def test_a_sentence_takes_the_name_of_a_tokenizer():
    assert Sentence.from_text("Add 2tsp", tokenizer="numbers").tokens == ("Add", "2", "tsp")
    with pytest.raises(ConfigError, match="no tokenizer 'bpe'; there are words, web, numbers"):
        Sentence.from_text("Add", tokenizer="bpe")
