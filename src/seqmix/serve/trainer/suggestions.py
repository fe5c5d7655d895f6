"""What a model would answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from seqmix.data.scheme import spans
from seqmix.data.tagset import OUTSIDE


@dataclass(frozen=True)
class Guess:
    """The best tags of a sentence, the probability of all of them together and of each."""

    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...]

    @property
    def empty(self) -> bool:
        """Nothing is found in the sentence."""
        return all(tag == OUTSIDE for tag in self.tags)


def suggestion(guess: Guess, tags: Collection[str]) -> dict[str, Any]:
    """A guess as the page shows it; a span, and the whole, is as sure as its least sure token."""
    found = [
        {
            "start": span.start,
            "end": span.end,
            "tag": span.type,
            "confidence": _short(min(guess.by_token[span.start : span.end])),
        }
        for span in spans(guess.tags)
        if span.type in tags
    ]
    return {"spans": found, "confidence": _short(min(guess.by_token, default=1.0))}


def guessed_marks(guess: Guess) -> list[list[Any]]:
    """Its spans, as a generation keeps them for the audit."""
    return [[span.start, span.end, span.type] for span in spans(guess.tags)]


def _short(probability: float) -> float:
    """Four figures are enough; a long sentence's best path may be very improbable and still is no 0."""
    return float(f"{probability:.4g}")
