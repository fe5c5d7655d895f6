"""What a request may say. Unknown keys, other types and endless lists are refused before anything is looked up.

Types are strict: "1" is no number and true is no 1. What depends on the sentence (does the span lie inside it?) the store checks.
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
    """An answer: the spans of a sentence, and which part of it they speak of (null: all)."""

    id: Id
    version: Version
    spans: Spans
    sure: Sure | None = None
    seconds: Seconds = 0.0


class Skip(_Body):
    """No answer to this one."""

    id: Id
    version: Version
    seconds: Seconds = 0.0


class Undo(_Body):
    """The answer to take back, by its seq: sent twice, it is taken back once."""

    seq: Version


class Veto(_Body):
    """Refuse a generated sentence, or take that back."""

    veto: bool


class Adjudication(_Body):
    """What holds where annotators differ."""

    id: Id
    version: Version
    spans: Spans


class NewAnnotator(_Body):
    """Somebody new."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Error(BaseModel):
    """Every answer that is not a good one."""

    error: str
