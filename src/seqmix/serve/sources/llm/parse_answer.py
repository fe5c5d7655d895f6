"""Parse an answer: which spans of a sentence it names, each text aligned with whole tokens.

An answer comes from a stranger. Places that it claims are not looked at; a text that is not in the
sentence, or not at the boundaries of tokens, or an unknown tag is left out; and an answer of which
most is left out counts as none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.errors import SeqMixError
from seqmix.serve.store.records import Mark

_FENCE = re.compile(r"^```\w*\s*(.*?)\s*```$", re.DOTALL)
_LONGEST = 200_000  # characters of an answer


class NonsenseError(SeqMixError):
    """An answer cannot be read, or says nothing about the sentence."""


def content_of(response: Any) -> str:
    """Return the text of the first choice of a response."""
    try:
        content = response["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        raise NonsenseError("the response has no choices with a message") from None
    if not isinstance(content, str) or len(content) > _LONGEST:
        raise NonsenseError("the message is no text, or too long")
    return content


def read_answer(content: str, sentence: Sentence, tags: Collection[str]) -> tuple[Mark, ...]:
    """Return the marks that an answer names."""
    items = _items(content)
    if len(items) > len(sentence):
        raise NonsenseError(f"{len(items)} spans for {len(sentence)} tokens")
    text, offsets = sentence.located()
    starts = {start: at for at, (start, _) in enumerate(offsets)}
    ends = {end: at + 1 for at, (_, end) in enumerate(offsets)}
    marks, after = list[Mark](), 0
    for words, tag in _named(items, tags):
        places = _places(words, text, starts, ends)
        free = [p for p in places if all(p[1] <= m.start or m.end <= p[0] for m in marks)]
        place = next((p for p in free if p[0] >= after), free[0] if free else None)
        if place is not None:
            marks.append(Mark(*place, tag))
            after = place[1]
    if 2 * len(marks) < len(items):
        left_out = len(items) - len(marks)
        raise NonsenseError(f"{left_out} of {len(items)} spans are not in the sentence")
    return tuple(sorted(marks))


def _named(items: Iterable[Any], tags: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the text and the tag of each item that has both, if the tag is one of these."""
    for item in items:
        words, tag = (item.get("text"), item.get("tag")) if isinstance(item, dict) else (None, None)
        if isinstance(words, str) and isinstance(tag, str) and tag in tags:
            yield words, tag


def _places(
    words: str, text: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Return the ranges of tokens that say these words, by where tokens begin and end."""
    parts = words.split()
    if not parts or len(words) > len(text) + 100:
        return []
    return [
        (starts[match.start()], ends[match.end()])
        for match in re.finditer(r"\s+".join(map(re.escape, parts)), text)
        if match.start() in starts and match.end() in ends
    ]


def _items(content: str) -> list[Any]:
    content = content.strip()
    fenced = _FENCE.match(content)
    content = fenced[1] if fenced else content
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        begin, end = content.find("{"), content.rfind("}")
        try:
            value = json.loads(content[begin : end + 1])
        except (ValueError, RecursionError):
            raise NonsenseError("the answer is not JSON") from None
    items = value.get("spans") if isinstance(value, dict) else value
    if not isinstance(items, list):
        raise NonsenseError("the answer has no list of spans")
    return items
