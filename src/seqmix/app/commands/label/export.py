"""`seqmix export`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqmix.app.console import count, say
from seqmix.app.options import group
from seqmix.app.read_data import (
    format_options,
)
from seqmix.data import formats
from seqmix.data.scheme import SCHEMES
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError

if TYPE_CHECKING:
    pass

Folder = Annotated[Path, typer.Argument(help="A project folder made by init.")]
_learning, _measuring = group("How the model learns along"), group("How it is measured")


def export(
    folder: Folder,
    out: Annotated[
        Path, typer.Option(help="Where to write; the format follows the name unless told.")
    ],
    format: Annotated[
        str | None,
        typer.Option(
            help="The format to write: "
            + ", ".join(n for n, f in formats.FORMATS.items() if f.write)
        ),
    ] = None,
    all_sentences: Annotated[
        bool,
        typer.Option("--all", help="Write the sentences nobody has labeled too, without labels."),
    ] = False,
    partial: Annotated[
        str, typer.Option(help="Sentences labeled in part: keep them so, or drop them.")
    ] = "keep",
    scheme: Annotated[
        str | None,
        typer.Option(help="The scheme to write: " + ", ".join(SCHEMES[:-1]) + ". BIO by default."),
    ] = None,
    harden: Annotated[
        bool,
        typer.Option(
            help="Write soft seed labels as their heaviest tag where the format holds no soft ones."
        ),
    ] = False,
) -> None:
    """Export a project's labels to a file."""
    from seqmix.serve.store.sentences import read_labeled

    if partial not in ("keep", "drop"):
        raise ConfigError(f"--partial is {partial!r}; it must be keep or drop")
    options = format_options(scheme=scheme, harden=harden)
    left_out = written = 0

    def chosen(found: Iterable[Sentence]) -> Iterator[Sentence]:
        nonlocal left_out, written
        holds = _holds(format, out)
        for sentence in found:
            if (
                sentence.labeled
                and None in sentence.tags
                and (partial == "drop" or "missing" not in holds)
            ):
                if partial == "keep":
                    raise DataError(
                        f"sentence {sentence.id!r} is labeled in part, which this format cannot hold; conll and jsonl-tokens can, "
                        "and --partial drop leaves such sentences out"
                    )
                left_out += 1
                continue
            written += 1
            yield sentence

    from seqmix.serve.project import open_project

    with open_project(folder) as own:
        if not all_sentences and next(iter(read_labeled(own.store)), None) is None:
            raise DataError(
                f"nobody has labeled a sentence of {folder} yet; --all writes the text without labels"
            )
        formats.write(
            chosen(read_labeled(own.store, unlabeled=all_sentences)), out, format, options
        )
    notes = [
        *([f"{left_out} labeled in part left out"] if left_out else []),
        *(f"{n} {what}" for what, n in sorted(options.counts.items())),
    ]
    say("; ".join([f"{count(written, 'sentence')} written to {out}", *notes]))


def _holds(format: str | None, out: Path) -> frozenset[str]:
    """What the format to write can hold; an unknown one is left to `formats.write` to refuse."""
    found = (
        formats.FORMATS.get(format)
        if format
        else next(
            (f for f in formats.FORMATS.values() if out.name.endswith(f.suffixes or ("\0",))), None
        )
    )
    return found.holds if found is not None else frozenset({"missing"})
