"""spaCy's DocBin (.spacy): each Doc is a sentence, its entities are the spans.

Tokens of white space, which spaCy makes of double spaces, are removed, and added when writing.
Tokens without an entity annotation are missing rows.
A DocBin is one compressed block, so this format alone is in memory while it is read or written.
`doc.user_data` holds the id.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from seqmix.data.files import replacing
from seqmix.data.formats.base import Format, Options, visible
from seqmix.data.formats.charspans import surface, without_space_tokens
from seqmix.data.scheme import repair
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE
from seqmix.errors import DataError
from seqmix.extras import import_extra


def read(path: Path, options: Options) -> Iterator[Sentence]:
    """Yield one sentence per Doc; one without an id is `stem:number`."""
    tokens = _spacy("spacy.tokens")
    docs = _docs(tokens.DocBin(), path)
    for number, doc in enumerate(docs, 1):
        yield _sentence(doc, f"{path.stem}:{number}", options)


def write(sentences: Iterable[Sentence], path: Path, options: Options) -> None:
    """Write entities on Docs of a blank vocabulary; no model is needed to read them."""
    tokens, vocab = _spacy("spacy.tokens"), _spacy("spacy.vocab").Vocab()
    with replacing(path) as beside:
        bin = tokens.DocBin(attrs=["ENT_IOB", "ENT_TYPE"], store_user_data=True)
        for sentence in sentences:
            words, spaces, tags = _words(without_space_tokens(sentence, "docbin"), options)
            data = {"id": sentence.id}
            bin.add(tokens.Doc(vocab, words=words, spaces=spaces, ents=tags, user_data=data))
        beside.write_bytes(bin.to_bytes())


def _spacy(module: str) -> Any:
    return import_extra(module, "spacy", "the format docbin")


def _docs(bin: Any, path: Path) -> Iterator[Any]:
    collecting = gc.isenabled()
    try:
        yield from bin.from_bytes(path.read_bytes()).get_docs(_spacy("spacy.vocab").Vocab())
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", path) from error
    except Exception as error:  # zlib, msgpack, numpy and spaCy each have their own errors
        raise DataError(
            f"expected a spaCy DocBin ({type(error).__name__})", path, None, str(error)
        ) from error
    finally:
        if collecting:
            gc.enable()  # a broken block leaves spaCy's msgpack with it disabled


def _sentence(doc: Any, id: str, options: Options) -> Sentence:
    kept = [token for token in doc if not token.text.isspace()]
    tags = tuple(_row(token.ent_iob_, token.ent_type_) for token in kept)
    words = visible((token.text for token in kept), options)
    stored = doc.user_data.get("id")
    id = id if stored is None else str(stored)
    if doc.has_unknown_spaces:
        return Sentence(id, words, tags)
    offsets = tuple((token.idx, token.idx + len(token.text)) for token in kept)
    return Sentence(id, words, tags, doc.text, offsets)


def _row(iob: str, type: str) -> str | None:
    return f"{iob}-{type}" if iob in ("B", "I") else iob or None


def _words(sentence: Sentence, options: Options) -> tuple[list[str], list[bool] | None, list[str]]:
    """Return words, whether a space follows each, and entity tags as spaCy spells them.

    A missing tag is "".
    """
    tags = [str(tag or "") for tag in sentence.tags]
    if sentence.hard:
        tags = repair(tags)
    text, offsets = surface(sentence, options)
    starts = (*(start for start, _ in offsets), len(text))
    ends = (0, *(end for _, end in offsets))
    gaps = [text[a:b] for a, b in zip(ends, starts, strict=True)]
    if text != sentence.text or any(gap.strip() for gap in gaps):
        return list(sentence.tokens), None, tags
    words: list[str] = []
    spaces: list[bool] = []
    spelled: list[str] = []
    tokens, tags = (*sentence.tokens, ""), [*tags, tags[-1] and OUTSIDE]
    for gap, token, tag in zip(gaps, tokens, tags, strict=True):
        if gap.startswith(" ") and words:
            spaces[-1] = True
            gap = gap[1:]
        gap_tag = tag if tag.startswith("I-") else tag and OUTSIDE
        for word, spelling in ((gap, gap_tag), (token, tag)):
            if word:
                words.append(word)
                spaces.append(False)
                spelled.append(spelling)
    return words, spaces, spelled


FORMAT = Format(
    "docbin",
    read,
    write,
    suffixes=(".spacy",),
    holds=frozenset({"tokens", "missing", "id", "text"}),
)
