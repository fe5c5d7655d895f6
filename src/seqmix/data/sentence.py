"""The values everything else passes around: a sentence, its tag rows, a span.

    Sentence("s1", ("Lena", "left", "Oslo"), ("B-PER", "O", {"B-LOC": 0.7, "B-ORG": 0.3}))

A tag row is one distribution over tags, written as briefly as it allows: a string is all of the weight on that tag (a hard
row), a mapping from tag to weight is a soft row, None is a missing row (nobody has labeled this token). Rows sum to 1, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from seqmix.errors import DataError, TagError

Row = str | Mapping[str, float] | None
Offsets = tuple[tuple[int, int], ...]
DOCSTART = "-DOCSTART-"  # the only token of a line between documents in CoNLL files


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `start` up to but not including `end`, of one type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens with one tag row each; `tags=()` means that no token is labeled."""

    id: str
    tokens: tuple[str, ...]
    tags: tuple[Row, ...] = ()
    text: str | None = None  # the raw text the tokens were cut from, when there is one
    offsets: Offsets | None = None  # where in `text` each token stands: [start, end) in characters

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(self.tokens))
        rows = tuple(_checked(row, self.id) for row in self.tags) or (None,) * len(self.tokens)
        object.__setattr__(self, "tags", rows)
        if len(rows) != len(self.tokens):
            raise TagError(
                f"sentence {self.id!r} has {len(self.tokens)} tokens and {len(rows)} tag rows; one a token is needed"
            )
        if (self.text is None) != (self.offsets is None) or (
            self.offsets is not None and len(self.offsets) != len(self.tokens)
        ):
            raise DataError(
                f"sentence {self.id!r}: text and one offset a token come together or not at all"
            )

    def __len__(self) -> int:
        return len(self.tokens)

    def __reduce__(self) -> tuple[type[Sentence], tuple[object, ...]]:
        rows = tuple(
            dict(row) if isinstance(row, Mapping) else row for row in self.tags
        )  # subtle: a mappingproxy can't be pickled
        return Sentence, (self.id, self.tokens, rows, self.text, self.offsets)

    @property
    def labeled(self) -> bool:
        """At least one token has a tag row."""
        return any(row is not None for row in self.tags)

    @property
    def hard(self) -> bool:
        """Every token has exactly one tag."""
        return all(isinstance(row, str) for row in self.tags)

    def with_tags(self, tags: Sequence[Row]) -> Sentence:
        """The same sentence, labeled anew."""
        return replace(self, tags=tuple(tags) or (None,) * len(self.tokens))

    def unlabeled(self) -> Sentence:
        """The same sentence with every label taken off."""
        return self.with_tags(())

    def hardened(self) -> Sentence:
        """Soft rows become their heaviest tag (the first by name on a tie); missing rows stay missing."""
        return self.with_tags(
            [heaviest(row) if isinstance(row, Mapping) else row for row in self.tags]
        )

    def located(self) -> tuple[str, Offsets]:
        """Text and offsets; tokens joined by single spaces when the raw text is not known."""
        if self.text is not None and self.offsets is not None:
            return self.text, self.offsets
        offsets, at = [], 0
        for token in self.tokens:
            offsets.append((at, at + len(token)))
            at += len(token) + 1
        return " ".join(self.tokens), tuple(offsets)


def heaviest(row: Mapping[str, float]) -> str:
    """The tag with the most weight."""
    return min(row, key=lambda tag: (-row[tag], tag))


def unique_ids(sentences: Iterable[Sentence]) -> list[Sentence]:
    """The sentences as a list, once it is certain that no two share an id."""
    seen: dict[str, Sentence] = {}
    for sentence in sentences:
        if sentence.id in seen:
            raise DataError(
                f"two sentences have the id {sentence.id!r}; ids must differ",
                text=" ".join(sentence.tokens),
            )
        seen[sentence.id] = sentence
    return list(seen.values())


def _checked(row: Row, id: str) -> Row:
    if row is None or isinstance(row, str):
        return row
    weights = {tag: weight for tag, weight in row.items() if weight != 0}
    if (
        not weights
        or not all(0 < w <= 1 + 1e-6 for w in weights.values())
        or abs(sum(weights.values()) - 1) > 1e-4
    ):
        raise TagError(
            f"sentence {id!r}: the weights of a tag row are positive and sum to 1",
            text=str(dict(row)),
        )
    if len(weights) == 1:
        return next(iter(weights))
    return MappingProxyType({tag: float(weight) for tag, weight in weights.items()})
