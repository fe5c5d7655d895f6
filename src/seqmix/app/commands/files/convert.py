"""`seqmix convert`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import count, say
from seqmix.app.read_data import (
    Comment,
    Data,
    FormatName,
    Key,
    Misaligned,
    TagColumn,
    TokenColumn,
    format_options,
    read_data,
)
from seqmix.data import formats
from seqmix.data.scheme import SCHEMES
from seqmix.data.sentence import Sentence


def convert(
    data: Data,
    out: Annotated[Path, typer.Argument(help="Where to write; the format follows the name.")],
    format: FormatName = None,
    to: Annotated[
        str | None, typer.Option(help="The format to write, when the name does not tell.")
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(help="The scheme to write: " + ", ".join(SCHEMES[:-1]) + ". BIO by default."),
    ] = None,
    harden: Annotated[
        bool,
        typer.Option(
            help="Write soft labels as their heaviest tag where the format holds no soft ones."
        ),
    ] = False,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    key: Key = "UPOS",
    misaligned: Misaligned = "error",
) -> None:
    """Convert labeled data from one format to another."""
    options = format_options(
        tag_column=tag_column,
        token_column=token_column,
        comment=comment,
        key=key,
        misaligned=misaligned,
        scheme=scheme,
        harden=harden,
    )
    total = 0

    def counted() -> Iterator[Sentence]:
        nonlocal total
        for sentence in read_data(data, format, options):
            total += 1
            yield sentence

    formats.write(counted(), out, to, options)
    say(
        f"{count(total, 'sentence')} written to {out}"
        + "".join(f"; {n} {what}" for what, n in sorted(options.counts.items()))
    )
