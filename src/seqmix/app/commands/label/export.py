"""`seqmix export`: the labels of a project as a file, or a tagger for Hugging Face."""

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
    Path,
    typer.Argument(
        metavar="PROJECT|MODEL",
        help="A project folder created by init, or a folder written by train.",
    ),
]
Out = Annotated[
    Path, typer.Option(help="Where to write; the format follows the name unless --to names one.")
]
All = Annotated[bool, typer.Option("--all", help="Write unlabeled sentences too, without labels.")]
Partial = Annotated[
    str, typer.Option(help="Sentences labeled in part: keep them so, or drop them.")
]
Test = Annotated[
    str | None,
    typer.Option(help="A tagger: labeled data to measure it on, for the model card."),
]


def export(
    folder: Folder,
    out: Out,
    to: To = "",
    all_sentences: All = False,
    partial: Partial = "keep",
    test: Test = None,
) -> None:
    """Export a project's labels to a file, or a tagger for Hugging Face.

    A label is the adjudicated answer, else the first annotator's; the seed is written too.
    """
    if (folder / "tagger.json").is_file():
        _export_tagger(folder, out, to, test)
        return
    if test is not None:
        raise ConfigError(f"--test measures a tagger, and {folder} is not one")
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


def _export_tagger(folder: Path, out: Path, to: str, test: str | None) -> None:
    """Write a tagger as a folder that Hugging Face's libraries load."""
    from seqmix.app.options import Reading
    from seqmix.app.read_data import labeled_data
    from seqmix.export.hf import export_hf
    from seqmix.tagger import Tagger

    if to != "hf":
        raise ConfigError(f"a tagger is exported with --to hf; got {to!r}")
    sentences = labeled_data(test, Reading(None, formats.Options())) if test else []
    measured = export_hf(Tagger.load(folder, "cpu"), out, sentences)
    say(f"a Hugging Face model is in {out}; its README.md says how to use it")
    if measured is not None:
        say(
            f"F1 {100 * measured.with_decoder.f1:.2f} with its decode.py, "
            f"{100 * measured.without.f1:.2f} without; "
            f"{count(measured.differing, 'tag')} of {measured.tokens} differ"
        )


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
