"""Request bodies; unknown keys, wrong types and very long lists are refused before any look-up.

Types are strict: "1" is not a number and true is not 1. The store checks what depends on the
sentence, such as whether a span lies inside it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_MOST = 20_000  # spans of one sentence
Id = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
At = Annotated[int, Field(ge=0, le=2**31)]
Version = Annotated[int, Field(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Offset = Annotated[int, Field(ge=0, le=2**31)]
Count = Annotated[int, Field(ge=1, le=200)]


SourceName = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class StrictBody(BaseModel):
    """A body whose keys and types must be exact."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SpanBody(StrictBody):
    """Tokens `start` up to but not including `end`."""

    start: At
    end: At
    tag: Annotated[str, StringConstraints(min_length=1, max_length=200)]


Spans = Annotated[list[SpanBody], Field(max_length=_MOST)]
Sure = Annotated[
    list[Annotated[list[At], Field(min_length=2, max_length=2)]], Field(max_length=_MOST)
]


class Annotation(StrictBody):
    """An answer: the spans of a sentence, and the part of it they are about (null: all)."""

    id: Id
    version: Version
    spans: Spans
    sure: Sure | None = None
    seconds: Seconds = 0.0
    tag_change: Version | None = None
    """The last change of the tags that the page knows (null: all)."""
    sources: Annotated[list[SourceName], Field(max_length=100)] = []
    """The sources whose suggestions were on the page."""


class Skip(StrictBody):
    """Leave a sentence to others, or discard it."""

    id: Id
    version: Version
    seconds: Seconds = 0.0


class Undo(StrictBody):
    """The seq of the answer to cancel; sent twice, it is cancelled once."""

    seq: Version


class Veto(StrictBody):
    """Keep a generated sentence out of training, or allow it again."""

    veto: bool


class Augmenting(StrictBody):
    """Generate sentences with SeqMix, or by replacing mentions."""

    seqmix: bool


class NewSource(StrictBody):
    """A dictionary as typed: in each line a text or `re:` and a pattern, a tab, a tag."""

    name: SourceName
    terms: Annotated[str, StringConstraints(min_length=1, max_length=2_000_000)]
    ignore_case: bool = False


class NewEndpoint(StrictBody):
    """A language model behind an OpenAI-compatible address, up to /v1."""

    name: SourceName
    url: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    model: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class EndpointChange(StrictBody):
    """What to change of an endpoint; what is left out stays."""

    model: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    prompt: Annotated[str, StringConstraints(min_length=1, max_length=20_000)] | None = None
    per_minute: Annotated[int, Field(ge=1, le=10_000)] | None = None
    most_tokens: Annotated[int, Field(ge=0, le=10**12)] | None = None
    price: Annotated[float, Field(ge=0, le=10**6, allow_inf_nan=False)] | None = None
    answers: Annotated[float, Field(ge=0, le=0.9, allow_inf_nan=False)] | None = None


class Consent(StrictBody):
    """Yes or no to sending text of the project to an address."""

    origin: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    yes: bool


class SourceState(StrictBody):
    """Turn a source on or off."""

    on: bool


class Adjudication(StrictBody):
    """The spans that count where annotators differ."""

    id: Id
    version: Version
    spans: Spans
    tag_change: Version | None = None
    """The last change of the tags that the page knows (null: all)."""


class Reviewed(StrictBody):
    """The answer in doubt by its event (null: labels of the seed): keep it, or no longer."""

    id: Id
    seq: Version | None
    keep: bool = True


class Mended(StrictBody):
    """A correction of an answer in doubt."""

    id: Id
    seq: Version | None
    version: Version
    spans: Spans
    sure: Sure | None = None
    seconds: Seconds = 0.0
    tag_change: Version | None = None
    """The last change of the tags that the page knows (null: all)."""


class Check(StrictBody):
    """Look for doubts: compare the answers, and with `model` let models judge them too."""

    model: bool = False


Rate = Annotated[float, Field(ge=0.001, le=0.5, allow_inf_nan=False)]


class Predict(StrictBody):
    """Let a model predict the open sentences, or no longer."""

    on: bool = True


class Bulk(StrictBody):
    """Accept what the preview of these predictions showed, at an error rate of at most alpha."""

    alpha: Rate
    at: float


class AnswerQuery(BaseModel):
    """Which answers or sentences to list; what is empty does not matter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Literal["answered", "skipped", "discarded", "open", "seed"] = "answered"
    id: Annotated[str, Field(max_length=1000)] = ""
    text: Annotated[str, Field(max_length=200)] = ""
    tag: Annotated[str, Field(max_length=200)] = ""
    annotator: Annotated[str, Field(max_length=64)] = ""
    stream: Annotated[str, Field(max_length=16)] = ""
    source: Annotated[str, Field(max_length=64)] = ""
    since: Annotated[float, Field(allow_inf_nan=False)] | None = None
    until: Annotated[float, Field(allow_inf_nan=False)] | None = None
    before_tag: Annotated[str, Field(max_length=200)] = ""
    commented: bool = False
    after: Version | None = None
    limit: Count = 50


TagName = Annotated[str, StringConstraints(max_length=64)]


class TagWish(StrictBody):
    """A change of the tags; `newest` is the last change that whoever wants it has seen."""

    kind: Literal["add", "rename", "merge", "split", "recolor", "retire", "undo"]
    tag: TagName = ""
    into: Annotated[list[TagName], Field(max_length=100)] = []
    color: Annotated[int, Field(ge=0, le=100)] | None = None
    earlier: Literal["none", "unknown"] = "none"
    newest: Version | None = None


class NewComment(StrictBody):
    """What to say about a sentence; empty: flag it."""

    id: Id
    text: Annotated[str, Field(max_length=2000)] = ""


class Resolved(StrictBody):
    """Whether a comment is dealt with."""

    resolved: bool


class SameText(BaseModel):
    """A span whose text is looked for elsewhere."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Id
    start: At
    end: At
    tag: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    ignore_case: bool = False
    endings: bool = False


class MarkAll(SameText):
    """A span to mark wherever its text is."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    here: Sure = []
    """Where the page marks it in the sentence itself."""


class NewAnnotator(StrictBody):
    """The annotator to add."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]


class Error(BaseModel):
    """Every response that reports an error."""

    error: str
