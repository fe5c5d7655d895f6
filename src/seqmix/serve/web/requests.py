"""Request bodies; unknown keys, wrong types and very long lists are refused before any look-up.

Types are strict: "1" is not a number and true is not 1. The store checks what depends on the
sentence, such as whether a span lies inside it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_MOST = 20_000  # spans of one sentence
Id = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
At = Annotated[int, Field(ge=0, le=2**31)]
Version = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Offset = Annotated[int, Field(ge=0, le=2**31)]
Count = Annotated[int, Field(ge=1, le=200)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SpanBody(_Body):
    """Tokens `start` up to but not including `end`."""

    start: At
    end: At
    tag: Annotated[str, StringConstraints(min_length=1, max_length=200)]


Spans = Annotated[list[SpanBody], Field(max_length=_MOST)]
Sure = Annotated[
    list[Annotated[list[At], Field(min_length=2, max_length=2)]], Field(max_length=_MOST)
]


class Annotation(_Body):
    """An answer: the spans of a sentence, and the part of it they are about (null: all)."""

    id: Id
    version: Version
    spans: Spans
    sure: Sure | None = None
    seconds: Seconds = 0.0


class Skip(_Body):
    """Leave a sentence to others."""

    id: Id
    version: Version
    seconds: Seconds = 0.0


class Undo(_Body):
    """The seq of the answer to cancel; sent twice, it is cancelled once."""

    seq: Version


class Veto(_Body):
    """Keep a generated sentence out of training, or allow it again."""

    veto: bool


class Adjudication(_Body):
    """The spans that count where annotators differ."""

    id: Id
    version: Version
    spans: Spans


class NewAnnotator(_Body):
    """The annotator to add."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Error(BaseModel):
    """Every response that reports an error."""

    error: str
