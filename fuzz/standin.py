"""A tagger that learns in no time, for targets that read what stands around one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE, TagSet
from seqmix.protocols import Probs


@dataclass(frozen=True)
class StandinPath:
    """The tags it would give, all equally sure."""

    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...]


class Standin:
    """Knows the tags of the words it was shown."""

    def __init__(self, tag_set: TagSet, sentences: Iterable[Sentence] = ()) -> None:
        self.tag_set: TagSet | None = tag_set
        self._known = {
            token: row
            for s in sentences
            for token, row in zip(s.tokens, s.tags, strict=True)
            if isinstance(row, str)
        }

    def best_paths(
        self, sentences: Iterable[Sentence], n: int = 1, legal: bool = True, by_token: bool = False
    ) -> Iterator[list[StandinPath]]:
        """One path a sentence."""
        return (
            [
                StandinPath(
                    tuple(self._known.get(token, OUTSIDE) for token in s.tokens),
                    1.0,
                    (1.0,) * len(s),
                )
            ]
            for s in sentences
        )

    def probabilities(self, sentences: Iterable[Sentence]) -> Iterator[Probs]:
        """All tags alike."""
        n = len(self.tag_set or ())
        return (np.full((len(s), n), 1 / n, dtype=np.float32) for s in sentences)

    def unsure(self, sentences: Iterable[Sentence], measure: str) -> Iterator[float]:
        """The longer, the less sure."""
        return (float(len(s)) for s in sentences)

    def save(self, folder: Path) -> None:
        """Nothing but the folder."""
        folder.mkdir(parents=True)
