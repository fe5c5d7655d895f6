"""CoNLL-U: ten columns, of which the word and the tag (UPOS, XPOS or a key of MISC) are read.

    # sent_id = s1
    # text = Lena left.
    1	Lena	_	PROPN	_	_	_	_	_	NER=B-PER

`Options.key` names the place of the tag; a key of MISC holds BIO tags.
Multiword tokens (3-4) and empty nodes (8.1) are skipped.
A tag of `_`, or a MISC without the key, is a missing row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from seqmix.data.files import lines, replacing
from seqmix.data.formats.base import Format, Options, visible
from seqmix.data.formats.charspans import one_line, surface
from seqmix.data.formats.conll import MISSING, writable, writable_tag
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Offsets
from seqmix.data.text import checked_offsets
from seqmix.errors import DataError, TagError

_COLUMNS = {"UPOS": 3, "XPOS": 4}
_MISC = 9
_RESERVED = ("SpaceAfter", "TokenRange")
_COMMENT = re.compile(r"#\s*(sent_id|text)\s*= ?(.*)", re.DOTALL)


@dataclass
class _Block:
    """The lines of one sentence."""

    comments: dict[str, str] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    tags: list[str | None] = field(default_factory=list)
    misc: list[dict[str, str]] = field(default_factory=list)
    multiword: bool = False


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield sentences by their sent_id, or as `stem:number`."""
    block, number = _Block(), 0
    for line, text in lines(path):
        if not text.strip(" \t"):
            if block.words:
                number += 1
                yield _sentence(block, f"{path.stem}:{number}", options)
            block = _Block()
        elif text.startswith("#"):
            if comment := _COMMENT.fullmatch(text):
                block.comments[comment[1]] = comment[2]
        else:
            _add(block, text.split("\t"), options, path, line, text)
    if block.words:
        yield _sentence(block, f"{path.stem}:{number + 1}", options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write words and tags; every other column is `_`."""
    if options.key in _RESERVED or not re.fullmatch(r"[^\s=|]+", options.key):
        raise DataError(
            "expected the key to be UPOS, XPOS or a name for MISC without white space, = and |",
            path,
            None,
            options.key,
        )
    with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for sentence in sentences:
            _write_sentence(sentence, file, options)


def _add(
    block: _Block, columns: list[str], options: Options, path: Path, line: int, text: str
) -> None:
    if len(columns) != 10:
        raise DataError(
            f"expected 10 columns separated by tabs, found {len(columns)}", path, line, text
        )
    if re.fullmatch(r"[0-9]+[-.][0-9]+", columns[0]):
        block.multiword |= "-" in columns[0]
        return
    if columns[0] != str(len(block.words) + 1):
        raise DataError(
            f"expected word {len(block.words) + 1} of the sentence, "
            "or an empty line before the next one",
            path,
            line,
            text,
        )
    pairs = (pair.partition("=") for pair in columns[_MISC].split("|"))
    misc = {key: value for key, _, value in pairs}
    column = _COLUMNS.get(options.key)
    tag = misc.get(options.key, MISSING) if column is None else columns[column]
    if not tag:
        raise TagError(f"expected a tag or _ in {options.key}", path, line, text)
    block.words.append(columns[1])
    block.tags.append(None if tag == MISSING else tag)
    block.misc.append(misc)


def _sentence(block: _Block, id: str, options: Options) -> Sentence:
    # The words of a multiword token are not in the text.
    text, offsets = (None if block.multiword else _located(block)) or (None, None)
    words = visible(block.words, options)
    return Sentence(block.comments.get("sent_id") or id, words, tuple(block.tags), text, offsets)


def _located(block: _Block) -> tuple[str, Offsets] | None:
    """Return text and offsets by TokenRange, by search, or by SpaceAfter=No."""
    text = block.comments.get("text")
    if text is not None:
        ranges = _ranges(block, text) or _search(block.words, text)
        if ranges is not None:
            return text, ranges
    glued = [misc.get("SpaceAfter") == "No" for misc in block.misc]
    if not any(glued):
        return None
    text, offsets = "", []
    for word, no_space in zip(block.words, glued, strict=True):
        offsets.append((len(text), len(text) + len(word)))
        text += word if no_space else word + " "
    return text.removesuffix(" "), tuple(offsets)


def _ranges(block: _Block, text: str) -> Offsets | None:
    try:
        pairs = [[int(n) for n in misc.get("TokenRange", "").split(":")] for misc in block.misc]
        offsets = checked_offsets(pairs, text)
    except (ValueError, DataError):  # no ranges, or ranges that count from the document's start
        return None
    words = [text[a:b] for a, b in offsets]
    return offsets if words == block.words else None


def _search(words: Sequence[str], text: str) -> Offsets | None:
    """Return where the words are in the text, with nothing but white space between."""
    offsets, at = [], 0
    for word in words:
        while not text.startswith(word, at) and text[at : at + 1].isspace():
            at += 1
        if not word or not text.startswith(word, at):
            return None
        offsets.append((at, at + len(word)))
        at += len(word)
    return tuple(offsets)


def _write_sentence(sentence: Sentence, file: TextIO, options: Options) -> None:
    file.write(f"# sent_id = {_comment(sentence.id, sentence)}\n")
    text, offsets = surface(sentence, options)
    raw = one_line(text, options) if text == sentence.text else None
    if raw is not None:
        file.write(f"# text = {raw}\n")
    exact = raw is None or _search(sentence.tokens, raw) == offsets
    for at, (token, row) in enumerate(zip(sentence.tokens, sentence.tags, strict=True)):
        tag = writable_tag(row, sentence)
        columns = [str(at + 1), writable(token, sentence), *[MISSING] * 8]
        if options.key in _COLUMNS:
            columns[_COLUMNS[options.key]] = tag
        misc = []
        if options.key not in _COLUMNS and tag != MISSING:
            misc.append(f"{options.key}={_misc(tag, sentence)}")
        if raw is not None and at + 1 < len(offsets) and offsets[at][1] == offsets[at + 1][0]:
            misc.append("SpaceAfter=No")
        if not exact:
            misc.append(f"TokenRange={offsets[at][0]}:{offsets[at][1]}")
        columns[_MISC] = "|".join(misc) or MISSING
        file.write("\t".join(columns) + "\n")
    file.write("\n")


def _misc(tag: str, sentence: Sentence) -> str:
    if "|" in tag:
        raise TagError(f"sentence {sentence.id!r}: MISC cannot hold a tag with |", text=tag)
    return tag


def _comment(value: str, sentence: Sentence) -> str:
    if "\n" in value or "\r" in value:
        raise DataError(f"sentence {sentence.id!r}: a comment cannot hold a line end", text=value)
    return value


FORMAT = Format(
    "conllu",
    read,
    write,
    suffixes=(".conllu",),
    holds=frozenset({"tokens", "tags", "missing", "id", "text"}),
)
