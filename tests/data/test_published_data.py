"""The corpora people use, by their published figures.

They are not part of the project: without them these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.scheme import is_legal
from seqmix.data.spans import spans

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"the published corpora are not in {DATA}"
)


@pytest.mark.parametrize(
    ("file", "sentences", "found"),
    [
        ("conll03/train.txt", 14_041, 23_499),
        ("conll03/valid.txt", 3_250, 5_942),
        ("conll03/test.txt", 3_453, 5_648),
        ("webpage/train.tsv", 385, 545),
        ("webpage/dev.tsv", 99, 90),
        ("webpage/test.tsv", 135, 148),
        ("genia2011/train.tsv", 8_547, 7_746),
        ("genia2011/dev.tsv", 1_435, None),
        ("genia2011/test.tsv", 1_418, None),
        ("m2e2/train.tsv", 4_211, 771),
        ("m2e2/dev.tsv", 901, None),
        ("m2e2/test.tsv", 901, None),
        ("wnut17/wnut17train.conll", 3_394, None),
        ("wnut17/emerging.dev.conll", 1_009, None),
        ("wnut17/emerging.test.annotated", 1_287, None),
        ("wikigold/wikigold.conll.txt", 1_696, 3_558),
        ("btc/btc.train", 6_338, None),
        ("btc/btc.dev", 1_001, None),
        ("btc/btc.test", 2_001, None),
    ],
)
def test_counts_are_the_published_ones(file: str, sentences: int, found: int | None) -> None:
    counted = total = 0
    for sentence in formats.read(DATA / file):
        tags = [str(tag) for tag in sentence.tags]
        assert is_legal(tags)
        counted += 1
        total += len(spans(tags))

    assert counted == sentences
    assert found is None or total == found


def test_the_hash_tokens_of_wikigold_are_tokens() -> None:
    assert (
        sum(
            token == "#"
            for sentence in formats.read(DATA / "wikigold" / "wikigold.conll.txt")
            for token in sentence.tokens
        )
        == 39
    )


def test_the_two_stray_i_tags_of_webpage_are_mended() -> None:
    options = Options()
    list(formats.read(DATA / "webpage" / "train.tsv", options=options))

    assert options.counts == {"rewritten as BIO": 2}


def test_the_empty_tokens_of_the_broad_twitter_corpus_keep_their_place() -> None:
    options = Options()
    tokens = [
        token
        for name in ("btc.dev", "btc.test")
        for s in formats.read(DATA / "btc" / name, options=options)
        for token in s.tokens
    ]

    assert options.counts["empty token"] == tokens.count("\ufffd") == 7
