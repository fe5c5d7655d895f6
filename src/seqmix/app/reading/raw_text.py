"""Raw text as sentences: those found in it, its lines or its paragraphs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise

from seqmix.app.options import ReadOptions
from seqmix.data.sentence import Sentence
from seqmix.data.sentence_ends import sentence_spans

_LOOKED_AT = 1000  # lines, to see whether they are wrapped
_WRAPPED = 0.9  # of the line ends inside paragraphs
_SMALL = 0.3  # of the lines behind these
_LEAST = 3  # line ends, or nothing is known
_NARROWEST, _WIDEST = 40, 200  # characters of a wrapped line
Lines = Iterator[tuple[int, str]]


def raw_sentences(
    lines: Iterable[tuple[int, str]], document: str, reading: ReadOptions, row: int | None = None
) -> Iterator[Sentence]:
    """Yield the sentences of numbered lines as `document:line`, and further ones as `line.2`.

    All lines of a table's `row` have its number.
    """
    counted: dict[int, int] = {}
    for line, text in _texts(iter(lines), reading.unit):
        number = line if row is None else row
        if number not in counted:
            counted = {number: 0}  # numbers rise
        counted[number] += 1
        nth = f".{counted[number]}" if counted[number] > 1 else ""
        id = f"{document}:{number}{nth}"
        yield Sentence.from_text(text, id, tokenizer=reading.options.tokenizer)


def _texts(lines: Lines, unit: str) -> Lines:
    """Yield the text of each sentence with the number of the line where its block begins."""
    if unit == "line":
        yield from ((number, line) for number, line in lines if line.strip())
    elif unit == "paragraph":
        yield from ((first, "\n".join(block)) for first, block in _paragraphs(lines))
    else:
        first = list(islice(lines, _LOOKED_AT))
        blocks: Lines = chain(first, lines)
        if is_wrapped([line for _, line in first]):
            blocks = ((at, " ".join(map(str.strip, block))) for at, block in _paragraphs(blocks))
        for number, text in blocks:
            yield from ((number, text[a:b]) for a, b in sentence_spans(text))


def _paragraphs(lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines up to an empty one, with the number of the first."""
    paragraph: list[str] = []
    first = 0
    for number, line in lines:
        if line.strip():
            first = first if paragraph else number
            paragraph.append(line)
        elif paragraph:
            yield first, paragraph
            paragraph = []
    if paragraph:
        yield first, paragraph


def is_wrapped(lines: Sequence[str]) -> bool:
    """Whether lines were broken to fit a width, so that sentences continue in the next line.

    Of such lines hardly any has room for the next line's first word, and many continue with a
    small letter.
    """
    width = max(map(len, lines), default=0)
    inside = [(line, after) for line, after in pairwise(lines) if line.strip() and after.strip()]
    if len(inside) < _LEAST or not _NARROWEST <= width <= _WIDEST:
        return False
    full = sum(len(line) + 1 + len(after.split()[0]) > width for line, after in inside)
    small = sum(after.lstrip()[0].islower() for _, after in inside)
    return full >= _WRAPPED * len(inside) and small >= _SMALL * len(inside)
