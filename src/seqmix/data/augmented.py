"""Generated sentences and how they were made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

import numpy as np

from seqmix.data.formats.jsonl_tokens import from_record, to_record
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError


@dataclass(frozen=True)
class Lineage:
    """How a sentence was made; replaying it gives the same sentence."""

    method: str
    """whole, sub, label, or the name of a baseline."""
    parents: tuple[str, ...]
    """The ids of the sentences it was made from."""
    windows: tuple[tuple[int, int], ...]
    """The stretch of each parent, from start up to but not including end, in tokens."""
    into: int = 0
    """Which parent was rewritten."""
    weight: float | None = None
    """λ: the share of the first parent."""
    score: float | None = None
    """The discriminator's score."""
    base: str = "e"
    """The base of the perplexity: e or 2, to the power of the mean loss."""
    distances: tuple[float, ...] = ()
    """From each mixed embedding to the entry that was chosen."""


@dataclass(frozen=True)
class Augmented:
    """A generated sentence, its lineage, and whether the discriminator accepted it."""

    sentence: Sentence
    lineage: Lineage
    kept: bool = True

    def to_record(self) -> dict[str, Any]:
        """Return a JSON object that readers of `jsonl-tokens` accept as a sentence."""
        return {**to_record(self.sentence), "lineage": asdict(self.lineage)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Augmented:
        """Return the sentence of a record: the inverse of `to_record`."""
        try:
            fields = dict(record["lineage"])
            for name in ("parents", "distances"):
                fields[name] = tuple(fields[name])
            fields["windows"] = tuple((int(a), int(b)) for a, b in fields["windows"])
            lineage, id = Lineage(**fields), str(record["id"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                'expected a generated sentence with its "lineage"', text=str(record)[:80]
            ) from error
        return cls(from_record(dict(record), id), lineage)


@dataclass(frozen=True)
class Augmentation(Sequence[Augmented]):
    """The result of an augmenter: sentences, how many were asked for, and why there are fewer."""

    outputs: tuple[Augmented, ...]
    """What was generated."""
    asked: int
    """How many sentences were asked for."""
    reason: str | None = None
    """Why there are fewer, if there are."""
    rejected: tuple[Augmented, ...] = ()
    """What the discriminator rejected, with `trace=True`."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Pairs mixed, candidates scored, duplicates and so on."""

    def __len__(self) -> int:
        return len(self.outputs)

    @overload
    def __getitem__(self, index: int) -> Augmented: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Augmented]: ...
    def __getitem__(self, index: int | slice) -> Augmented | Sequence[Augmented]:
        return self.outputs[index]

    def __iter__(self) -> Iterator[Augmented]:
        return iter(self.outputs)

    @property
    def sentences(self) -> list[Sentence]:
        """The generated sentences without their lineage."""
        return [output.sentence for output in self.outputs]


def hubness(chosen: Sequence[str], entries: int) -> dict[str, float]:
    """Return how much a few entries attract: the largest share, and the skewness of all counts.

    Without hubs the share is near 1 / n; a table that answers `[MASK]` to everything has share 1.
    """
    if not chosen:
        return {"largest_share": 0.0, "skewness": 0.0}
    ranked = sorted(Counter(chosen).values(), reverse=True)
    counts = np.zeros(max(entries, len(ranked)))
    counts[: len(ranked)] = ranked
    away = counts - counts.mean()
    spread = float((away**2).mean())
    return {
        "largest_share": ranked[0] / len(chosen),
        "skewness": float((away**3).mean()) / spread**1.5 if spread > 0 else 0.0,
    }


def new_tokens(outputs: Iterable[Augmented]) -> list[str]:
    """Return all tokens that mixing generated, of all outputs."""
    return [
        output.sentence.tokens[i]
        for output in outputs
        if output.lineage.weight is not None
        for i in range(*output.lineage.windows[output.lineage.into])
    ]
