"""`seqmix init`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqmix.app.console import emit, progress
from seqmix.app.options import group
from seqmix.app.read_data import (
    Comment,
    FormatName,
    Misaligned,
    TagColumn,
    TokenColumn,
    format_options,
    labeled_data,
    reading,
)
from seqmix.app.read_text import read_text
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError
from seqmix.query.policies import POLICIES, policy_spec

if TYPE_CHECKING:
    from seqmix.serve.project import Created

Folder = Annotated[Path, typer.Argument(help="A project folder made by init.")]
_learning, _measuring = group("How the model learns along"), group("How it is measured")


def init(
    folder: Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder to make.")],
    text: Annotated[
        str,
        typer.Option(
            help="What to label: a file or folder in any format read, raw text a line a sentence, or a CSV file."
        ),
    ],
    tags: Annotated[
        str, typer.Option(help="The types of span there are, such as PER,ORG,LOC; at most 35.")
    ],
    column: Annotated[str | None, reading(help="CSV: the column that holds the text.")] = None,
    unit: Annotated[
        str, reading(help="Raw text: what a sentence is, a line or a paragraph.")
    ] = "line",
    labels: Annotated[
        str | None,
        typer.Option(
            help="What to do with labels the text has already: keep them as seed, or drop them."
        ),
    ] = None,
    seed_labels: Annotated[
        str | None, typer.Option(help="More labeled sentences to learn from, in any format read.")
    ] = None,
    guidelines: Annotated[
        Path | None, typer.Option(help="A Markdown file to show beside the text.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What to call the project; the folder's name by default.")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="postgresql://user@host/database for a team; a file in the folder by default."
        ),
    ] = None,
    policy: Annotated[
        str, _learning(help="How sentences are chosen: " + ", ".join(POLICIES) + ".")
    ] = "nte",
    audit: Annotated[
        float, _measuring(help="The share of random sentences, for an honest F1.")
    ] = 0.1,
    overlap: Annotated[
        float, _measuring(help="The share of sentences a second annotator answers too.")
    ] = 0.0,
    batch: Annotated[int, _learning(help="New answers between two trainings.")] = 10,
    encoder: Annotated[
        str, _learning(help="starter, a Hugging Face name, or a folder.")
    ] = "starter",
    head: Annotated[str, _learning(help="linear or crf.")] = "linear",
    augment: Annotated[
        str, _learning(help="SeqMix's variant: whole, sub, label, or none.")
    ] = "sub",
    direction: Annotated[str, typer.Option(help="Of the text: auto, ltr or rtl.")] = "auto",
    seed: Annotated[int, _learning(help="Same seed, same order of sentences.")] = 0,
    format: FormatName = None,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    misaligned: Misaligned = "error",
) -> None:
    """Create a project from raw text for people to label."""
    from seqmix.serve.project import Settings, create_project

    if labels not in (None, "keep", "drop"):
        raise ConfigError(f"--labels is {labels!r}; it must be keep or drop")
    options = format_options(
        tag_column=tag_column, token_column=token_column, comment=comment, misaligned=misaligned
    )
    settings = Settings(
        name=name or folder.absolute().name,
        tags=tuple(tag.strip() for tag in tags.split(",")),
        store=store,
        policy=_known_policy(policy, head),
        audit_share=audit,
        overlap_share=overlap,
        batch=batch,
        direction=direction,
        encoder=encoder,
        head=head,
        augment=augment,
        seed=seed,
    )
    seeds = _seeds(seed_labels, options) if seed_labels is not None else []
    shown = _guidelines(guidelines)
    with progress("reading", "sentences") as update:
        given = _counted(
            _as_asked(read_text(text, format, options, column, unit), labels, text), update
        )
        made = create_project(folder, given, settings, shown, seeds, keep_labels=labels == "keep")
    _tell(made, folder, options)


def _known_policy(name: str, head: str) -> str:
    if head not in ("linear", "crf"):
        raise ConfigError(f"--head is {head!r}; it must be linear or crf")
    if "crf" in policy_spec(name).needs and head != "crf":
        raise ConfigError(f"the policy {name} needs --head crf; got {head}")
    return name


def _seeds(name: str, options: formats.Options) -> list[Sentence]:
    """Labeled sentences under names of their own, so that they do not meet those of the text."""
    return [
        replace(sentence, id=f"seed:{sentence.id}")
        for sentence in labeled_data(name, None, options)
    ]


def _guidelines(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"cannot read the guidelines: {error.strerror if isinstance(error, OSError) else 'expected UTF-8 text'}",
            path,
        ) from error


def _as_asked(given: Iterable[Sentence], labels: str | None, name: str) -> Iterator[Sentence]:
    """The sentences with their labels or without; which of the two must be said where there are labels."""
    for sentence in given:
        if sentence.labeled and labels is None:
            raise ConfigError(
                f"{name} has labels already: --labels keep takes them as seed, --labels drop asks for them anew"
            )
        yield sentence.unlabeled() if labels == "drop" else sentence


def _counted(given: Iterable[Sentence], update: Callable[..., None]) -> Iterator[Sentence]:
    for number, sentence in enumerate(given, 1):
        yield sentence
        if number % 1000 == 0:
            update(number)


def _tell(made: Created, folder: Path, options: formats.Options) -> None:
    """What there is now, and what to do next."""
    twice, empty = made.text.duplicates + made.seed.duplicates, made.text.empty
    notes = [
        f"{n} {what}"
        for what, n in (
            (f"duplicate{'s' * (twice != 1)} stored once", twice),
            ("without tokens left out", empty),
        )
        if n
    ]
    notes += [
        f"{n} {what}"
        for what, n in sorted(options.counts.items())
        if what != "no tokens" or not empty
    ]
    emit(
        "; ".join(
            [
                f"{folder}: {made.pool} sentences to label, {made.audit} of them set apart for an honest F1",
                *notes,
            ]
        )
    )
    if made.labeled:
        emit(f"{made.labeled} sentences have labels already: the seed")
    emit(
        f"\nseqmix annotate {folder}\n    opens the page and prints your link: you are the admin, under your user name"
    )
    emit(
        f"seqmix project {folder} --add NAME\n    prints a link for somebody else; each answers under a token of their own"
    )
    emit(f"seqmix status {folder}\nseqmix export {folder} --format conll --out labels.conll")
