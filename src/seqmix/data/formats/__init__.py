"""Read and write labeled sentences in the formats people have.

    from seqmix.data import formats
    for sentence in formats.read("train.conll"): …
    formats.write(sentences, "train.jsonl")

The format is guessed from name and content, or named.
Whatever the scheme of the file, sentences come out in BIO.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from seqmix.data.formats.base import Format, Options
from seqmix.data.formats.registry import (
    FORMATS,
    by_suffix,
    first_bytes,
    format_named,
    guess,
)
from seqmix.data.formats.registry import (
    refuse_other_file as refuse_other_file,
)
from seqmix.data.scheme import convert, repair
from seqmix.data.sentence import Row, Sentence
from seqmix.data.spans import OUTSIDE, prefixed
from seqmix.errors import DataError, TagError

_BIO = {"E-": "I-", "L-": "I-", "S-": "B-", "U-": "B-"}
# The first bytes of zip, gzip, bzip2, xz, 7z and zstd.
_ARCHIVES = (b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"7z\xbc\xaf", b"(\xb5/\xfd")

__all__ = ["FORMATS", "Format", "Options", "guess", "read", "write"]


def read(
    path: Path | str, format: str | None = None, options: Options | None = None
) -> Iterator[Sentence]:
    """Return a stream of the sentences of a file or folder, with spans in BIO.

    Args:
        path: A file, or a folder for formats that are folders.
        format: A name in `seqmix.data.formats.FORMATS`; by default it is guessed.
        options: How to read it, such as the column of the tags.
    """
    path, options = Path(path), options or Options()
    if not path.exists():
        raise DataError("there is no such file or folder", path)
    refuse_unsafe(path)
    chosen = format_named(format) if format else guess(path)
    return cleaned(chosen.read(path, options), options)


def cleaned(sentences: Iterable[Sentence], options: Options) -> Iterator[Sentence]:
    """Return a stream of the sentences that have tokens, with spans in BIO."""
    return (_in_bio(sentence, options) for sentence in sentences if _has_tokens(sentence, options))


def write(
    sentences: Iterable[Sentence],
    path: Path | str,
    format: str | None = None,
    options: Options | None = None,
) -> None:
    """Write sentences to a file or folder, completely or not at all.

    A file or folder that is there already is replaced if it has this format, else it is kept.
    What the format cannot hold is an error; `options.harden` turns soft labels into hard ones.

    Args:
        sentences: What to write, in this order.
        path: Where to write; the format follows the name.
        format: A name in `seqmix.data.formats.FORMATS`, if the name of the file does not say.
        options: How to write it, such as the scheme.
    """
    path, options = Path(path), options or Options()
    writable = {name: form for name, form in FORMATS.items() if form.write is not None}
    if format:
        chosen = format_named(format, FORMATS if format in FORMATS else writable)
    else:
        suggested = by_suffix(path)
        if suggested is None:
            raise DataError(f"which format should it have? Give one of {', '.join(writable)}", path)
        chosen = suggested
    if chosen.write is None:
        raise DataError(
            f"the format {chosen.name} can be read only; there are {', '.join(writable)}", path
        )
    refuse_other_file(path, chosen)
    representable = (
        _representable(sentence, chosen, options)
        for sentence in sentences
        if _has_tokens(sentence, options)
    )
    chosen.write(representable, path, options)


def refuse_unsafe(path: Path) -> None:
    """Refuse an archive, and a folder with a link that leads out of it.

    A folder from elsewhere could otherwise have any file of this machine read as its text.
    """
    for file in path.rglob("*") if path.is_dir() else ():
        if file.is_symlink() and not Path(os.path.realpath(file)).is_relative_to(path.resolve()):
            raise DataError(
                "this link leads out of its folder; "
                "put the file itself there if it belongs to the data",
                file,
            )
    if path.is_file() and first_bytes(path, 6).startswith(_ARCHIVES):
        raise DataError(
            "this is an archive, and archives are not opened; unpack it and name what was in it",
            path,
        )


def _in_bio(sentence: Sentence, options: Options) -> Sentence:
    """Return span tags in BIO; around soft and missing rows only the prefixes change."""
    if not all(tag == OUTSIDE or prefixed(tag) for row in sentence.tags for tag in _tags(row)):
        return sentence
    bio: Sequence[Row] = (
        repair([str(tag) for tag in sentence.tags])
        if sentence.hard
        else [_prefix_in_bio(row) for row in sentence.tags]
    )
    if tuple(bio) == sentence.tags:
        return sentence
    options.counts["rewritten as BIO"] += 1
    return sentence.with_tags(bio)


def _tags(row: Row) -> Iterable[str]:
    return (row,) if isinstance(row, str) else row or ()


def _prefix_in_bio(row: Row) -> Row:
    """Return E- and L- as I-, S- and U- as B-."""
    if row is None or isinstance(row, str):
        return row if row is None else _BIO.get(row[:2], row[:2]) + row[2:]
    weights: dict[str, float] = {}
    for tag, weight in row.items():
        name = str(_prefix_in_bio(tag))
        weights[name] = weights.get(name, 0) + weight
    return weights


def _has_tokens(sentence: Sentence, options: Options) -> bool:
    """Whether the sentence has tokens; one without is skipped and counted."""
    if not sentence.tokens:
        options.counts["no tokens"] += 1
    return bool(sentence.tokens)


def _representable(sentence: Sentence, format: Format, options: Options) -> Sentence:
    """Return what the format can hold of a sentence, or raise an error."""
    _check_text(sentence)
    holds, cannot = format.holds, f"which the format {format.name} cannot hold"
    if "soft" not in holds and any(isinstance(row, Mapping) for row in sentence.tags):
        if not options.harden:
            raise DataError(
                f"sentence {sentence.id!r} has soft labels, {cannot}; "
                "--to harden=yes keeps the heaviest tag, jsonl-tokens keeps all"
            )
        sentence = sentence.hardened()
    if "missing" not in holds and sentence.labeled and None in sentence.tags:
        raise DataError(f"sentence {sentence.id!r} is labeled in part, {cannot}; jsonl-tokens can")
    if "tags" not in holds:
        for tag in sentence.tags:
            if isinstance(tag, str) and tag != OUTSIDE and not (prefixed(tag) and tag[2:]):
                raise TagError(
                    f"sentence {sentence.id!r} has a tag that is not B- or I- of a span, "
                    f"{cannot}; conll can",
                    text=tag,
                )
    tags = [str(tag) for tag in sentence.tags] if sentence.hard else []
    if options.scheme is not None and any(prefixed(tag) for tag in tags):
        return sentence.with_tags(convert(tags, options.scheme))
    return sentence


def _check_text(sentence: Sentence) -> None:
    """Refuse empty tokens, and text that UTF-8 cannot encode."""
    if "" in sentence.tokens:
        raise DataError(
            f"sentence {sentence.id!r} has an empty token", text=" ".join(sentence.tokens)
        )
    tags = (tag for row in sentence.tags for tag in _tags(row))
    for part in (sentence.id, sentence.text or "", *sentence.tokens, *tags):
        try:
            part.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"sentence {sentence.id!r}: "
                "expected whole characters, found half of a surrogate pair",
                text=part,
            ) from error
