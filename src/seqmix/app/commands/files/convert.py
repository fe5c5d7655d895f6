"""`seqmix convert`: labeled data in another format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import count, say
from seqmix.app.options import Data, Read, To, parse_read, parse_to
from seqmix.app.reading.data import read_data
from seqmix.data import formats
from seqmix.data.overwriting import refuse_source
from seqmix.data.sentence import Sentence

Out = Annotated[Path, typer.Argument(help="Where to write; the format follows the name.")]


def convert(data: Data, out: Out, read: Read = "", to: To = "") -> None:
    """Convert labeled data from one format to another."""
    reading = parse_read(read)
    writing = parse_to(to, reading.options)
    refuse_source(out, data)
    total = 0

    def count_sentences() -> Iterator[Sentence]:
        nonlocal total
        for sentence in read_data(data, reading):
            total += 1
            yield sentence

    formats.write(count_sentences(), out, writing.format, writing.options)
    notes = "".join(f"; {n} {what}" for what, n in sorted(writing.options.counts.items()))
    say(f"{count(total, 'sentence')} written to {out}{notes}")
