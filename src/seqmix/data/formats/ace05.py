"""ACE 2005 event triggers: documents X.sgm, each with X.apf.xml beside it; for reading only.

The corpus comes from the LDC (LDC2006T06).
Offsets count the characters of the .sgm without its tags, an entity like &amp; as five characters,
and END is the last character.
Tags are BIO over event subtypes, or over types with `Options.key` TYPE.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from xml.parsers import expat

from seqmix.data.formats.base import Format, Options, at, decode_utf8, read_bytes
from seqmix.data.formats.charspans import Placed, confirmed, from_placed
from seqmix.data.sentence import Sentence
from seqmix.data.text import CharSpan
from seqmix.errors import DataError, TagError

_APF, _SGM = ".apf.xml", ".sgm"
# Possessive, since a tag without an end must not be tried again from its middle.
_TAG = re.compile(r"<(/?)([A-Za-z][^\s<>]*+)[^<>]*+>")
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'"}
_ENTITY = re.compile("|".join(_ENTITIES))
_BREAK = re.compile(
    r"""[.!?]["'\u2019\u201d)\]]*(\s+)(?=["'\u2018\u201c(\[]*(\w))|(\n[ \t]*\n\s*)"""
)
_SHORT = re.compile(r"(?:\b\w|\b(?:Mr|Mrs|Ms|Dr|St|Gen|Sen|Rep|Gov|Lt|Col|Sgt|Capt|Prof))\.$")


@dataclass(frozen=True)
class Trigger:
    """The anchor of one event mention, `end` inclusive as in the file, and its line."""

    start: int
    end: int
    text: str
    type: str
    subtype: str
    line: int


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield sentences as `document:number`; a document without .apf.xml is unlabeled."""
    for name, source, labels in _documents(path):
        text, start, end = plain_text(source)
        spans = None
        if labels is not None:
            placed = _spans(labels, text, start, end, options)
            spans = sorted(placed, key=lambda placed: placed[1].start)
        starts = [span.start for _, span in spans or ()]
        for number, (a, b) in enumerate(_cut(text, start, end, spans or []), 1):
            first, last = bisect_left(starts, a), bisect_left(starts, b)
            inside = None if spans is None else spans[first:last]
            yield _sentence(f"{name}:{number}", text[a:b], inside, a, labels or source, options)


def triggers(path: Path) -> list[Trigger]:
    """Return the triggers of an .apf.xml; a DTD is never fetched, and entities are refused."""
    mentions: list[Trigger] = []
    event: dict[str, str] = {}
    inside: list[str] = []
    place: dict[str, str] = {}
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        inside.append(name)
        if name == "event":
            event.clear()
            event.update(attributes)
        elif inside[-3:] == ["event_mention", "anchor", "charseq"]:
            place.clear()
            place.update(attributes, line=str(parser.CurrentLineNumber), text="")

    def data(text: str) -> None:
        if inside[-3:] == ["event_mention", "anchor", "charseq"]:
            place["text"] += text

    def end(name: str) -> None:
        if inside[-3:] == ["event_mention", "anchor", "charseq"]:
            mentions.append(_trigger(event, place, path))
        inside.pop()

    def refuse(*_: object) -> None:
        raise DataError(
            "expected a file without entity declarations", path, parser.CurrentLineNumber
        )

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = data
    parser.EntityDeclHandler = parser.SkippedEntityHandler = refuse
    raw = read_bytes(path)
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        # A slice, since expat also ends lines at a lone \r and may count more lines than there are.
        line = b"".join(raw.split(b"\n")[error.lineno - 1 : error.lineno])
        raise DataError(
            f"expected XML ({expat.ErrorString(error.code)})",
            path,
            error.lineno,
            line.decode("utf-8", "backslashreplace"),
        ) from error
    return mentions


def _trigger(event: dict[str, str], place: dict[str, str], path: Path) -> Trigger:
    line = int(place["line"])
    start, end = place.get("START", ""), place.get("END", "")
    if not re.fullmatch(r"[0-9]{1,12} [0-9]{1,12}", f"{start} {end}"):
        raise DataError(
            "expected charseq to have the numbers START and END", path, line, f"{start!r}, {end!r}"
        )
    if not event.get("TYPE") or not event.get("SUBTYPE"):
        raise DataError("expected the event to have TYPE and SUBTYPE", path, line, str(event))
    return Trigger(int(start), int(end), place["text"], event["TYPE"], event["SUBTYPE"], line)


def _documents(path: Path) -> Iterator[tuple[str, Path, Path | None]]:
    """Yield name, text and annotations of each document.

    The same document in several annotations (adj, fp1, fp2, timex2norm) is an error.
    """
    if not path.is_dir():
        yield _pair(path)
        return
    seen: dict[str, Path] = {}
    for source in sorted(
        {_with(file, _SGM) for suffix in (_SGM, _APF) for file in path.rglob(f"*{suffix}")}
    ):
        name, text, annotations = _pair(source)
        if name in seen:
            raise DataError(
                f"the document {name} is also in {seen[name]}; "
                "name the folder of one annotation, timex2norm",
                source,
            )
        seen[name] = source.parent
        yield name, text, annotations


def _pair(path: Path) -> tuple[str, Path, Path | None]:
    source, annotations = _with(path, _SGM), _with(path, _APF)
    if not source.is_file():
        raise DataError(f"expected the text {source.name} beside the annotations", annotations)
    return source.name.removesuffix(_SGM), source, annotations if annotations.is_file() else None


def _with(path: Path, suffix: str) -> Path:
    return path.with_name(path.name.removesuffix(_APF).removesuffix(_SGM) + suffix)


def plain_text(path: Path) -> tuple[str, int, int]:
    """Return the text without tags, and where in it TEXT (or BODY) starts and ends."""
    raw = decode_utf8(read_bytes(path), path).removeprefix("\ufeff")
    pieces, at, length = [], 0, 0
    places: dict[str, int] = {}
    for tag in _TAG.finditer(raw):
        pieces.append(raw[at : tag.start()])
        length += len(pieces[-1])
        at = tag.end()
        key = tag[1] + tag[2].upper()
        # The first opening tag and the last closing one.
        places[key] = length if tag[1] else places.get(key, length)
    pieces.append(raw[at:])
    for name in ("TEXT", "BODY"):
        if name in places:
            return "".join(pieces), places[name], max(places.get(f"/{name}", 0), places[name])
    raise DataError("expected an SGML document with <TEXT> or <BODY>", path, 1, raw[:80])


def _spans(path: Path, text: str, start: int, end: int, options: Options) -> Iterator[Placed]:
    """Yield each trigger once, by its place in the text."""
    kinds = {
        (t.start, t.end, t.type if options.key == "TYPE" else t.subtype): t for t in triggers(path)
    }
    for (first, last, kind), trigger in sorted(kinds.items()):
        with at(path, trigger.line, trigger.text):
            span = confirmed(
                CharSpan(first, last + 1, kind), trigger.text, text, options, _unescaped
            )
            if span is not None and _lies_inside(span, start, end, options):
                yield trigger.line, span


def _lies_inside(span: CharSpan, start: int, end: int, options: Options) -> bool:
    """Whether a trigger is in the part that is read; else raise an error, or count it."""
    if start <= span.start < span.end <= end:
        return True
    if options.misaligned == "error":
        raise TagError(
            f"expected the trigger at {span.start} inside TEXT; "
            "--read misaligned=drop leaves it out"
        )
    options.counts["outside TEXT"] += 1
    return False


def _cut(text: str, start: int, end: int, spans: list[Placed]) -> Iterator[tuple[int, int]]:
    """Yield sentences: they end before a capital or an empty line, never inside a trigger."""
    at = start
    starts = [span.start for _, span in spans]
    ends = list(accumulate((span.end for _, span in spans), max))  # the furthest up to each
    for match in _BREAK.finditer(text, start, end):
        punctuated = match[1] is not None
        if punctuated and not match[2].isupper():
            continue
        if punctuated and _SHORT.search(text[max(at, match.start() - 8) : match.start() + 1]):
            continue
        place = match.start(1) if punctuated else match.start()
        before = bisect_left(starts, place)  # triggers that start before the break
        if before and place < ends[before - 1]:
            continue
        yield from _stripped(text, at, place)
        at = place
    yield from _stripped(text, at, end)


def _stripped(text: str, a: int, b: int) -> Iterator[tuple[int, int]]:
    cut = text[a:b]
    if cut.strip():
        a += len(cut) - len(cut.lstrip())
        yield a, a + len(cut.strip())


def _sentence(
    id: str,
    raw: str,
    spans: list[Placed] | None,
    start: int,
    path: Path,
    options: Options,
) -> Sentence:
    """Return the sentence with entities decoded, and its spans moved to match."""
    entities = list(_ENTITY.finditer(raw))
    behind = [entity.end() + start for entity in entities]
    shorter = [0, *accumulate(len(entity[0]) - 1 for entity in entities)]

    def moved(place: int) -> int:
        place = min(place, start + len(raw))
        return place - start - shorter[bisect_right(behind, place)]

    placed = None
    if spans is not None:
        placed = [(line, CharSpan(moved(s.start), moved(s.end), s.type)) for line, s in spans]
    return from_placed(id, _unescaped(raw), placed, options, path)


def _unescaped(text: str) -> str:
    return _ENTITY.sub(lambda entity: _ENTITIES[entity[0]], text)


FORMAT = Format(
    "ace05",
    read,
    None,
    suffixes=(_SGM, _APF),
    folder=lambda path: next(path.rglob(f"*{_APF}"), None) is not None,
    holds=frozenset({"text"}),
)
