"""Data for the commands: a file, a folder, a sample, or the splits of a corpus."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from seqmix.app.config import Config
from seqmix.app.console import say
from seqmix.app.options import ReadOptions
from seqmix.data import formats
from seqmix.data.samples import is_sample, sample
from seqmix.data.sentence import Sentence, unique_ids
from seqmix.errors import ConfigError, DataError

_SPLITS = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}


def read_data(name: str, reading: ReadOptions) -> Iterable[Sentence]:
    """Return the sentences of a file, a folder or a sample."""
    if is_sample(name) and not Path(name).exists():
        return sample(name)
    return formats.read(name, reading.format, reading.options)


def labeled_data(name: str, reading: ReadOptions) -> list[Sentence]:
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


def read_splits(folder: str, config: Config) -> dict[str, list[Sentence]]:
    """Return train, dev and test of a data folder in any format read, or of a sample."""
    if is_sample(folder) and not Path(folder).exists():
        return {name: sample(f"{folder}:{name}") for name in _SPLITS}
    place = Path(folder)
    if not place.is_dir():
        raise DataError(
            "expected a folder with files named train, dev and test, in any format read", place
        )
    columns = config.data
    options = formats.Options(tag_column=columns.tag_column, token_column=columns.token_column)
    splits = {}
    for name, stems in _SPLITS.items():
        files = [path for path in sorted(place.iterdir()) if stems_of(path) & set(stems)]
        if not files:
            raise DataError(
                f"there is no file for {name} here: it should be named {' or '.join(stems)}, "
                f"such as {stems[0]}.txt",
                place,
            )
        sentences = unique_ids(formats.read(files[0], None, options))
        splits[name] = [sentence for sentence in sentences if sentence.labeled and len(sentence)]
    return splits


def stems_of(path: Path) -> set[str]:
    """Return the words of a file name: `wnut17.dev.conll` -> {"wnut17", "dev", "conll"}."""
    return set(path.name.lower().replace("-", ".").replace("_", ".").split("."))
