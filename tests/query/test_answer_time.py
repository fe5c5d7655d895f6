"""The time model begins as published, follows the answers, and is not led astray by a pause."""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.query.answer_time import PUBLISHED, AnswerTime, TimedAnswer, fit_answer_time, minutes

# sentences, spans and tokens per sentence, minutes: User1 to User9, at random and with active
# learning, from table 4 of Wei et al. 2019
STUDY = np.array(
    [
        [[920, 1.40, 11.37, 119.97], [664, 2.06, 12.80, 120.22]],
        [[553, 1.44, 11.48, 119.41], [415, 2.17, 12.33, 120.64]],
        [[766, 1.34, 10.73, 119.88], [525, 1.98, 12.16, 120.19]],
        [[842, 1.42, 11.64, 119.56], [550, 2.38, 14.47, 120.44]],
        [[910, 1.43, 12.15, 119.85], [616, 2.44, 14.29, 120.44]],
        [[745, 1.41, 11.51, 120.01], [570, 2.06, 11.20, 120.22]],
        [[435, 1.27, 11.11, 119.46], [388, 1.86, 10.26, 120.56]],
        [[875, 1.38, 10.95, 119.95], [637, 2.00, 11.90, 120.10]],
        [[617, 1.44, 11.45, 120.23], [445, 2.28, 12.52, 120.04]],
    ]
)


def answers(n: int, true: AnswerTime, seed: int = 0, spread: float = 0.5) -> list[TimedAnswer]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        spans = {tag: k for tag in ("PER", "LOC") if (k := int(rng.poisson(0.8)))}
        about = true.of(TimedAnswer(tokens := int(rng.integers(3, 40)), spans, 0.0))
        noise = float(rng.lognormal(-(spread**2) / 2, spread))
        made.append(TimedAnswer(tokens, spans, about * noise))
    return made


def test_the_published_figures_follow_from_the_study():
    sentences, spans, tokens, taken = np.moveaxis(STUDY, -1, 0)
    expected = PUBLISHED.seconds(tokens, spans) * sentences / 60
    speed = np.exp(np.log(taken / expected).mean(axis=1, keepdims=True))  # of each person

    assert abs(speed * expected / taken - 1).max() < 0.06
    assert abs(speed * expected / taken - 1).mean() < 0.025
    assert np.exp(np.log(speed).mean()) == pytest.approx(1, abs=0.02)


def test_without_answers_the_published_figures_hold():
    assert fit_answer_time([]) == PUBLISHED
    assert minutes(10, 200, 30) == pytest.approx((0.33 * 200 + 4.5 * 30) / 60)


def test_few_answers_move_it_a_little_and_many_all_the_way():
    true = AnswerTime(3.0, 0.1, 1.5, {"PER": 1.0, "LOC": 2.0})
    few, many = (fit_answer_time(answers(n, true)) for n in (3, 600))

    assert true.per_span < few.per_span < PUBLISHED.per_span
    assert many.per_token == pytest.approx(0.1, abs=0.04)
    assert many.per_span == pytest.approx(1.5, abs=0.4)
    assert many.base == pytest.approx(3.0, abs=0.7)
    assert many.by_tag["LOC"] > many.by_tag["PER"] and many.answers == 600


@pytest.mark.parametrize("seed", range(3))
def test_what_it_expects_is_right_on_average(seed: int):
    true = AnswerTime(2.0, 0.25, 3.0)
    seen, unseen = answers(200, true, seed), answers(400, true, seed + 100)
    model = fit_answer_time(seen)

    expected, taken = sum(map(model.of, unseen)), sum(answer.seconds for answer in unseen)
    assert expected == pytest.approx(taken, rel=0.15)


def test_somebody_who_was_away_counts_for_little():
    true = AnswerTime(1.0, 0.3, 4.0)
    plain = answers(100, true)
    away = [*plain, TimedAnswer(10, {"PER": 1}, 100_000.0)]
    typical = TimedAnswer(20, {"PER": 2}, 0.0)

    assert fit_answer_time(away).of(typical) == pytest.approx(
        fit_answer_time(plain).of(typical), rel=0.1
    )


def test_no_figure_is_negative():
    odd = [TimedAnswer(50, {}, 1.0), TimedAnswer(1, {"PER": 5}, 1.0), TimedAnswer(1, {}, 90.0)] * 9
    model = fit_answer_time(odd)

    assert min(model.base, model.per_token, model.per_span, *model.by_tag.values()) >= 0
