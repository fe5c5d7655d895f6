"""What a model would answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from seqmix.data.spans import OUTSIDE, spans


@dataclass(frozen=True)
class Guess:
    """The best tags of a sentence, their joint probability, and that of each."""

    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...]

    @property
    def empty(self) -> bool:
        """Whether it has no span."""
        return all(tag == OUTSIDE for tag in self.tags)


def suggestion(guess: Guess, tags: Collection[str]) -> dict[str, Any]:
    """Return a guess for the page; a span, and the whole, is as sure as its least sure token."""
    suggested = [
        {
            "start": span.start,
            "end": span.end,
            "tag": span.type,
            "confidence": _rounded(min(guess.by_token[span.start : span.end])),
        }
        for span in spans(guess.tags)
        if span.type in tags
    ]
    return {"spans": suggested, "confidence": _rounded(min(guess.by_token, default=1.0))}


def guessed_marks(guess: Guess) -> list[list[Any]]:
    """Return its spans as a generation keeps them for the audit."""
    return [[span.start, span.end, span.type] for span in spans(guess.tags)]


def _rounded(probability: float) -> float:
    """Return four significant digits, since a very improbable path must not become 0."""
    return float(f"{probability:.4g}")
