"""What a model would answer, and the order in which sentences are asked."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
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


def with_quota(order: Sequence[str], some: Collection[str], share: float) -> list[str]:
    """The same ids, reordered no more than needed so that of any first n at least share · n are of `some`, while there are any.

    A model that misses every name of some kind is sure of it, so a policy alone would never show it such a sentence.
    """
    places, placed, seen = {id: place for place, id in enumerate(order)}, list[str](), 0
    wanted, others = (
        deque(id for id in order if id in some),
        deque(id for id in order if id not in some),
    )
    while wanted and others:
        takes = seen < int(share * (len(placed) + 1)) or places[wanted[0]] < places[others[0]]
        placed.append((wanted if takes else others).popleft())
        seen += takes
    return [*placed, *wanted, *others]


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
