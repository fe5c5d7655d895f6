"""Mix two stretches: tokens in embedding space (Eq. 7) and tag rows by the same weight (Eq. 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from seqmix.augment.pairing import Pair, Stretch
from seqmix.augment.table import Table
from seqmix.data.sentence import Row, Sentence


@dataclass(frozen=True)
class MixedPair:
    """The mix of a pair; `distances` are those of each mixed embedding to its nearest entry."""

    pair: Pair
    weight: float  # λ, the share of the first stretch
    tokens: tuple[str, ...]
    tags: tuple[Row, ...]
    distances: tuple[float, ...]
    choices: tuple[tuple[int, ...], ...] = ()  # the entries nearest to each mixed embedding


def mix(
    sentences: Sequence[Sentence],
    pairs: Sequence[Pair],
    weights: Sequence[float],
    table: Table,
    any_case: bool = False,
    choices: int = 0,
) -> list[MixedPair]:
    """Mix all pairs in one look-up, which also lists the `choices` nearest to each new word.

    Neither a parent's word nor one of its pieces (`##gi` and `gi`) may come out; with `any_case`,
    in any casing, so that restoring the casing of a word cannot restore the word.
    """
    cuts = [(_cut(sentences, first), _cut(sentences, second)) for first, second in pairs]
    positions = [
        (word, partner, weight)
        for (first, second), weight in zip(cuts, weights, strict=True)
        for word, partner in zip(first.tokens, second.tokens, strict=True)
    ]
    by_lower = _ids_by_lower(table) if any_case else None
    nearest = iter(_nearest(positions, table, by_lower, choices))
    mixed = []
    for pair, (first, second), weight in zip(pairs, cuts, weights, strict=True):
        words, distances, entries = zip(*islice(nearest, len(first)), strict=True)
        rows = zip(first.tags, second.tags, strict=True)
        tags = tuple(mix_rows(a, b, weight) for a, b in rows)
        mixed.append(MixedPair(pair, weight, words, tags, distances, entries if choices else ()))
    return mixed


def mix_rows(first: Row, second: Row, weight: float) -> Row:
    """Return λ y_i + (1 − λ) y_j; rows that agree stay as they are.

    >>> dict(mix_rows("B-ORG", "B-LOC", 0.39))
    {'B-LOC': 0.61, 'B-ORG': 0.39}
    """
    if first == second:
        return first
    mixed: dict[str, float] = {}
    for row, share in ((first, weight), (second, 1 - weight)):
        for tag, part in ({row: 1.0} if isinstance(row, str) else dict(row or {})).items():
            mixed[tag] = mixed.get(tag, 0.0) + share * part
    return {tag: mixed[tag] for tag in sorted(mixed) if mixed[tag] > 0}


def rewritten(
    sentence: Sentence, stretch: Stretch, mixed: MixedPair, id: str, keep_case: bool
) -> Sentence:
    """Return the parent with its stretch replaced by the mixed one."""
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
    """Return the word in the casing of the model.

    >>> like("Ohio", "COLORADO"), like("OHIO", "Colorado")
    ('OHIO', 'Ohio')
    """
    if not any(c.isalpha() for c in model):
        return word
    if model.isupper() and len(model) > 1:
        return word.upper()
    if model.islower():
        return word.lower()
    if model[0].isupper() and (len(model) == 1 or model[1:].islower()):
        return word[:1].upper() + word[1:].lower()
    return word


def _ids_by_lower(table: Table) -> Mapping[str, Sequence[int]]:
    """Return the admissible entries by lower-cased word."""
    by_lower: dict[str, list[int]] = {}
    for id in np.flatnonzero(table.starts):
        by_lower.setdefault(table.words[id].lower(), []).append(int(id))
    return by_lower


def _excluded(
    words: tuple[str, str], table: Table, by_lower: Mapping[str, Sequence[int]] | None
) -> list[int]:
    """Return the entries of the parents and of their pieces."""
    barred = {
        part for word in words for part in (word, *(table.words[id] for id in table.split(word)))
    }
    if by_lower is not None:
        return [id for word in barred for id in by_lower.get(word.lower(), ())]
    return [id for word in barred if (id := table.id(word)) is not None]


def _nearest(
    positions: Sequence[tuple[str, str, float]],
    table: Table,
    by_lower: Mapping[str, Sequence[int]] | None,
    choices: int,
) -> list[tuple[str, float, tuple[int, ...]]]:
    """Return the word nearest to each mixed embedding, its distance, and the nearest entries."""
    if not positions:
        return []
    queries = np.stack(
        [weight * table.vector(a) + (1 - weight) * table.vector(b) for a, b, weight in positions]
    )
    excluded = [_excluded((a, b), table, by_lower) for a, b, _ in positions]
    ids, distances = table.nearest(queries, excluded)
    near = table.near(queries, excluded, choices) if choices else [()] * len(ids)
    return [
        (table.words[id], float(distance), tuple(entries))
        for id, distance, entries in zip(ids, distances, near, strict=True)
    ]


def _cut(sentences: Sequence[Sentence], stretch: Stretch) -> Sentence:
    sentence = sentences[stretch.parent]
    return Sentence(
        sentence.id,
        sentence.tokens[stretch.start : stretch.end],
        sentence.tags[stretch.start : stretch.end],
    )
