"""What the commands share: how data is named on the command line, and how it is read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from seqmix.app.console import say
from seqmix.app.options import group
from seqmix.data import formats
from seqmix.data.samples import is_sample, sample
from seqmix.data.scheme import SCHEMES
from seqmix.data.sentence import Sentence, unique_ids
from seqmix.errors import ConfigError, DataError

reading = group("How the data is read")
Data = Annotated[
    str,
    typer.Argument(
        help="A file or folder in any format read, or a sample: gazette:train, gazette:dev, gazette:test."
    ),
]
FormatName = Annotated[
    str | None,
    reading(
        help="The format of the input, when the guess is wrong: " + ", ".join(formats.FORMATS) + "."
    ),
]
TagColumn = Annotated[
    int, reading(help="CoNLL columns: which holds the tags, counted from 0; -1 is the last.")
]
TokenColumn = Annotated[int, reading(help="CoNLL columns: which holds the tokens.")]
Comment = Annotated[
    str,
    reading(help="CoNLL columns: lines that start with this are comments (by default none are)."),
]
Key = Annotated[str, reading(help="CoNLL-U: UPOS, XPOS or a key of the MISC column.")]
Misaligned = Annotated[str, reading(help="A span that cuts a token: error, expand or drop.")]
Quiet = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def format_options(**given: Any) -> formats.Options:
    """Options for reading and writing, once the words given are certain to be known ones."""
    for name, allowed in (
        ("misaligned", ("error", "expand", "drop")),
        ("scheme", (None, *SCHEMES[:-1])),
    ):
        if given.get(name, allowed[0]) not in allowed:
            raise ConfigError(
                f"--{name} is {given[name]!r}; it must be one of {', '.join(str(a) for a in allowed if a)}"
            )
    return formats.Options(**given)


def read_data(name: str, format: str | None, options: formats.Options) -> Iterable[Sentence]:
    """Sentences of a file, a folder or a sample."""
    if is_sample(name) and not Path(name).exists():
        return sample(name)
    return formats.read(name, format, options)


def labeled_data(name: str, format: str | None, options: formats.Options) -> list[Sentence]:
    """The labeled sentences; what was mended on the way is said."""
    sentences = unique_ids(read_data(name, format, options))
    labeled = [sentence for sentence in sentences if sentence.labeled and len(sentence)]
    if not labeled:
        raise DataError(f"no sentence here has labels; {_read_as(name, format)}", name)
    for what, n in sorted(options.counts.items()):
        say(f"{name}: {n} {what}")
    options.counts.clear()
    return labeled


def _read_as(name: str, format: str | None) -> str:
    """How the data was read, and how to say otherwise."""
    known = format or (formats.guess(Path(name)).name if Path(name).exists() else "conll")
    what = "raw text, a sentence a line" if known == "text" else known
    others = ", ".join(other for other in formats.FORMATS if other not in ("text", known))
    return f"it was read as {what}, and --format says otherwise: {others}"


def drawn(sentences: list[Sentence], limit: int | None, rng: np.random.Generator) -> list[Sentence]:
    """All sentences, or so many of them at random."""
    if limit is None:
        return sentences
    if not 0 < limit <= len(sentences):
        raise ConfigError(
            f"--limit {limit} of {len(sentences)} labeled sentences; it must lie between 1 and all of them"
        )
    return [sentences[i] for i in rng.permutation(len(sentences))[:limit]]
