"""Generated sentences and where they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, overload

from seqmix.data.formats.jsonl_tokens import from_record, to_record
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError


@dataclass(frozen=True)
class Lineage:
    """How a sentence was made: replaying it gives the same sentence."""

    method: str  # whole, sub, label, or the name of a baseline
    parents: tuple[str, ...]  # sentence ids
    windows: tuple[tuple[int, int], ...]  # the stretch taken from each parent, [start, end) in tokens
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
            lineage = Lineage(**given)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError('expected a generated sentence with its "lineage"', text=str(record)[:80]) from error
        return cls(from_record(dict(record), str(record["id"])), lineage)


@dataclass(frozen=True)
class Augmentation(Sequence[Augmented]):
    """What an augmenter gives: the sentences, how many were asked for, and why there are fewer, if there are."""

    outputs: tuple[Augmented, ...]
    asked: int
    reason: str | None = None
    rejected: tuple[Augmented, ...] = ()  # what the discriminator turned down, when it was asked to keep them
    counts: Mapping[str, int] = field(default_factory=dict)  # pairs mixed, candidates scored, duplicates, …

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
