"""`seqmix export`: the labels of a project as a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import count, say
from seqmix.app.options import To, parse_to
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError

Folder = Annotated[
    Path, typer.Argument(metavar="PROJECT", help="A project folder created by init.")
]
Out = Annotated[
    Path, typer.Option(help="Where to write; the format follows the name unless --to names one.")
]
All = Annotated[bool, typer.Option("--all", help="Write unlabeled sentences too, without labels.")]
Partial = Annotated[
    str, typer.Option(help="Sentences labeled in part: keep them so, or drop them.")
]


def export(
    folder: Folder,
    out: Out,
    to: To = "",
    all_sentences: All = False,
    partial: Partial = "keep",
) -> None:
    """Export a project's labels to a file.

    A label is the adjudicated answer, else the first annotator's; the seed is written too.
    """
    from seqmix.serve.project import open_project
    from seqmix.serve.store.sentences import read_labeled

    if partial not in ("keep", "drop"):
        raise ConfigError(f"--partial must be keep or drop; got {partial!r}")
    writing = parse_to(to)
    selected = Selected(partial == "drop", _holds_missing(writing.format, out))
    with open_project(folder) as project:
        if not all_sentences and next(iter(read_labeled(project.store)), None) is None:
            raise DataError(
                f"nobody has labeled a sentence of {folder} yet; "
                "--all writes the text without labels"
            )
        labeled = read_labeled(project.store, unlabeled=all_sentences)
        formats.write(selected.of(labeled), out, writing.format, writing.options)
    notes = [f"{selected.left_out} labeled in part left out"] if selected.left_out else []
    notes += [f"{n} {what}" for what, n in sorted(writing.options.counts.items())]
    say("; ".join([f"{count(selected.written, 'sentence')} written to {out}", *notes]))


class Selected:
    """The sentences to write, counted as they pass."""

    def __init__(self, drop_partial: bool, holds_missing: bool) -> None:
        self.drop_partial, self.holds_missing = drop_partial, holds_missing
        self.written = self.left_out = 0

    def of(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yield the sentences that can be written; refuse the first that cannot."""
        for sentence in sentences:
            is_partial = sentence.labeled and None in sentence.tags
            if is_partial and self.drop_partial:
                self.left_out += 1
                continue
            if is_partial and not self.holds_missing:
                raise DataError(
                    f"sentence {sentence.id!r} is labeled in part, which this format cannot hold; "
                    "conll and jsonl-tokens can, and --partial drop leaves such sentences out"
                )
            self.written += 1
            yield sentence


def _holds_missing(format: str | None, out: Path) -> bool:
    """Whether the format holds partial labels; `formats.write` refuses an unknown one."""
    by_name = (f for f in formats.FORMATS.values() if out.name.endswith(f.suffixes or ("\0",)))
    chosen = formats.FORMATS.get(format) if format else next(by_name, None)
    return chosen is None or "missing" in chosen.holds
