"""Label every piece of an encyclopedia with an entity type, for `pretrain_starter.py types`.

    python scripts/entity_types.py wiki/*.txt.xz --out typed --workers 16

A text file, plain or .xz, holds articles separated by empty lines: the title on the first line,
then one paragraph per line.
No two articles share a title.
The head noun of the sentence that opens an article gives its title a type: "… was a Norwegian
footballer" makes it a footballer.
Inside the article the title and its last word are mentions of that type; in other articles the
title is a mention if it is unique (apart from brackets at its end).
Words in lower case are outside.
Capitalized words that match nothing may be names too, so they are ignored.

`typed` then holds `ids.u16` and `labels.u16`, two bytes per piece, and `types.json`, the types by
number of articles.
The label of a piece is 0 outside, 2k at the start of a mention of the k-th type, 2k + 1 inside one,
and 65535 where it is ignored.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, chain, groupby
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from head_noun import head_noun
from seqmix.starter.guarded import plain_backend
from seqmix.starter.loader import starter_tokenizer

OUTSIDE, IGNORED = 0, 65535
PARAGRAPHS, SHORTEST, LONGEST = 80, 40, 4000  # paragraphs of an article, and their characters
COUNTED = 4  # paragraphs of an article whose words are counted
LONGEST_NAME = 6  # words
VAGUE = frozenset({  # not types
    "name", "term", "word", "number", "part", "list", "type", "form", "one", "title", "use", "set",
    "process", "method", "theory", "concept", "way", "system"
})  # fmt: skip
LINKS = frozenset({  # words that join the parts of a name
    "of", "the", "and", "de", "von", "van", "der", "la", "du", "del", "for", "in", "on", "at", "&",
    "'", "-"
})  # fmt: skip
OPENERS = frozenset('.!?:"(;')  # any word behind them is capitalized
_BRACKETS_AT_END = re.compile(r"\s*\([^()]*\)$")
_WITHIN_SENTENCE = re.compile(r"(?<=[a-z,] )[A-Za-z][a-zA-Z\-]+")

Words = tuple[str, ...]


@dataclass(frozen=True)
class Article:
    """A title and its paragraphs."""

    title: str
    paragraphs: Sequence[str]


@dataclass(frozen=True)
class Names:
    """Types by the words of a name, and the length of the longest name by its first word."""

    types: Mapping[Words, int]
    longest: Mapping[str, int]

    @classmethod
    def of(cls, types: Mapping[Words, int]) -> Names:
        """Return names, indexed by their first words."""
        longest: Counter[str] = Counter()
        for name in types:
            longest[name[0]] = max(longest[name[0]], len(name))
        return cls(types, dict(longest))


@dataclass(frozen=True)
class Survey:
    """A file's head noun of each title, and its words inside sentences, by capitalization."""

    heads: Sequence[tuple[str, str | None]]
    large: Counter[str]
    small: Counter[str]


@dataclass(frozen=True)
class Lexicon:
    """The types and names of all files, and words that are always or never names."""

    types: Sequence[str]
    titles: Mapping[str, int]
    names: Names
    proper: frozenset[str]
    common: frozenset[str]


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and label the files it names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("text", type=Path, nargs="+", help="files of articles, plain or .xz")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument(
        "--least", type=int, default=150, help="articles that a head noun needs to be a type"
    )
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args(arguments)
    print(json.dumps(write_typed(args.text, args.out, args.least, args.workers)))


def write_typed(files: Sequence[Path], out: Path, least: int, workers: int = 1) -> dict[str, int]:
    """Survey all files, then label them in order."""
    out.mkdir(parents=True, exist_ok=True)
    pieces = mentions = 0
    with (
        mapping(workers) as each,
        (out / "ids.u16").open("wb") as ids_file,
        (out / "labels.u16").open("wb") as labels_file,
    ):
        lexicon = lexicon_of(each(survey, files), least)
        for ids, labels in each(partial(label_file, lexicon=lexicon), files):
            ids.tofile(ids_file)
            labels.tofile(labels_file)
            pieces += len(ids)
            mentions += int(((labels > OUTSIDE) & (labels % 2 == 0)).sum())
    (out / "types.json").write_text(json.dumps(lexicon.types, indent=1), encoding="utf-8")
    return {
        "articles": len(lexicon.titles),
        "types": len(lexicon.types),
        "pieces": pieces,
        "mentions": mentions,
    }


@contextmanager
def mapping(workers: int) -> Iterator[Callable[..., Iterable[Any]]]:
    """Yield `map`, or an ordered map over several processes."""
    if workers == 1:
        yield map
    else:
        with get_context("spawn").Pool(workers) as pool:
            yield pool.imap


def articles(path: Path) -> Iterator[Article]:
    """Yield the articles of a file, without short paragraphs and without empty articles."""
    with (
        lzma.open(path, "rt", encoding="utf-8")
        if path.suffix == ".xz"
        else path.open(encoding="utf-8") as lines
    ):
        block: list[str] = []
        for line in chain(lines, ["\n"]):
            if line.strip():
                block.append(line.strip())
                continue
            paragraphs = [text[:LONGEST] for text in block[1:] if len(text) > SHORTEST][:PARAGRAPHS]
            if paragraphs:
                yield Article(block[0], paragraphs)
            block = []


def survey(path: Path) -> Survey:
    """Return a file's head nouns and word counts."""
    heads, seen = [], Counter[str]()
    for article in articles(path):
        heads.append((article.title, head_noun(article.paragraphs[0])))
        for paragraph in article.paragraphs[:COUNTED]:
            seen.update(_WITHIN_SENTENCE.findall(paragraph))
    large = Counter({word: n for word, n in seen.items() if capitalized(word)})
    return Survey(heads, large, seen - large)


def lexicon_of(surveys: Iterable[Survey], least: int) -> Lexicon:
    """Return the lexicon of all files; a type is the head noun of at least `least` articles.

    Proper words are almost always capitalized; common ones often are not.
    """
    heads: list[tuple[str, str | None]] = []
    large, small = Counter[str](), Counter[str]()
    for part in surveys:
        heads += part.heads
        large.update(part.large)
        small.update(part.small)
    if repeated := [title for title, n in Counter(title for title, _ in heads).items() if n > 1]:
        raise SystemExit(
            f"every article must have a unique title; got twice: {', '.join(repeated[:5])}"
        )
    counts = Counter(head for _, head in heads if head and head not in VAGUE)
    types = [head for head, n in counts.most_common() if n >= least]
    numbers = {head: number for number, head in enumerate(types, start=1)}
    titles = {title: numbers.get(head or "", OUTSIDE) for title, head in heads}
    proper = frozenset(word for word, n in large.items() if n >= 3 and n > 10 * small[word.lower()])
    common = frozenset(word for word, n in small.items() if n >= 3)
    return Lexicon(types, titles, Names.of(unambiguous(titles, proper)), proper, common)


def unambiguous(titles: Mapping[str, int], proper: frozenset[str]) -> dict[Words, int]:
    """Return names that mean a single article anywhere: its title, also up to a comma."""
    meant: Counter[Words] = Counter()
    names: dict[Words, int] = {}
    for title, number in titles.items():
        words = words_of(bare(title))
        comma = words.index(",") if "," in words else 0
        forms = {words, words[:comma]} if comma >= 2 else {words}
        meant.update(forms)
        if number:
            names |= dict.fromkeys((form for form in forms if is_distinctive(form, proper)), number)
    return {name: number for name, number in names.items() if meant[name] == 1}


def is_distinctive(name: Words, proper: frozenset[str]) -> bool:
    """Whether a name differs from ordinary words: a proper word, or a later capitalized word."""
    if not 0 < len(name) <= LONGEST_NAME or not capitalized(name[0]) or len("".join(name)) < 3:
        return False
    return name[0] in proper if len(name) == 1 else any(capitalized(word) for word in name[1:])


def names_inside(title: str, number: int, proper: frozenset[str]) -> Names:
    """Return the names used inside an article: its title, and a surname if all is capitalized."""
    words = words_of(bare(title))
    if not number or not any(capitalized(word) for word in words):
        return Names.of({})
    whole = 2 <= len(words) <= 4 and all(capitalized(word) for word in words)
    surname = words[-1:] if whole and words[-1] in proper and len(words[-1]) > 2 else words
    return Names.of({surname: number, words: number})


def label_file(path: Path, lexicon: Lexicon) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return piece ids and labels of a file, with an ignored [SEP] behind each paragraph."""
    separator = starter_tokenizer().sep_token_id
    ids: list[int] = []
    labels: list[int] = []
    for article in articles(path):
        inside = names_inside(article.title, lexicon.titles[article.title], lexicon.proper)
        paragraphs = list(article.paragraphs)
        encodings = _backend().encode_batch(paragraphs, add_special_tokens=False)
        for text, encoding in zip(paragraphs, encodings, strict=True):
            words, sizes = _words(text, encoding)
            ids += [*encoding.ids, separator]
            by_word = label_words(words, (inside, lexicon.names), lexicon.common)
            labels += [*spread(by_word, sizes), IGNORED]
    return np.array(ids, dtype=np.uint16), np.array(labels, dtype=np.uint16)


def label_words(
    words: Sequence[str], lexicons: Sequence[Names], common: frozenset[str]
) -> list[int]:
    """Return one label per word: of the longest name, the first lexicon's among equals.

    Other capitalized words are ignored.
    """
    labels: list[int] = []
    while (at := len(labels)) < len(words):
        if not capitalized(words[at]):
            labels.append(OUTSIDE)
        elif (match := longest_name(words, at, lexicons)) is not None:
            length, number = match
            labels += [2 * number, *[2 * number + 1] * (length - 1)]
        else:
            opens = at == 0 or words[at - 1] in OPENERS
            labels.append(OUTSIDE if opens and words[at].lower() in common else IGNORED)
    for at in range(1, len(words) - 1):  # the "of" of an unknown name
        if (
            labels[at] == OUTSIDE
            and words[at] in LINKS
            and labels[at - 1] == IGNORED
            and capitalized(words[at + 1])
        ):
            labels[at] = IGNORED
    return labels


def longest_name(
    words: Sequence[str], at: int, lexicons: Sequence[Names]
) -> tuple[int, int] | None:
    """Return the number of words of the longest name that starts here, and its type."""
    most = max(names.longest.get(words[at], 0) for names in lexicons)
    for length in range(min(most, len(words) - at), 0, -1):
        name = tuple(words[at : at + length])
        for names in lexicons:
            if name in names.types:
                return length, names.types[name]
    return None


def spread(labels: Sequence[int], sizes: Sequence[int]) -> Iterator[int]:
    """Yield the labels of pieces: later pieces of a word are inside its mention."""
    for label, size in zip(labels, sizes, strict=True):
        yield label
        yield from [label if label in (OUTSIDE, IGNORED) else label | 1] * (size - 1)


def bare(title: str) -> str:
    """Return a title without the brackets at its end: Mercury (planet) -> Mercury."""
    return _BRACKETS_AT_END.sub("", title).strip()


def capitalized(word: str) -> bool:
    """Whether a word starts with a capital."""
    return word[:1].isupper()


def words_of(text: str) -> Words:
    """Return the words of a text as the tokenizer cuts it."""
    return tuple(_words(text, _backend().encode(text, add_special_tokens=False))[0])


def _words(text: str, encoding: Any) -> tuple[list[str], list[int]]:
    """Return the words of an encoded text, and the number of pieces of each."""
    sizes = [len(list(pieces)) for _, pieces in groupby(encoding.word_ids)]
    spans = (
        (encoding.offsets[end - size][0], encoding.offsets[end - 1][1])
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    )
    return [text[start:end] for start, end in spans], sizes


@cache
def _backend() -> Any:
    return plain_backend(starter_tokenizer())


if __name__ == "__main__":
    main()
