"""Words in context: a masked LM chooses among the entries nearest to a mixed embedding."""

from __future__ import annotations

import numpy as np

from seqmix.augment.in_context import Gap, fill
from seqmix.augment.seqmix import SeqMix
from seqmix.augment.table_sources import encoder_table
from seqmix.data.samples import sample
from seqmix.starter import STARTER

TABLE = encoder_table()


def ids(*words: str) -> list[int]:
    return [TABLE.words.index(word) for word in words]


def test_the_word_that_fits_the_sentence_is_chosen():
    sentence = ("The", "capital", "of", "X", "is", "Paris", ".")
    gaps = [
        Gap(sentence, 3, ids("because", "France", "seven")),
        Gap(("She", "was", "born", "X", "London"), 3, ids("France", "in", "seven")),
    ]
    assert [TABLE.words[id] for id in fill(gaps, TABLE, STARTER)] == ["France", "in"]


def test_the_nearest_entries_come_nearest_first_and_never_those_that_are_excluded():
    query = TABLE.vector("London")[None]
    barred = ids("London")
    (near,) = TABLE.near(query, [barred], 5)
    nearest, _ = TABLE.nearest(query, [barred])
    distances = TABLE.exact(query[0], np.array(near))

    assert len(near) == 5 and near[0] == nearest[0] and not set(near) & set(barred)
    assert list(distances) == sorted(distances)


def test_generated_words_are_among_the_nearest_and_keep_tags_and_lineage():
    sentences = sample("gazette:train")[:12]
    settings = {"variant": "sub", "windows": "spans", "score_range": None, "table": TABLE}
    plain = SeqMix(**settings).augment(sentences, 4, np.random.default_rng(0))
    chosen = SeqMix(**settings, in_context=20).augment(sentences, 4, np.random.default_rng(0))

    assert len(plain) == len(chosen) == 4
    for nearest, other in zip(plain, chosen, strict=True):
        assert other.lineage == nearest.lineage
        assert other.sentence.tags == nearest.sentence.tags
        start, end = other.lineage.windows[other.lineage.into]
        assert other.sentence.tokens[:start] == nearest.sentence.tokens[:start]
        assert other.sentence.tokens[end:] == nearest.sentence.tokens[end:]
    assert [a.sentence.tokens for a in plain] != [b.sentence.tokens for b in chosen]
