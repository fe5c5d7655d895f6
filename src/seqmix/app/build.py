"""The only file that names concrete classes: plain tables from name to part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from seqmix.augment.combined import COMBINED, Together
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.pairing import VARIANTS
from seqmix.augment.replacement import METHODS, Replacement
from seqmix.augment.score_range import ScoreRange
from seqmix.augment.seqmix import SeqMix, base_of
from seqmix.augment.single_thread import SingleThread
from seqmix.augment.table import Table, contextual_table, encoder_table, vocabulary_table
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError
from seqmix.protocols import Augmenter
from seqmix.starter import STARTER
from seqmix.tagger import Settings, Tagger

AUGMENTERS = (*VARIANTS, *METHODS, COMBINED)
TABLES = ("encoder", "trained", "contextual")


def build_augmenter(
    variant: str,
    table: Table | None = None,
    lm: str = "starter",
    base: Any = None,
    judge: Perplexity | None = None,
    **settings: Any,
) -> Augmenter:
    """SeqMix in one of its variants, or a baseline, by name; no base means the variant's."""
    if variant in METHODS:
        return Replacement(variant)
    if variant == COMBINED:
        spans = build_augmenter("sub", table, lm, base, judge, **{**settings, "windows": "spans"})
        return Together((Replacement("mention"), spans))
    if variant not in VARIANTS:
        raise ConfigError(f"there is no variant {variant!r}; there are {', '.join(AUGMENTERS)}")
    judge = judge or (
        Perplexity(lm, base or base_of(variant))
        if settings.get("score_range") is not None
        else None
    )
    return SeqMix(variant, table=table, discriminator=judge, **settings)


def augmenter_again(
    variant: str,
    encoder: str,
    distance: Any,
    starts: Any,
    lm: str,
    base: Any,
    settings: Mapping[str, Any],
) -> Augmenter:
    """The same augmenter in another process: a table cannot be sent there, but what may be generated (`starts`) can."""
    table = replace(_again_table(encoder, distance), starts=starts) if starts is not None else None
    return SingleThread(build_augmenter(variant, table, lm, base, **settings))


@lru_cache(maxsize=1)
def _again_table(encoder: str, distance: Any) -> Table:
    return build_table("encoder", encoder, distance, (), np.random.default_rng(0))


def build_table(
    source: str,
    encoder: str,
    distance: Any,
    sentences: Sequence[Sentence],
    rng: np.random.Generator,
    tagger: Tagger | None = None,
    unlabeled: Sequence[Sentence] = (),
) -> Table:
    """The table {W, E} by the name of its source.

    `trained` trains on the sentences first unless a tagger is given; `contextual` reads the unlabeled ones as well, since a loop
    will mix them once they are labeled.
    """
    if source == "encoder":
        return _starter_table(distance) if encoder == STARTER else encoder_table(encoder, distance)
    if source == "trained":
        tagger = tagger or Tagger(encoder, settings=Settings()).fit(sentences, rng)
        return vocabulary_table(*tagger.input_embeddings(), distance)
    if source == "contextual":
        tagger = tagger or Tagger(encoder).start(TagSet.of(sentences), rng)
        text = [*sentences, *unlabeled]
        return contextual_table(text, tagger.embeddings(text), distance)
    raise ConfigError(f"there is no table {source!r}; there are {', '.join(TABLES)}")


@lru_cache(maxsize=3)
def _starter_table(distance: Any) -> Table:
    """Kept for all runs of a process: what CSLS knows about the table takes a CPU ten seconds."""
    return encoder_table(STARTER, distance)


def parse_score_range(text: str) -> ScoreRange | None:
    """Read `0x,400x` (factors per new word), `0,500` (scores), `5%,95%` (quantiles of the real sentences' scores) or `off`."""
    if text == "off":
        return None
    low, _, high = text.partition(",")
    unit = next((unit for unit in ("%", "x") if low.endswith(unit) and high.endswith(unit)), "")
    try:
        first, second = (
            float(part.removesuffix(unit)) / (100 if unit == "%" else 1) for part in (low, high)
        )
    except ValueError:
        raise ConfigError(
            f"--score-range must look like 0x,400x or 0,500 or 5%,95% or off; got {text!r}"
        ) from None
    return ScoreRange(first, second, quantiles=unit == "%", relative=unit == "x")
