"""Labeled data for the commands: a file, a folder or a sample."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from seqmix.app.console import say
from seqmix.app.options import Reading
from seqmix.data import formats
from seqmix.data.samples import is_sample, sample
from seqmix.data.sentence import Sentence, unique_ids
from seqmix.errors import ConfigError, DataError


def read_data(name: str, reading: Reading) -> Iterable[Sentence]:
    """Return the sentences of a file, a folder or a sample."""
    if is_sample(name) and not Path(name).exists():
        return sample(name)
    return formats.read(name, reading.format, reading.options)


def labeled_data(name: str, reading: Reading) -> list[Sentence]:
    """Return the labeled sentences; print what was repaired on the way."""
    sentences = unique_ids(read_data(name, reading))
    labeled = [sentence for sentence in sentences if sentence.labeled and len(sentence)]
    if not labeled:
        raise DataError(f"no sentence here has labels; {_read_as(name, reading.format)}", name)
    counts = reading.options.counts
    for what, n in sorted(counts.items()):
        say(f"{name}: {n} {what}")
    counts.clear()
    return labeled


def _read_as(name: str, format: str | None) -> str:
    """Say how the data was read, and how to change that."""
    used = format or (formats.guess(Path(name)).name if Path(name).exists() else "conll")
    described = "raw text, one sentence per line" if used == "text" else used
    rest = ", ".join(name for name in formats.FORMATS if name not in ("text", used))
    return f"it was read as {described}; --read FORMAT reads it as another: {rest}"


def drawn(sentences: list[Sentence], limit: int | None, rng: np.random.Generator) -> list[Sentence]:
    """Return all sentences, or `limit` of them drawn at random."""
    if limit is None:
        return sentences
    if not 0 < limit <= len(sentences):
        raise ConfigError(
            f"--limit must be between 1 and {len(sentences)}, the labeled sentences; got {limit}"
        )
    return [sentences[i] for i in rng.permutation(len(sentences))[:limit]]
