"""The values that everything else uses: a sentence, its tag rows, a span.

    Sentence("s1", ("Lena", "left", "Oslo"), ("B-PER", "O", {"B-LOC": 0.7, "B-ORG": 0.3}))

    Sentence.from_text("Lena left Oslo.", entities=[(0, 4, "PER")])

A tag row is a distribution over tags that sums to 1.
A string is a hard row, with all weight on that tag; a mapping from tag to weight is a soft row;
None is a missing row, of a token that nobody has labeled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from types import MappingProxyType

from seqmix.data.spans import (
    OUTSIDE,
    Entity,
    Offsets,
    prefixed,
    spans,
    token_spans,
)
from seqmix.data.text import CharSpan, Misaligned, tags_from_text
from seqmix.data.tokenizers import DEFAULT, token_offsets
from seqmix.errors import DataError, TagError

Row = str | Mapping[str, float] | None
DOCSTART = "-DOCSTART-"  # the only token of a line between documents in CoNLL files


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens with one tag row each; `tags=()` means that no token is labeled.

    >>> Sentence("s1", ("Lena", "left"), ("B-PER", "O")).entities()
    [Entity(text='Lena', label='PER', start=0, end=4, probability=None)]
    """

    id: str
    """Its name, which no other sentence of a corpus has."""
    tokens: tuple[str, ...]
    """Its words and punctuation marks."""
    tags: tuple[Row, ...] = ()
    """For each token a tag, a mapping from tags to weights that sum to 1, or None for unlabeled."""
    text: str | None = None
    """The raw text that the tokens were cut from."""
    offsets: Offsets | None = None
    """Where each token is in `text`: from start up to but not including end, in characters."""
    weight: float = 1.0
    """How much it counts in training."""

    def __post_init__(self) -> None:
        self._refuse_other_types()
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
        if not (isinstance(self.weight, int | float) and 0 < self.weight <= 1):
            raise DataError(
                f"the weight of a sentence must be above 0 and at most 1; "
                f"{self.id!r} has {self.weight!r}"
            )

    @classmethod
    def from_text(
        cls,
        text: str,
        id: str | None = None,
        entities: Iterable[Entity | tuple[int, int, str]] | None = None,
        misaligned: Misaligned = "error",
        tokenizer: str = DEFAULT,
    ) -> Sentence:
        """Return a sentence cut from raw text, labeled if its entities are given.

        >>> Sentence.from_text("Lena left.", entities=[(0, 4, "PER")]).tags
        ('B-PER', 'O', 'O')

        Args:
            text: The raw text, which need not be a single sentence.
            id: Its name; by default a hash of the text.
            entities: All of them, as (start, end, label) in characters; without, it is unlabeled.
            misaligned: What to do with an entity that cuts a token: error, expand or drop.
            tokenizer: How the text is cut: words, web, numbers or spaces.
        """
        if not isinstance(text, str):
            raise DataError("Sentence.from_text needs a string", text=repr(text))
        offsets, tags = token_offsets(text, tokenizer), list[str]()
        if entities is not None:
            labels = map(_char_span, entities)
            tags = tags_from_text(offsets, labels, misaligned, Counter(), text)
        id = (
            blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
            if id is None
            else id
        )
        return cls(id, tuple(text[a:b] for a, b in offsets), tuple(tags), text, offsets)

    def entities(self, by_token: Sequence[float] = ()) -> list[Entity]:
        """Return the labeled spans with their characters in the text; soft rows by heaviest tag.

        Given a probability for each token, an entity is as probable as its least sure token.

        >>> Sentence("s1", ("Lena", "left"), ("B-PER", "O")).entities()
        [Entity(text='Lena', label='PER', start=0, end=4, probability=None)]
        """
        tags = [str(row or OUTSIDE) for row in self.hardened().tags]
        plain = self.labeled and not any(tag == OUTSIDE or prefixed(tag) for tag in tags)
        text, offsets = self.located()
        return [
            Entity(
                text[offsets[span.start][0] : offsets[span.end - 1][1]],
                span.type,
                offsets[span.start][0],
                offsets[span.end - 1][1],
                min(by_token[span.start : span.end], default=None),
            )
            for span in (token_spans if plain else spans)(tags)
        ]

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

    def _refuse_other_types(self) -> None:
        """Refuse a string where a sequence is needed, which would be cut into characters."""
        if isinstance(self.tokens, str):
            raise DataError(
                "the tokens of a sentence must be a list of words; "
                "Sentence.from_text(text) cuts raw text",
                text=self.tokens,
            )
        if isinstance(self.tags, str):
            raise TagError(
                "the tags of a sentence must be a list with one tag per token", text=self.tags
            )
        for token in self.tokens:
            if not isinstance(token, str):
                raise DataError(
                    f"the tokens of a sentence must be strings; {self.id!r} has {token!r}"
                )


def _char_span(entity: Entity | tuple[int, int, str]) -> CharSpan:
    if isinstance(entity, Entity):
        return CharSpan(entity.start, entity.end, entity.label)
    start, end, label = entity
    return CharSpan(start, end, label)


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
    if not isinstance(row, Mapping):
        raise TagError(
            f"sentence {id!r}: a tag must be a name such as B-PER, a mapping from tags to weights, "
            f"or None for a token without a label; got {row!r}"
        )
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
