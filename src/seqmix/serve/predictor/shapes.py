"""Predictions as JSON: seqmix's own shape, and that of Hugging Face's inference endpoints."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from seqmix.data.scheme import detect
from seqmix.data.spans import OUTSIDE, Span, spans, token_spans
from seqmix.serve.predictor.batching import Tagged
from seqmix.serve.predictor.model import TokenPath

_DIGITS = 6


def prediction(tagged: Tagged, tags: Sequence[str]) -> dict[str, Any]:
    """Return a prediction as /predict gives it; `tags` are those of the model."""
    best, *others = (_alternative(tagged, path, tags) for path in tagged.paths)
    text, offsets = tagged.sentence.located()
    more = {"alternatives": others} if others else {}
    return {"text": text, "tokens": [text[a:b] for a, b in offsets], **best, **more}


def labels_of(tags: Sequence[str]) -> list[str]:
    """Return the labels that spans of these tags can have."""
    return sorted({span.type for tag in tags for span in _spans([tag], tags)})


def entities(
    tagged: Tagged, tags: Sequence[str], strategy: str, ignored: Collection[str]
) -> list[dict[str, Any]]:
    """Return the entities of a sentence as Hugging Face's pipeline names them."""
    path = tagged.paths[0]
    if strategy == "none":
        tokens = [Span(at, at + 1, tag) for at, tag in enumerate(path.tags)]
        return [
            {"entity": token.type, "index": token.end, **_entity(tagged, path, token)}
            for token in tokens
            if token.type not in ignored
        ]
    groups = _with_gaps(_spans(path.tags, tags), len(path.tags))
    return [
        {"entity_group": group.type, **_entity(tagged, path, group)}
        for group in groups
        if group.type not in ignored
    ]


def _spans(path: Sequence[str], tags: Sequence[str]) -> list[Span]:
    return token_spans(path) if detect(tags) == "tokens" else spans(path)


def _with_gaps(labeled: Sequence[Span], length: int) -> Iterator[Span]:
    """Yield the spans, and what is between them as spans of O."""
    at = 0
    for span in labeled:
        if at < span.start:
            yield Span(at, span.start, OUTSIDE)
        yield span
        at = span.end
    if at < length:
        yield Span(at, length, OUTSIDE)


def _alternative(tagged: Tagged, path: TokenPath, tags: Sequence[str]) -> dict[str, Any]:
    text, offsets = tagged.sentence.located()
    return {
        "probability": round(path.probability, _DIGITS),
        "spans": [
            {
                "start": offsets[span.start][0],
                "end": offsets[span.end - 1][1],
                "token_start": span.start,
                "token_end": span.end,
                "label": span.type,
                "text": text[offsets[span.start][0] : offsets[span.end - 1][1]],
                "probability": round(min(path.by_token[span.start : span.end]), _DIGITS),
            }
            for span in _spans(path.tags, tags)
        ],
    }


def _entity(tagged: Tagged, path: TokenPath, span: Span) -> dict[str, Any]:
    text, offsets = tagged.sentence.located()
    start, end = offsets[span.start][0], offsets[span.end - 1][1]
    return {"score": _mean(path, span), "word": text[start:end], "start": start, "end": end}


def _mean(path: TokenPath, span: Span) -> float:
    """Return the mean probability of a span's tags, as Hugging Face scores a group."""
    inside = path.by_token[span.start : span.end]
    return round(sum(inside) / len(inside), _DIGITS)
