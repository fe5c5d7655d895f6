"""Targets: every data format, guessing, raw text and tables, tags and scoring."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path

from fuzz.target import BETWEEN, Finding, Target, put
from seqmix.app.options import parse_read
from seqmix.app.reading.text import read_text
from seqmix.data import formats
from seqmix.data.formats import FORMATS, Options
from seqmix.data.samples import sample
from seqmix.data.scheme import SCHEMES, convert, detect, is_legal, legal_moves, repair
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.data.tagset import TagSet

_MISALIGNED = ("error", "expand", "drop")
_FOLDERS = {
    "brat": ("a.txt", "a.ann"),
    "ace05": ("d.sgm", "d.apf.xml"),
    "hf": ("state.json", "dataset_info.json", "data-00000-of-00001.arrow"),
}
_NAMES = {
    "docbin": "a.spacy",
    "labelstudio": "a.json",
    "argilla": "a.json",
    "conllu": "a.conllu",
    "conll": "a.conll",
    "text": "a.txt",
}
_GUESSED = ("a", "a.txt", "a.json", "a.jsonl", "a.tsv", "a.conllu", "a.ann", "a.sgm")
_SLOW = {
    "hf": 0.01,
    "docbin": 0.1,
    "text": 0.5,
    "brat": 0.5,
    "conll": 2.0,
    "conllu": 2.0,
    "jsonl-tokens": 2.0,
}
_WORDS = 7  # of a sentence, in a seed
_MOST = 300  # tokens of a sentence that is written again
_ACE = (
    b"<DOC>\n<TEXT>\nRebels attacked Oslo &amp; left. Mr. Bo said so.\n</TEXT></DOC>",
    b'<?xml version="1.0"?>\n<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">\n'
    b'<source_file><document DOCID="d">'
    b'<event ID="E1" TYPE="Conflict" SUBTYPE="Attack">\n'
    b'<event_mention ID="E1-1"><anchor>'
    b'<charseq START="9" END="16">attacked</charseq>'
    b"</anchor></event_mention>\n"
    b"</event></document></source_file>\n",
)


def targets() -> list[Target]:
    """One a format, and what stands around the formats."""
    read = [
        Target(name, partial(_read, name), partial(_seeds, name), _SLOW.get(name, 1.0))
        for name in FORMATS
    ]
    return [
        *read,
        Target("guess", _guess, _guess_seeds, 0.5),
        Target("table", _table, lambda: [b'id,text\n1,Lena left Oslo\n2,"a ""b"""\n', b"text\n"]),
        Target("tokenize", _tokenize, lambda: [s.located()[0].encode() for s in gazette(20)], 0.5),
        Target("tags", _tags, _tag_seeds),
    ]


@cache
def gazette(n: int = 3) -> tuple[Sentence, ...]:
    """The first words of real sentences: short seeds can be changed more often in a second."""
    return tuple(
        Sentence(f"g:{i}", s.tokens[:_WORDS], s.tags[:_WORDS])
        for i, s in enumerate(sample("gazette:train")[10 : 10 + n])
    )


def _read(name: str, data: bytes, folder: Path) -> None:
    """What is read must be whole and come back from a file.

    The first byte chooses how spans that cut a token are taken.
    """
    options = Options(misaligned=_MISALIGNED[data[0] % 3 if data else 0])  # type: ignore[arg-type]
    _whole(formats.read(_placed(name, data[1:], folder), name, options), folder)


def _placed(name: str, data: bytes, folder: Path) -> Path:
    """The bytes where the format looks for them."""
    if name in _FOLDERS:
        place = folder / name
        put(data, place, _FOLDERS[name])
        place.mkdir(exist_ok=True)
        return place
    path = folder / _NAMES.get(name, "a.jsonl")
    path.write_bytes(data)
    return path


def _whole(found: Iterator[Sentence], folder: Path) -> None:
    kept: list[Sentence] = []
    for sentence in found:
        if not sentence.tokens or not all(sentence.tokens):
            raise Finding(
                f"a sentence without tokens, or with an empty one: {sentence.tokens[:9]!a}"
            )
        try:
            "".join((sentence.id, sentence.text or "", *sentence.tokens)).encode()
        except UnicodeEncodeError as half:
            raise Finding(f"half a character was read: {sentence.tokens[:9]!a}") from half
        if len(sentence) <= _MOST and len(kept) < 20:
            kept.append(sentence)
    there, back = folder / "back.jsonl", Options()
    formats.write(kept, there, "jsonl-tokens")
    if [(s.tokens, s.tags) for s in formats.read(there, "jsonl-tokens", back)] != [
        (s.tokens, s.tags) for s in kept
    ]:
        raise Finding("what was read does not come back from jsonl-tokens")


def _guess(data: bytes, folder: Path) -> None:
    """The first byte chooses the name."""
    path = folder / _GUESSED[data[0] % len(_GUESSED) if data else 0]
    path.write_bytes(data[1:])
    try:
        _whole(formats.read(path), folder)
    finally:
        path.unlink()


def _table(data: bytes, folder: Path) -> None:
    path = folder / "a.csv"
    path.write_bytes(data)
    for sentence in read_text(str(path), parse_read("csv:column=text", "column")):
        if not sentence.tokens:
            raise Finding("a row without text was read")


def _tokenize(data: bytes, folder: Path) -> None:
    """Tokens stand in the text in order, and together they are all of it but white space."""
    text = data.decode("utf-8", "replace")
    sentence = Sentence.from_text(text, "x")
    if "".join(sentence.tokens) != "".join(c for c in text if _seen(c)):
        raise Finding(f"a character was lost or doubled: {sentence.tokens[:9]!a}")


@lru_cache(maxsize=1 << 14)
def _seen(character: str) -> bool:
    return bool(Sentence.from_text(character, "x").tokens)


def _tags(data: bytes, folder: Path) -> None:
    """Lines of gold and found tags: every scheme reads them, and the score is between 0 and 1."""
    rows = [line.split(b" ") for line in data.split(b"\n")[:40]]
    tags = [[tag.decode("utf-8", "replace") for tag in row[:500]] for row in rows]
    for own in tags:
        detect(own)
        if spans(repair(own)) != spans(own):
            raise Finding("repair changed the spans")
        for scheme in SCHEMES[:-1]:
            is_legal(own, scheme)
            if scheme not in ("IO", "tokens") and spans(convert(own, scheme)) != spans(own):
                raise Finding(f"{scheme} changed the spans")
    half = len(tags) // 2
    figures = score(tags[:half], tags[half : 2 * half])
    if not (0 <= figures.f1 <= 1 and 0 <= figures.accuracy <= 1 and figures.report()):
        raise Finding("a score outside 0 and 1")
    known = {tag for own in tags for tag in own}
    if len(known) <= 60:
        legal_moves(TagSet.ordered(known))


def _seeds(name: str) -> list[bytes]:
    """The gazette in the format."""
    if name == "ace05":
        return [b"\0" + BETWEEN.join(_ACE)]
    with tempfile.TemporaryDirectory() as place:
        return [
            b"\0" + _spelled(name, cut, Path(place) / str(n))
            for n, cut in enumerate((gazette(1), gazette(2), gazette(6)[4:]))
        ]


def _spelled(name: str, sentences: Sequence[Sentence], folder: Path) -> bytes:
    folder.mkdir()
    if name == "text":
        return "\n".join(s.located()[0] for s in sentences).encode()
    path = folder / (name if name in _FOLDERS else _NAMES.get(name, "a.jsonl"))
    formats.write(sentences, path, name)
    if name == "brat":
        return BETWEEN.join(next(path.glob(f"*{end}")).read_bytes() for end in (".txt", ".ann"))
    return (
        BETWEEN.join((path / file).read_bytes() for file in _FOLDERS[name])
        if name in _FOLDERS
        else path.read_bytes()
    )


def _guess_seeds() -> list[bytes]:
    """One file of each format that is one, without an ending that would tell."""
    return [
        seed
        for name in FORMATS
        if name not in ("hf", "docbin", *_FOLDERS)
        for seed in _seeds(name)[:2]
    ]


def _tag_seeds() -> list[bytes]:
    rows = [" ".join(str(tag) for tag in s.tags) for s in gazette(8)]
    bioes = [" ".join(convert(row.split(" "), "BIOES")) for row in rows]
    return [
        "\n".join(rows[:4] * 2).encode(),
        "\n".join(rows[:2] + bioes[:2]).encode(),
        b"NOUN VERB\nNOUN X",
    ]
