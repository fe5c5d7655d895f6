"""The values that everything else uses: a sentence, its tag rows, a span.

    Sentence("s1", ("Lena", "left", "Oslo"), ("B-PER", "O", {"B-LOC": 0.7, "B-ORG": 0.3}))

A tag row is a distribution over tags that sums to 1.
A string is a hard row, with all weight on that tag; a mapping from tag to weight is a soft row;
None is a missing row, of a token that nobody has labeled.
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
    """Tokens from `start` up to but not including `end`, of one type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens with one tag row each; `tags=()` means that no token is labeled."""

    id: str
    tokens: tuple[str, ...]
    tags: tuple[Row, ...] = ()
    text: str | None = None  # the raw text that the tokens were cut from
    offsets: Offsets | None = None  # of each token in `text`: [start, end) in characters

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(self.tokens))
        rows = tuple(_checked(row, self.id) for row in self.tags) or (None,) * len(self.tokens)
        object.__setattr__(self, "tags", rows)
        if len(rows) != len(self.tokens):
            raise TagError(
                f"sentence {self.id!r} must have one tag row per token; "
                f"got {len(self.tokens)} tokens and {len(rows)} tag rows"
            )
        if (self.text is None) != (self.offsets is None) or (
            self.offsets is not None and len(self.offsets) != len(self.tokens)
        ):
            raise DataError(
                f"sentence {self.id!r} must have both text and one offset per token, or neither"
            )

    def __len__(self) -> int:
        return len(self.tokens)

    def __reduce__(self) -> tuple[type[Sentence], tuple[object, ...]]:
        # A mappingproxy cannot be pickled.
        rows = tuple(dict(row) if isinstance(row, Mapping) else row for row in self.tags)
        return Sentence, (self.id, self.tokens, rows, self.text, self.offsets)

    @property
    def labeled(self) -> bool:
        """Whether at least one token has a tag row."""
        return any(row is not None for row in self.tags)

    @property
    def hard(self) -> bool:
        """Whether every token has exactly one tag."""
        return all(isinstance(row, str) for row in self.tags)

    def with_tags(self, tags: Sequence[Row]) -> Sentence:
        """Return the same sentence with these tags."""
        return replace(self, tags=tuple(tags) or (None,) * len(self.tokens))

    def unlabeled(self) -> Sentence:
        """Return the same sentence without labels."""
        return self.with_tags(())

    def hardened(self) -> Sentence:
        """Return the sentence with soft rows as their heaviest tag, the first by name on a tie."""
        return self.with_tags(
            [heaviest(row) if isinstance(row, Mapping) else row for row in self.tags]
        )

    def located(self) -> tuple[str, Offsets]:
        """Return text and offsets; without a raw text the tokens are joined by single spaces."""
        if self.text is not None and self.offsets is not None:
            return self.text, self.offsets
        offsets, at = [], 0
        for token in self.tokens:
            offsets.append((at, at + len(token)))
            at += len(token) + 1
        return " ".join(self.tokens), tuple(offsets)


def heaviest(row: Mapping[str, float]) -> str:
    """Return the tag with the most weight, the first by name on a tie."""
    return min(row, key=lambda tag: (-row[tag], tag))


def unique_ids(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Return the sentences as a list; two that share an id are an error."""
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
            f"sentence {id!r}: the weights of a tag row must be positive and sum to 1",
            text=str(dict(row)),
        )
    if len(weights) == 1:
        return next(iter(weights))
    return MappingProxyType({tag: float(weight) for tag, weight in weights.items()})
