"""brat standoff: documents X.txt, each with its annotations beside it in X.ann.

    T1	PER 0 4	Lena

A sentence is a line of the text, with the id `document:line`; a document without .ann is unlabeled.
Only T lines (spans) are read.
Spans in pieces (0 4;9 13) or across a line end follow `Options.misaligned`.
A folder or one file of a pair can be read; a folder is written.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count, groupby
from pathlib import Path

from seqmix.data.files import lines, replacing
from seqmix.data.formats.base import (
    Format,
    Options,
    at,
    decode_utf8,
    read_bytes,
)
from seqmix.data.formats.charspans import (
    Placed,
    char_span,
    confirmed,
    from_placed,
    one_line,
    surface,
    to_spans,
)
from seqmix.data.overwriting import FolderKind
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan
from seqmix.errors import DataError, TagError

_SPAN = re.compile(
    r"T[^\t]*\t(\S+) ([0-9]{1,12} [0-9]{1,12}(?:;[0-9]{1,12} [0-9]{1,12})*)(?:\t(.*))?", re.DOTALL
)

_FOLDER = FolderKind("a brat corpus", ("*.ann",), ("*.txt",))


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield the lines of each document that are not empty, documents by name."""
    for name, file, labels in _documents(path):
        text = _text(file)
        spans = None
        if labels is not None:
            spans = sorted(_spans(labels, text, options), key=lambda placed: placed[1].start)
        yield from _sentences(name, text, spans, options, labels or file)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write a folder; neighbors whose ids agree up to the last colon share a document."""
    if path.suffix in (".txt", ".ann"):
        raise DataError("brat is a folder of .txt and .ann files; name a folder", path)
    used: Counter[str] = Counter()
    with replacing(path, _FOLDER) as beside:
        documents = groupby(sentences, lambda s: (s.id.rpartition(":")[0] or s.id, s.labeled))
        for (document, labeled), group in documents:
            name = _unused_name(file_name(document), beside, used)
            _write_document(group, beside / name, labeled, options)


def file_name(document: str) -> str:
    """Return a file name that is safe on any disk: %XX for anything but [A-Za-z0-9._-].

    It is never hidden, empty, too long, or a way to a parent folder.
    """
    safe = re.sub(rb"[^A-Za-z0-9._-]", lambda c: b"%%%02X" % c[0][0], document.encode()).decode()
    safe = "%2E" + safe[1:] if safe.startswith(".") else safe or "document"
    if len(safe) <= 120:
        return safe
    return f"{safe[:100]}-{hashlib.sha256(document.encode()).hexdigest()[:16]}"


def _documents(path: Path) -> Iterator[tuple[str, Path, Path | None]]:
    """Yield name, text and annotations of each document."""
    if not path.is_dir():
        yield (path.stem, *_pair(path))
        return
    files = {f.with_suffix(".txt") for suffix in ("*.txt", "*.ann") for f in path.rglob(suffix)}
    for file in sorted(files):
        yield (file.relative_to(path).with_suffix("").as_posix(), *_pair(file))


def _pair(path: Path) -> tuple[Path, Path | None]:
    file, annotations = path.with_suffix(".txt"), path.with_suffix(".ann")
    if not file.is_file():
        raise DataError(f"expected the text {file.name} beside the annotations", annotations)
    return file, annotations if annotations.is_file() else None


def _text(path: Path) -> str:
    """Return the text as brat counts it: line ends unchanged, and a BOM as a space."""
    text = decode_utf8(read_bytes(path), path)
    return " " + text[1:] if text.startswith("\ufeff") else text


def _spans(path: Path, text: str, options: Options) -> Iterator[Placed]:
    for line, row in lines(path):
        if not row.startswith("T"):
            continue
        match = _SPAN.fullmatch(row)
        if match is None:
            raise DataError(
                "expected T, a number, a tab, a label and its start and end: T1\\tPER 0 4\\tLena",
                path,
                line,
                row,
            )
        with at(path, line, row):
            span = _span(match, text, options)
        if span is not None:
            yield line, span


def _span(match: re.Match[str], text: str, options: Options) -> CharSpan | None:
    pieces = [tuple(int(n) for n in piece.split()) for piece in match[2].split(";")]
    hull = char_span(min(a for a, _ in pieces), max(b for _, b in pieces), match[1])
    if not hull.start < hull.end <= len(text):
        raise TagError(f"a span must lie inside its text of {len(text)} characters")
    if len(pieces) == 1:
        return confirmed(hull, match[3], text, options)
    if options.misaligned == "error":
        raise TagError(
            "tags cannot express a span in pieces; "
            "--read misaligned=expand includes all between, drop leaves it out"
        )
    options.counts["discontinuous"] += 1
    return hull if options.misaligned == "expand" else None


def _sentences(
    name: str, text: str, spans: list[Placed] | None, options: Options, path: Path
) -> Iterator[Sentence]:
    start = taken = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line, end = raw.removesuffix("\r"), start + len(raw) + 1
        in_line: list[Placed] | None = None
        if spans is not None:
            in_line = []
            while taken < len(spans) and spans[taken][1].start < end:
                in_line += _within_line(spans[taken], start, line, options, path)
                taken += 1
        if line.strip() or in_line:
            yield from_placed(f"{name}:{number}", line, in_line, options, path)
        start = end


def _within_line(
    placed: Placed, start: int, line: str, options: Options, path: Path
) -> list[Placed]:
    """Return the span counted from the start of its line; none if it extends into the next."""
    number, span = placed
    if span.end <= start + len(line):
        return [(number, CharSpan(span.start - start, span.end - start, span.type))]
    if options.misaligned == "error":
        raise TagError(
            "a span must end on its line; --read misaligned=drop leaves it out",
            path,
            number,
            f"{span.type} {span.start} {span.end}",
        )
    options.counts["misaligned"] += 1
    return []


def _unused_name(name: str, folder: Path, used: Counter[str]) -> str:
    """Return the name, with a number if another document has it."""
    while True:
        used[name] += 1
        numbered = name if used[name] == 1 else f"{name}-{used[name]}"
        if not (folder / f"{numbered}.txt").exists():
            return numbered


def _write_document(
    sentences: Iterable[Sentence], base: Path, labeled: bool, options: Options
) -> None:
    """Write a document's .txt, and its .ann if it is labeled: an empty .ann means no spans."""
    start, numbers = 0, count(1)
    with (
        base.with_name(f"{base.name}.txt").open("w", encoding="utf-8", newline="\n") as file,
        (base.with_name(f"{base.name}.ann") if labeled else Path(os.devnull)).open(
            "w", encoding="utf-8", newline="\n"
        ) as annotations,
    ):
        for sentence in sentences:
            text, offsets = surface(sentence, options)
            text = one_line(text, options)
            file.write(text + "\n")
            for span in to_spans(sentence, offsets):
                place = f"{start + span.start} {start + span.end}"
                label, covered = _label(span, sentence), text[span.start : span.end]
                annotations.write(f"T{next(numbers)}\t{label} {place}\t{covered}\n")
            start += len(text) + 1


def _label(span: CharSpan, sentence: Sentence) -> str:
    if re.search(r"\s", span.type):
        raise TagError(
            f"sentence {sentence.id!r}: brat cannot hold a label with white space",
            text=span.type,
        )
    return span.type


FORMAT = Format(
    "brat",
    read,
    write,
    suffixes=(".ann",),
    folder=lambda path: next(path.rglob("*.ann"), None) is not None,
    holds=frozenset({"text"}),
)
