"""brat standoff: documents X.txt, each with its annotations beside it in X.ann.

    T1	PER 0 4	Lena

A sentence is a line of the text, with the id `document:line`. Only T lines (spans) are read. A document without .ann is unlabeled. Spans
in pieces (0 4;9 13) and over a line end follow `Options.misaligned`. Reading takes a folder or one file of a pair, writing makes a folder.
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
from seqmix.data.formats.base import Format, Options, at, writable_folder
from seqmix.data.formats.charspans import (
    char_span,
    confirmed,
    from_placed,
    one_line,
    surface,
    to_spans,
)
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan
from seqmix.errors import DataError, TagError

Placed = tuple[int, CharSpan]  # a span and the line of the .ann file it stands in
_SPAN = re.compile(
    r"T[^\t]*\t(\S+) ([0-9]{1,12} [0-9]{1,12}(?:;[0-9]{1,12} [0-9]{1,12})*)(?:\t(.*))?", re.DOTALL
)


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """The lines of each document that are not empty, documents by name."""
    for name, file, labels in _documents(path):
        text = _text(file)
        found = (
            None
            if labels is None
            else sorted(_spans(labels, text, options), key=lambda placed: placed[1].start)
        )
        yield from _sentences(name, text, found, options, labels or file)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Neighbors whose ids agree up to the last colon share a document, one sentence a line."""
    if path.suffix in (".txt", ".ann"):
        raise DataError("brat is a folder of .txt and .ann files; name a folder", path)
    writable_folder(path, lambda file: file.suffix in (".txt", ".ann"))
    used: Counter[str] = Counter()
    with replacing(path, folder=True) as beside:
        for (document, labeled), group in groupby(
            sentences, lambda s: (s.id.rpartition(":")[0] or s.id, s.labeled)
        ):
            _write_document(
                group, beside / _free(file_name(document), beside, used), labeled, options
            )


def file_name(document: str) -> str:
    """A name that is safe on any disk: %XX for anything but [A-Za-z0-9._-], never hidden, empty or a way up, never too long."""
    safe = re.sub(rb"[^A-Za-z0-9._-]", lambda c: b"%%%02X" % c[0][0], document.encode()).decode()
    safe = "%2E" + safe[1:] if safe.startswith(".") else safe or "document"
    return (
        safe
        if len(safe) <= 120
        else f"{safe[:100]}-{hashlib.sha256(document.encode()).hexdigest()[:16]}"
    )


def _documents(path: Path) -> Iterator[tuple[str, Path, Path | None]]:
    """Name, text and annotations of each document."""
    if not path.is_dir():
        yield (path.stem, *_pair(path))
        return
    for file in sorted(
        {file.with_suffix(".txt") for suffix in ("*.txt", "*.ann") for file in path.rglob(suffix)}
    ):
        yield (file.relative_to(path).with_suffix("").as_posix(), *_pair(file))


def _pair(path: Path) -> tuple[Path, Path | None]:
    file, annotations = path.with_suffix(".txt"), path.with_suffix(".ann")
    if not file.is_file():
        raise DataError(f"expected the text {file.name} beside the annotations", annotations)
    return file, annotations if annotations.is_file() else None


def _text(path: Path) -> str:
    """The text as brat counts it: every character one, line ends as they are. A byte order mark becomes a space."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        shown = error.object[max(0, error.start - 40) : error.end + 40].decode(
            "utf-8", "backslashreplace"
        )
        raise DataError("expected UTF-8 text", path, line, shown) from error
    return " " + text[1:] if text.startswith("\ufeff") else text


def _spans(path: Path, text: str, options: Options) -> Iterator[Placed]:
    for line, row in lines(path):
        if not row.startswith("T"):
            continue
        found = _SPAN.fullmatch(row)
        if found is None:
            raise DataError(
                "expected T, a number, a tab, a label and its start and end: T1\\tPER 0 4\\tLena",
                path,
                line,
                row,
            )
        with at(path, line, row):
            span = _span(found, text, options)
        if span is not None:
            yield line, span


def _span(found: re.Match[str], text: str, options: Options) -> CharSpan | None:
    pieces = [tuple(int(n) for n in piece.split()) for piece in found[2].split(";")]
    hull = char_span(min(a for a, _ in pieces), max(b for _, b in pieces), found[1])
    if not hull.start < hull.end <= len(text):
        raise TagError(f"a span must lie inside its text of {len(text)} characters")
    if len(pieces) == 1:
        return confirmed(hull, found[3], text, options)
    if options.misaligned == "error":
        raise TagError(
            "a span in pieces has no place in tags; --read misaligned=expand takes all between, drop leaves it out"
        )
    options.counts["discontinuous"] += 1
    return hull if options.misaligned == "expand" else None


def _sentences(
    name: str, text: str, found: list[Placed] | None, options: Options, path: Path
) -> Iterator[Sentence]:
    start = taken = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line, end = raw.removesuffix("\r"), start + len(raw) + 1
        here: list[Placed] | None = None
        if found is not None:
            here = []
            while taken < len(found) and found[taken][1].start < end:
                here += _inside(found[taken], start, line, options, path)
                taken += 1
        if line.strip() or here:
            yield from_placed(f"{name}:{number}", line, here, options, path)
        start = end


def _inside(placed: Placed, start: int, line: str, options: Options, path: Path) -> list[Placed]:
    """The span counted from the start of its line; none if it runs on into the next one."""
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


def _free(name: str, folder: Path, used: Counter[str]) -> str:
    """The name, with a number behind it where another document has it already."""
    while True:
        used[name] += 1
        free = name if used[name] == 1 else f"{name}-{used[name]}"
        if not (folder / f"{free}.txt").exists():
            return free


def _write_document(
    sentences: Iterable[Sentence], base: Path, labeled: bool, options: Options
) -> None:
    """subtle: an .ann without spans says that there are none; without labels there must be no .ann at all."""
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
                annotations.write(
                    f"T{next(numbers)}\t{_label(span, sentence)} {place}\t{text[span.start : span.end]}\n"
                )
            start += len(text) + 1


def _label(span: CharSpan, sentence: Sentence) -> str:
    if re.search(r"\s", span.type):
        raise TagError(
            f"sentence {sentence.id!r}: a label with white space has no place in brat",
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
