"""Make augmenters, tables of embeddings and loaders of taggers from the settings that name them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.app.taggers import absolute_name, load_tagger
from seqmix.augment.combined import Together
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.replacement import Replacement
from seqmix.augment.seqmix import SeqMix
from seqmix.augment.settings import (
    AUGMENTERS,
    COMBINED,
    METHODS,
    TABLES,
    VARIANTS,
    AugmentSettings,
    Mixing,
    base_of,
)
from seqmix.augment.single_thread import SingleThread
from seqmix.augment.table import Table
from seqmix.augment.table_sources import contextual_table, encoder_table, vocabulary_table
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError
from seqmix.protocols import Augmenter
from seqmix.settings import at
from seqmix.starter import STARTER
from seqmix.tagger import Settings, Tagger


def build_augmenter(
    settings: AugmentSettings, round: int = 0, judge: Perplexity | None = None, **parts: Any
) -> Augmenter:
    """Return SeqMix in one of its variants, or a baseline, as a round of the settings has it.

    `parts` are the table, the alphabet and the trace of SeqMix.
    """
    variant = settings.variant
    if variant in METHODS:
        return Replacement(variant)
    if variant == COMBINED:
        mixing = replace(settings, variant="sub", windows="spans")
        return Together((Replacement("mention"), build_augmenter(mixing, round, judge, **parts)))
    if variant not in VARIANTS:
        raise ConfigError(f"augment.variant must be one of {', '.join(AUGMENTERS)}; got {variant}")
    if judge is None and settings.limits is not None:
        judge = Perplexity(settings.lm, settings.base or base_of(variant))
    shared = {field.name: getattr(settings, field.name) for field in fields(Mixing)}
    shared["alpha"] = at(settings.alpha, round)
    return SeqMix(**shared, discriminator=judge, **parts)


def augmenter_again(
    settings: AugmentSettings, encoder: str, starts: Any, parts: Mapping[str, Any]
) -> Augmenter:
    """Return the same augmenter in another process, to which the table itself cannot be sent.

    `starts` are the entries that may be generated; None for an augmenter without a table.
    """
    table = None
    if starts is not None:
        table = replace(_again_table(encoder, settings.distance), starts=starts)
    return SingleThread(build_augmenter(settings, table=table, **parts))


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
    """Return the table {W, E} of a source.

    `trained` trains on the sentences first unless a tagger is given; `contextual` reads the
    unlabeled ones as well, since a loop mixes them once they are labeled.
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


def tagger_loader(
    folders: Sequence[Path], device: str | None, int8: bool = False
) -> Callable[[], Sequence[Any]]:
    """Return a function that loads taggers and can be sent to a worker."""
    return partial(_load_taggers, tuple(map(absolute_name, folders)), device, int8)


def _load_taggers(names: Sequence[str], device: str | None, int8: bool) -> list[Any]:
    taggers = [load_tagger(name, device) for name in names]
    return [tagger.int8() for tagger in taggers] if int8 else taggers
