"""`seqmix init`: a project from raw text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from seqmix.app.config import parse_changes
from seqmix.app.console import emit, progress
from seqmix.app.options import ReadOptions, group, parse_read, read_option
from seqmix.app.project_config import project_config
from seqmix.app.reading.data import labeled_data
from seqmix.app.reading.text import read_text
from seqmix.app.taggers import with_start
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError

if TYPE_CHECKING:
    from seqmix.serve.project import Created

_learning = group("Settings")
Folder = Annotated[Path, typer.Argument(metavar="PROJECT", help="The folder to create.")]
Text = Annotated[
    str,
    typer.Option(
        help="What to label: a file or folder in any format read, raw text (split into "
        "sentences) or a CSV file."
    ),
]
Tags = Annotated[str, typer.Option(help="The span types, such as PER,ORG,LOC; at most 35.")]
Labels = Annotated[
    str | None,
    typer.Option(help="What to do with labels the text already has: keep them as seed, or drop."),
]
SeedLabels = Annotated[
    str | None, typer.Option(help="More labeled sentences to learn from, in any format read.")
]
Guidelines = Annotated[Path | None, typer.Option(help="A Markdown file to show beside the text.")]
Store = Annotated[
    str | None,
    _learning(
        help="postgresql://user@host/database for a team; a file in the folder by default.",
    ),
]
Policy = Annotated[str, _learning(help="How sentences are chosen; see docs/loop.md.")]
Change = Annotated[
    list[str] | None,
    _learning(
        "--set",
        help="Any other setting, such as name=Notes, audit_share=0.1, overlap_share=0.2, batch=10, "
        "direction=rtl, start=hf:FOLDER (a model that suggests at once), encoder=FOLDER, head=crf, "
        "augment=none or seed=1; repeatable.",
    ),
]
_FIXED = {
    "tags": "--tags",
    "store": "--store",
    "policy": "--policy",
    "tokens": "--read tokens=web, for instance,",
}


def init(
    folder: Folder,
    text: Text,
    tags: Tags,
    read: Annotated[str, read_option("column", "unit")] = "",
    labels: Labels = None,
    seed_labels: SeedLabels = None,
    guidelines: Guidelines = None,
    store: Store = None,
    policy: Policy = "nte",
    change: Change = None,
) -> None:
    """Create a project from raw text for people to label."""
    from seqmix.serve.project import create_project
    from seqmix.serve.settings import ProjectSettings

    if labels not in (None, "keep", "drop"):
        raise ConfigError(f"--labels must be keep or drop; got {labels!r}")
    reading = parse_read(read, "column", "unit")
    values: dict[str, Any] = {
        "name": folder.absolute().name,
        "tags": [tag.strip() for tag in tags.split(",")],
        "policy": policy,
        "tokens": reading.options.tokenizer,
        **({} if store is None else {"store": store}),
    }
    changes = parse_changes(change)
    for key in changes.keys() & _FIXED.keys():
        raise ConfigError(f"--set {key}: give {_FIXED[key]} instead")
    settings = with_start(ProjectSettings(**{**values, **changes}))
    project_config(folder, settings)  # refuses contradictions before anything is read
    seeds = _seeds(seed_labels, reading) if seed_labels is not None else []
    shown = _guidelines(guidelines)
    with progress("reading", "sentences") as update:
        sentences = with_progress(
            checked(read_text(text, reading), labels, text, "--labels "), update
        )
        created = create_project(
            folder, sentences, settings, shown, seeds, keep_labels=labels == "keep"
        )
    _say_next(created, folder, reading)


def _seeds(name: str, reading: ReadOptions) -> list[Sentence]:
    """Return labeled sentences under ids that cannot meet those of the text."""
    sentences = labeled_data(name, replace(reading, format=None))
    return [replace(sentence, id=f"seed:{sentence.id}") for sentence in sentences]


def _guidelines(path: Path | None) -> str | None:
    try:
        return None if path is None else path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "expected UTF-8 text"
        raise DataError(f"cannot read the guidelines: {reason}", path) from error


def checked(
    sentences: Iterable[Sentence], labels: str | None, name: str, how: str
) -> Iterator[Sentence]:
    """Yield the sentences with or without their labels; refuse to guess which is meant."""
    for sentence in sentences:
        if sentence.labeled and labels is None:
            raise ConfigError(
                f"{name} already has labels: {how}keep uses them as seed, "
                f"{how}drop asks for them again"
            )
        yield sentence.unlabeled() if labels == "drop" else sentence


def with_progress(sentences: Iterable[Sentence], update: Callable[..., None]) -> Iterator[Sentence]:
    """Yield the sentences, and say how many they are every now and then."""
    for number, sentence in enumerate(sentences, 1):
        yield sentence
        if number % 1000 == 0:
            update(number)


def _say_next(created: Created, folder: Path, reading: ReadOptions) -> None:
    """Print what there is now, and what to do next."""
    twice, empty = created.text.duplicates + created.seed.duplicates, created.text.empty
    notes = [f"{twice} duplicate{'s' * (twice != 1)} stored once"] if twice else []
    notes += [f"{empty} without tokens left out"] if empty else []
    counts = reading.options.counts
    notes += [
        f"{n} {what}" for what, n in sorted(counts.items()) if what != "no tokens" or not empty
    ]
    sizes = f"{created.pool} sentences to label, {created.audit} of them set apart for an honest F1"
    emit("; ".join([f"{folder}: {sizes}", *notes]))
    if created.labeled:
        emit(f"{created.labeled} sentences already have labels: the seed")
    emit(
        f"\nseqmix annotate {folder}\n"
        "    opens the page and prints your link: you are the admin, under your user name\n"
        f"seqmix project {folder} annotator add NAME\n"
        "    prints a link for somebody else; everybody answers under their own token\n"
        f"seqmix info {folder}\n"
        f"seqmix export {folder} --out labels.conll"
    )
