"""Mix two stretches: tokens in embedding space (Eq. 7), tag rows with the same weight (Eq. 8), both parents rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seqmix.augment.pairing import Pair, Stretch
from seqmix.augment.table import Table
from seqmix.data.sentence import Row, Sentence


@dataclass(frozen=True)
class Mixed:
    """One mixed stretch: its tokens, tag rows, and how far each mixed embedding was from the entry chosen."""

    pair: Pair
    weight: float  # λ, the share of the first stretch
    tokens: tuple[str, ...]
    tags: tuple[Row, ...]
    distances: tuple[float, ...]


def mix(
    sentences: Sequence[Sentence],
    pairs: Sequence[Pair],
    weights: Sequence[float],
    table: Table,
    any_case: bool = False,
) -> list[Mixed]:
    """Mix all pairs at once: one look-up for every position of every pair.

    Neither a parent's word nor a piece of it may come out, nor that piece standing alone (`##gi` and `gi`). `any_case`: however it is
    written, so that restoring the casing of a word can never restore the word.
    """
    positions = [
        (
            sentences[one.parent].tokens[one.start + t],
            sentences[other.parent].tokens[other.start + t],
            weight,
        )
        for (one, other), weight in zip(pairs, weights, strict=True)
        for t in range(one.end - one.start)
    ]
    chosen = iter(_by_word(positions, table, _parents_of(table, any_case)))
    mixed = []
    for (one, other), weight in zip(pairs, weights, strict=True):
        found = [next(chosen) for _ in range(one.end - one.start)]
        rows = zip(_cut(sentences, one).tags, _cut(sentences, other).tags, strict=True)
        mixed.append(
            Mixed(
                (one, other),
                weight,
                tuple(word for word, _ in found),
                tuple(mix_rows(a, b, weight) for a, b in rows),
                tuple(distance for _, distance in found),
            )
        )
    return mixed


def mix_rows(one: Row, other: Row, weight: float) -> Row:
    """λ y_i + (1 − λ) y_j; rows that agree stay as they are.

    >>> dict(mix_rows("B-ORG", "B-LOC", 0.39))
    {'B-LOC': 0.61, 'B-ORG': 0.39}
    """
    if one == other:
        return one
    mixed: dict[str, float] = {}
    for row, share in ((one, weight), (other, 1 - weight)):
        for tag, part in ({row: 1.0} if isinstance(row, str) else dict(row or {})).items():
            mixed[tag] = mixed.get(tag, 0.0) + share * part
    return {tag: mixed[tag] for tag in sorted(mixed) if mixed[tag] > 0}


def rewritten(
    sentence: Sentence, stretch: Stretch, mixed: Mixed, id: str, keep_case: bool
) -> Sentence:
    """The parent with its stretch replaced by the mixed one; its other tokens and rows stay untouched."""
    tokens = mixed.tokens
    if keep_case:
        tokens = tuple(
            like(new, old)
            for new, old in zip(tokens, sentence.tokens[stretch.start : stretch.end], strict=True)
        )
    return Sentence(
        id,
        (*sentence.tokens[: stretch.start], *tokens, *sentence.tokens[stretch.end :]),
        (*sentence.tags[: stretch.start], *mixed.tags, *sentence.tags[stretch.end :]),
    )


def like(word: str, model: str) -> str:
    """The word in the casing class of the model: COLORADO makes OHIO of Ohio, Colorado makes Ohio of OHIO."""
    if not any(c.isalpha() for c in model):
        return word
    if model.isupper() and len(model) > 1:
        return word.upper()
    if model.islower():
        return word.lower()
    if model[0].isupper() and (len(model) == 1 or model[1:].islower()):
        return word[:1].upper() + word[1:].lower()
    return word


def _parents_of(table: Table, any_case: bool) -> Mapping[str, Sequence[int]] | None:
    """Entries by lower-cased word, where casing does not matter."""
    if not any_case:
        return None
    by_lower: dict[str, list[int]] = {}
    for id in np.flatnonzero(table.starts):
        by_lower.setdefault(table.words[id].lower(), []).append(int(id))
    return by_lower


def _excluded(
    words: tuple[str, str], table: Table, by_lower: Mapping[str, Sequence[int]] | None
) -> list[int]:
    """The parents' entries and those of their pieces."""
    barred = {
        part for word in words for part in (word, *(table.words[id] for id in table.split(word)))
    }
    if by_lower is not None:
        return [id for word in barred for id in by_lower.get(word.lower(), ())]
    return [id for word in barred if (id := table.id(word)) is not None]


def _by_word(
    positions: Sequence[tuple[str, str, float]],
    table: Table,
    by_lower: Mapping[str, Sequence[int]] | None,
) -> list[tuple[str, float]]:
    """The nearest entry to each mixed word."""
    if not positions:
        return []
    queries = np.stack(
        [weight * table.vector(a) + (1 - weight) * table.vector(b) for a, b, weight in positions]
    )
    ids, distances = table.nearest(
        queries, [_excluded((a, b), table, by_lower) for a, b, _ in positions]
    )
    return [(table.words[id], float(distance)) for id, distance in zip(ids, distances, strict=True)]


def _cut(sentences: Sequence[Sentence], stretch: Stretch) -> Sentence:
    sentence = sentences[stretch.parent]
    return Sentence(
        sentence.id,
        sentence.tokens[stretch.start : stretch.end],
        sentence.tags[stretch.start : stretch.end],
    )
