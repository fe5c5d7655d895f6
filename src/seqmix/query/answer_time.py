"""How long an answer takes: seconds for the sentence, for each token read and each span marked.

Before there are answers, the figures are those of nine people who each labeled clinical text for
four hours (Wei et al. 2019, doi 10.1093/jamia/ocz102, table 4): per token 0.33 s, per span 4.5 s,
and nothing else, which gives their 18 means to 2 % when each person has a speed of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

_SPREAD = 0.6  # of single answers around what is expected, as a share of it
_DOUBT = 0.5  # of each published figure, as a share of it
_BASE_DOUBT = 2.0  # seconds
_LONGEST = 5.0  # times the expected seconds; beyond, somebody was away
_ROUNDS = 8
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TimedAnswer:
    """What an answer was about, and how long it took."""

    tokens: int
    spans: Mapping[str, int]  # by tag
    seconds: float


@dataclass(frozen=True)
class AnswerTime:
    """The seconds of an answer: base + per_token · tokens + per_span · spans."""

    base: float
    per_token: float
    per_span: float
    by_tag: Mapping[str, float] = field(default_factory=dict)  # seconds for a span of a tag
    answers: int = 0  # from which it was fitted

    def seconds(self, tokens: float, spans: float, sentences: float = 1.0) -> float:
        """Return the seconds that sentences with these counts of tokens and spans take."""
        return self.base * sentences + self.per_token * tokens + self.per_span * spans

    def of(self, answer: TimedAnswer) -> float:
        """Return the seconds that an answer should take, by the tags in it."""
        spans = sum(self.by_tag.get(tag, self.per_span) * n for tag, n in answer.spans.items())
        return self.base + self.per_token * answer.tokens + spans


PUBLISHED = AnswerTime(0.0, 0.33, 4.5)


def minutes(sentences: float, tokens: float, spans: float, time: AnswerTime = PUBLISHED) -> float:
    """Return the minutes that labeled sentences cost."""
    return time.seconds(tokens, spans, sentences) / 60


def fit_answer_time(answers: Sequence[TimedAnswer]) -> AnswerTime:
    """Return the time model of these answers: the published one while there are few.

    Its figures are the most probable ones, given that each published figure is right to within
    half and a single answer is off by 60 %; answers that take five times what is expected count as
    if they took that.
    """
    if not answers:
        return PUBLISHED
    tags = sorted({tag for answer in answers for tag in answer.spans})
    base, per_token, per_span = _fitted(answers, [set(tags)])
    _, _, *by_tag = _fitted(answers, [{tag} for tag in tags], (base, per_token, per_span))
    return AnswerTime(base, per_token, per_span, dict(zip(tags, by_tag, strict=True)), len(answers))


def _fitted(
    answers: Sequence[TimedAnswer],
    groups: Iterable[set[str]],
    expected: tuple[float, float, float] = (
        PUBLISHED.base,
        PUBLISHED.per_token,
        PUBLISHED.per_span,
    ),
) -> list[float]:
    """Return the seconds for the sentence, a token, and a span of each group of tags."""
    from scipy.optimize import nnls

    columns = [
        [sum(n for tag, n in answer.spans.items() if tag in group) for answer in answers]
        for group in groups
    ]
    ones, tokens = [1.0] * len(answers), [answer.tokens for answer in answers]
    features: Floats = np.array([ones, tokens, *columns], np.float64).T
    taken: Floats = np.array([answer.seconds for answer in answers], np.float64)
    start: Floats = np.array([*expected[:2], *[expected[2]] * len(columns)], np.float64)
    doubt = np.maximum(_DOUBT * start, [_BASE_DOUBT, 1e-3, *[1e-2] * len(columns)])
    figures = start
    for _ in range(_ROUNDS):
        about = np.maximum(features @ figures, 0.5)
        weight = 1 / (_SPREAD * about)
        left = np.concatenate([features * weight[:, None], np.diag(1 / doubt)])
        right = np.concatenate([np.minimum(taken, _LONGEST * about) * weight, start / doubt])
        figures, _ = nnls(left, right)
    return [float(figure) for figure in figures]
