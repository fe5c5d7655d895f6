"""Generated sentences and where they come from."""

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
    """How a sentence was made: replaying it gives the same sentence."""

    method: str  # whole, sub, label, or the name of a baseline
    parents: tuple[str, ...]  # sentence ids
    windows: tuple[
        tuple[int, int], ...
    ]  # the stretch taken from each parent, [start, end) in tokens
    into: int = 0  # which parent was rewritten
    weight: float | None = None  # λ: the share of the first parent
    score: float | None = None  # what the discriminator gave
    base: str = "e"  # of the perplexity: exp of the mean log-loss, or 2 to its power
    distances: tuple[float, ...] = ()  # from each mixed embedding to the entry chosen


@dataclass(frozen=True)
class Augmented:
    """A generated sentence with its lineage; `kept` says whether the discriminator accepted it."""

    sentence: Sentence
    lineage: Lineage
    kept: bool = True

    def to_record(self) -> dict[str, Any]:
        """One JSON object that any reader of `jsonl-tokens` takes as a sentence."""
        return {**to_record(self.sentence), "lineage": asdict(self.lineage)}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Augmented:
        """The inverse of `to_record`."""
        try:
            given = dict(record["lineage"])
            for name in ("parents", "distances"):
                given[name] = tuple(given[name])
            given["windows"] = tuple((int(a), int(b)) for a, b in given["windows"])
            lineage, id = Lineage(**given), str(record["id"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                'expected a generated sentence with its "lineage"', text=str(record)[:80]
            ) from error
        return cls(from_record(dict(record), id), lineage)


@dataclass(frozen=True)
class Augmentation(Sequence[Augmented]):
    """What an augmenter gives: the sentences, how many were asked for, and why there are fewer, if there are."""

    outputs: tuple[Augmented, ...]
    asked: int
    reason: str | None = None
    rejected: tuple[
        Augmented, ...
    ] = ()  # what the discriminator turned down, when it was asked to keep them
    counts: Mapping[str, int] = field(
        default_factory=dict
    )  # pairs mixed, candidates scored, duplicates, …

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
        """The generated sentences alone, ready to train on."""
        return [output.sentence for output in self.outputs]


def hubness(chosen: Sequence[str], entries: int) -> dict[str, float]:
    """How much a few entries attract: the share of the most frequent one, and the skewness of how often each of the entries was chosen.

    Without hubs the share is near 1 / n and the skewness near that of a lottery; a table that answers `[MASK]` to everything has share 1.
    """
    if not chosen:
        return {"largest_share": 0.0, "skewness": 0.0}
    found = sorted(Counter(chosen).values(), reverse=True)
    counts = np.zeros(max(entries, len(found)))
    counts[: len(found)] = found
    away = counts - counts.mean()
    spread = float((away**2).mean())
    return {
        "largest_share": found[0] / len(chosen),
        "skewness": float((away**3).mean()) / spread**1.5 if spread > 0 else 0.0,
    }


def new_tokens(made: Iterable[Augmented]) -> list[str]:
    """The tokens that mixing generated, all outputs in a row."""
    return [
        one.sentence.tokens[i]
        for one in made
        if one.lineage.weight is not None
        for i in range(*one.lineage.windows[one.lineage.into])
    ]
