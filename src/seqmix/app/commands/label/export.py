"""`seqmix export`: the labels of a project as a file, or a tagger for other libraries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqmix.app.commands.label.export_tagger import export_tagger, is_of_tagger
from seqmix.app.console import count, say
from seqmix.app.options import WriteOptions as Writing
from seqmix.app.options import parse_to, to_option
from seqmix.data import formats
from seqmix.data.formats.records import write_lines
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError

if TYPE_CHECKING:  # a project needs SQLAlchemy, which a tagger does not
    from seqmix.serve.project import Project

# what labeled sentences are: drawn at random, answered one by one, accepted in one go, answered by
# a language model, or labeled before the project
PARTS = ("audit", "active", "bulk", "source", "seed")
SPLITS = ("labeled", "all", *PARTS)
Folder = Annotated[
    Path,
    typer.Argument(
        metavar="PROJECT|MODEL",
        help="A project folder created by init, or a folder written by train.",
    ),
]
Place = Annotated[Path | None, typer.Argument(metavar="OUT", help="The same as --out.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Where to write; the format follows the name unless --to names one."),
]
To = Annotated[
    str,
    to_option(
        " For a tagger: hf, onnx, onnx-int8, spacy (spacy:de for German) or spacy-onnx, such as "
        "seqmix export ner --to onnx --out ner.onnx. For a project, onnx and spacy export the "
        "newest tagger, and hf writes the labels as a dataset (PROJECT/models/latest: the tagger)."
    ),
]
Split = Annotated[
    str,
    typer.Option(
        metavar="WHICH",
        help="labeled; all (the unlabeled too); a part of the labeled: audit (random), active "
        "(answered one by one), bulk (accepted in one go), source (by language models) or seed; "
        "answers (JSONL of every annotator: who, when, how long, suggested by what) or "
        "answers:NAME (those of one annotator).",
    ),
]
Partial = Annotated[
    str, typer.Option(help="What to do with partly labeled sentences: keep or drop.")
]
Test = Annotated[
    str | None,
    typer.Option(help="A tagger: labeled data to measure the export on."),
]


def export(
    folder: Folder,
    place: Place = None,
    out: Out = None,
    to: To = "",
    split: Split = "labeled",
    partial: Partial = "keep",
    test: Test = None,
) -> None:
    """Export a project's labels to a file, or a tagger to hf, onnx, spacy and others.

    A label is the adjudicated answer, else the first annotator's; the seed is written too.
    A tagger becomes a folder for Hugging Face (hf) or spaCy (spacy, or spacy:de for German text;
    spacy-onnx needs no seqmix where it runs), or one file for onnxruntime (onnx or onnx-int8).
    """
    target = _one_place(place, out)
    if is_of_tagger(folder, to, target):
        export_tagger(folder, target, to, test)
        return
    if test is not None:
        raise ConfigError(f"--test measures a tagger, and {folder} is not one")
    if partial not in ("keep", "drop"):
        raise ConfigError(f"--partial must be keep or drop; got {partial!r}")
    from seqmix.serve.project import open_project

    with open_project(folder) as project:
        say(_export_labels(project, target, parse_to(to), split, partial == "drop"))


def _one_place(place: Path | None, out: Path | None) -> Path:
    if place is not None and out is not None:
        raise ConfigError(f"give OUT or --out, not both; got {place} and {out}")
    if (target := place or out) is None:
        raise ConfigError("say where to write: --out FILE or --out FOLDER")
    return target


def _export_labels(
    project: Project, out: Path, writing: Writing, split: str, drop_partial: bool
) -> str:
    """Write a part of a project's labels and return a line that says what was written."""
    from seqmix.serve.answer_records import answer_records, split_by_id

    if split == "answers":
        if writing.format not in (None, "jsonl-tokens"):
            raise ConfigError(
                f"--split answers is written as jsonl-tokens; got --to {writing.format}; "
                "answers:NAME, of one annotator, can be written in any format"
            )
        formats.refuse_other_file(out, formats.FORMATS["jsonl-tokens"])
        records = list(answer_records(project.store))
        write_lines(records, out)
        return f"{count(len(records), 'answer')} written to {out}"
    mixes = split in ("labeled", "all")
    parts = split_by_id(project.store) if mixes else {}
    selected = Selected(drop_partial, _holds_missing(writing.format, out), parts)
    sentences = _sentences_of(project, split)
    formats.write(selected.of(sentences), out, writing.format, writing.options)
    notes = [selected.mixed()] if mixes and len(selected.parts) > 1 else []
    notes += [f"{selected.left_out} partly labeled left out"] if selected.left_out else []
    notes += [f"{n} {what}" for what, n in sorted(writing.options.counts.items())]
    return "; ".join([f"{count(selected.written, 'sentence')} written to {out}", *notes])


def _sentences_of(project: Project, split: str) -> Iterator[Sentence]:
    """Return the sentences of a split; refuse one that is unknown or has none."""
    from seqmix.serve.answer_records import labeled_answers, split_by_id
    from seqmix.serve.store.sentences import read_labeled

    kind, _, annotator = split.partition(":")
    if kind == "answers" and annotator:
        return labeled_answers(project.store, annotator)
    if split not in SPLITS:
        raise ConfigError(
            f"--split must be one of {', '.join(SPLITS)}, answers or answers:NAME; got {split!r}"
        )
    if split == "all":
        return read_labeled(project.store, unlabeled=True)

    def of_split() -> Iterator[Sentence]:
        if split in ("labeled", "audit", "seed"):
            return read_labeled(project.store, *(() if split == "labeled" else (split,)))
        parts, labeled = split_by_id(project.store), read_labeled(project.store, "active")
        return (s for s in labeled if parts.get(s.id, "active") == split)

    if next(of_split(), None) is None:
        of = "" if split == "labeled" else f" the stream {split} of"
        raise DataError(
            f"nobody has labeled a sentence of{of} {project.folder} yet; "
            "--split all writes the text without labels"
        )
    return of_split()


class Selected:
    """The sentences to write, counted as they pass."""

    def __init__(
        self, drop_partial: bool, holds_missing: bool, part_by_id: Mapping[str, str]
    ) -> None:
        self.drop_partial, self.holds_missing = drop_partial, holds_missing
        self.written = self.left_out = 0
        self.parts, self._part_by_id = Counter[str](), part_by_id

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
            if sentence.labeled:
                self.parts[self._part_by_id.get(sentence.id, "active")] += 1
            yield sentence

    def mixed(self) -> str:
        """Return how many of the labeled sentences are of which part."""
        said = {"bulk": " (accepted in one go)", "source": " (by language models)"}
        counts = [f"{self.parts[p]} {p}{said.get(p, '')}" for p in PARTS if self.parts[p]]
        return f"of these {', '.join(counts)}"


def _holds_missing(format: str | None, out: Path) -> bool:
    """Whether the format holds partial labels; `formats.write` refuses an unknown one."""
    by_name = (f for f in formats.FORMATS.values() if out.name.endswith(f.suffixes or ("\0",)))
    chosen = formats.FORMATS.get(format) if format else next(by_name, None)
    return chosen is None or "missing" in chosen.holds
