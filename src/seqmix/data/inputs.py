"""What people pass to a tagger, as sentences: texts, lists of tokens, pairs of tokens and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from seqmix.data.sentence import Row, Sentence
from seqmix.data.spans import Entity
from seqmix.errors import DataError

Text = str | Sentence | Sequence[str]  # a raw text, a sentence, or its tokens
Labeled = Sentence | tuple[Sequence[str], Sequence[Row]]  # a sentence, or its tokens and tags


def as_sentences(texts: Iterable[Text] | Sentence) -> Iterator[Sentence]:
    """Return texts as a stream of sentences; a single text is a stream of one.

    >>> [sentence.tokens for sentence in as_sentences(["Lena left.", ["Bo", "stayed"]])]
    [('Lena', 'left', '.'), ('Bo', 'stayed')]
    """
    if isinstance(texts, str | Sentence):
        texts = [texts]
    items = _iterated(
        texts, "a tagger takes texts, lists of tokens or Sentences", 'such as ["Lena left."]'
    )
    return (_sentence(item, number) for number, item in enumerate(items, 1))


def as_labeled(sentences: Iterable[Labeled]) -> list[Sentence]:
    """Return labeled sentences as a list; one that has no label is left out.

    >>> [sentence.tags for sentence in as_labeled([(["Bo", "left"], ["B-PER", "O"])])]
    [('B-PER', 'O')]
    """
    if isinstance(sentences, str | PathLike):
        raise DataError(
            f"fit takes labeled sentences; got {str(sentences)!r}: if it is a file, "
            f"fit(seqmix.read({str(sentences)!r})) learns from it"
        )
    wanted = "fit takes labeled sentences or (tokens, tags) pairs"
    items = _iterated(sentences, wanted, "such as seqmix.read(path) returns")
    read = [_labeled(item, number) for number, item in enumerate(items, 1)]
    labeled = [sentence for sentence in read if sentence.labeled]
    if not labeled:
        raise DataError(
            "there is no labeled sentence to train on; "
            f"got {len(read) or 'no'} sentence{'s' * (len(read) != 1)}"
            + ': label text as Sentence.from_text("Lena left", entities=[(0, 4, "PER")])'
            * bool(read)
        )
    return labeled


def entities_in(
    text: str | Sentence | Iterable[Text], best_paths: Callable[..., Iterable[Sequence[Any]]]
) -> list[Entity] | list[list[Entity]]:
    """Return the entities of a text, or a list for each of many, from a tagger's best paths."""
    sentences = list(as_sentences(text))
    entities = [
        sentence.with_tags(paths[0].tags).entities(paths[0].by_token)
        for sentence, paths in zip(sentences, best_paths(sentences, by_token=True), strict=True)
    ]
    return entities[0] if isinstance(text, str | Sentence) else entities


def checked_path(path: PathLike[str] | str, what: str) -> Path:
    """Return a path; anything else is an error that says what it must be."""
    if not isinstance(path, str | PathLike):
        raise DataError(f"expected {what}, as a path; got {repr(path)[:60]}")
    return Path(path)


def _iterated(values: Any, wanted: str, example: str) -> Iterator[Any]:
    """Return an iterator over what can only be sentences, or say what to pass."""
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        raise DataError(
            f"{wanted}; got a {type(values).__name__}: seqmix.read(table) turns it into sentences"
        )
    if isinstance(values, bytes | Mapping | PathLike) or not isinstance(values, Iterable):
        shown = repr(values)[:60]
        raise DataError(f"{wanted}, {example}; got {shown}")
    return iter(values)


def _sentence(item: Any, number: int) -> Sentence:
    if isinstance(item, Sentence):
        return item
    if isinstance(item, str):
        return Sentence.from_text(item, f"text:{number}")
    if _is_words(item):
        return Sentence(f"text:{number}", tuple(item))
    raise DataError(
        f"a tagger takes texts, lists of tokens or Sentences; item {number} is {repr(item)[:60]}"
    )


def _labeled(item: Any, number: int) -> Sentence:
    if isinstance(item, Sentence):
        return item
    pair = tuple(item) if isinstance(item, tuple | list) else ()
    if len(pair) == 2 and _is_words(pair[0]) and _is_list(pair[1]):
        return Sentence(f"labeled:{number}", tuple(pair[0]), tuple(pair[1]))
    if len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], Mapping):
        raise DataError(
            f"item {number} is a text with annotations: fit takes Sentences, "
            "so write Sentence.from_text(text, entities=[(start, end, label), …])"
        )
    raise DataError(
        f"fit takes labeled sentences or (tokens, tags) pairs; item {number} is {repr(item)[:60]}"
    )


def _is_words(value: Any) -> bool:
    return _is_list(value) and all(isinstance(word, str) for word in value)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
