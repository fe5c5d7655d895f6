"""The tag set, and tag rows as arrays.

Tags are ordered O first, then by name, so that two corpora with the same tags have the same ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from seqmix.data.sentence import Row, Sentence
from seqmix.data.spans import OUTSIDE
from seqmix.errors import TagError

Rows = NDArray[np.float32]


@dataclass(frozen=True)
class TagSet:
    """Tags and their ids: `TagSet.of(sentences)`, `.of_types(types)` or `.ordered(tags)`."""

    tags: tuple[str, ...]
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {tag: i for i, tag in enumerate(self.tags)}
        if len(ids) != len(self.tags) or not self.tags or "" in ids:
            raise TagError(
                "a tag set must have at least one tag, none empty and none twice",
                text=str(list(self.tags)[:20]),
            )
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def ordered(cls, tags: Iterable[str]) -> TagSet:
        """Return the set of these tags, O first, then by name."""
        return cls(tuple(sorted(set(tags), key=lambda tag: (tag != OUTSIDE, tag))))

    @classmethod
    def of_types(cls, types: Iterable[str]) -> TagSet:
        """Return O, and B- and I- of each type of span."""
        return cls.ordered([OUTSIDE, *(f"{prefix}-{type}" for type in types for prefix in "BI")])

    @classmethod
    def of(cls, sentences: Iterable[Sentence]) -> TagSet:
        """Return all tags of the sentences; with B- comes I-, so that any span can be spelled."""
        tags: set[str] = set()
        for sentence in sentences:
            for row in sentence.tags:
                tags.update((row,) if isinstance(row, str) else row or ())
        if not tags:
            raise TagError(
                "no sentence has a label, so there is no tag set; "
                "give labeled data or name the tags"
            )
        if all(tag == OUTSIDE or tag[:2] in ("B-", "I-") for tag in tags):
            tags |= {prefix + tag[2:] for tag in tags if tag != OUTSIDE for prefix in ("B-", "I-")}
        return cls.ordered(tags)

    def __len__(self) -> int:
        return len(self.tags)

    def __contains__(self, tag: object) -> bool:
        return tag in self._ids

    def id(self, tag: str) -> int:
        """Return the id of a tag; an unknown one is an error that names the known ones."""
        try:
            return self._ids[tag]
        except KeyError:
            some = ", ".join(self.tags[:12]) + (", …" if len(self) > 12 else "")
            raise TagError(f"unknown tag; this tag set has {some}", text=tag) from None

    @property
    def types(self) -> tuple[str, ...]:
        """The types behind the prefixes, sorted: PER for B-PER and I-PER."""
        return tuple(
            sorted(
                {
                    tag[2:] if tag[1:2] == "-" and tag[0] in "BIESLU" else tag
                    for tag in self.tags
                    if tag != OUTSIDE
                }
            )
        )

    def rows(self, sentence: Sentence) -> Rows:
        """Return tag rows as one array [n_tokens, n_tags]; a missing row is all NaN."""
        rows = np.zeros((len(sentence), len(self)), dtype=np.float32)
        for row, tag in zip(rows, sentence.tags, strict=True):
            if tag is None:
                row[:] = np.nan
            elif isinstance(tag, str):
                row[self.id(tag)] = 1
            else:
                for name, weight in tag.items():
                    row[self.id(name)] = weight
        return rows

    def row(self, weights: Rows) -> Row:
        """Return an array row [n_tags] as a tag row: the inverse of `rows`."""
        if np.isnan(weights).any():
            return None
        at = np.flatnonzero(weights)
        if len(at) == 1:
            return self.tags[int(at[0])]
        total = float(weights[at].sum(dtype=np.float64))
        mixed: Mapping[str, float] = {self.tags[i]: float(weights[i]) / total for i in at}
        return mixed
