"""The goal is what the next step needs, and never more than there is."""

from __future__ import annotations

import pytest

from seqmix.query.answer_time import AnswerTime, TimedAnswer
from seqmix.serve.progress.estimates import Point, Progress
from seqmix.serve.progress.forecast import AuditForecast
from seqmix.serve.progress.goal import goal_of
from seqmix.serve.progress.pace import AnswerRow, Times
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.records import Counts

SETTINGS = ProjectSettings("p", ("PER",), audit_share=0.2, batch=10)
CURVE = (Point(1, 10, 0.5, 0.2, 0.8),)
SOON = Times(
    AnswerTime(6.0, 0.0, 0.0), (AnswerRow(1, "active", (), TimedAnswer(10, {}, 6.0)),)
)  # six seconds each


def goal(progress: Progress, labeled: int = 0, missing: int = 10, sentences: int = 1000):
    counts = Counts(sentences=sentences, labeled=labeled)
    return goal_of(counts, progress, SETTINGS, missing, SOON)


def test_at_first_it_is_the_first_model():
    aim = goal(Progress(), labeled=3, missing=8)

    assert (aim.why, aim.more, aim.answers, aim.minutes) == ("first model", 10, 13, 1.0)


def test_then_what_a_forecast_needs():
    models = goal(Progress(curve=CURVE, models_lack=4, forecast_lacks=1), 13, 9)
    audits = goal(Progress(curve=CURVE, models_lack=0, forecast_lacks=6), 60)

    assert (models.why, models.more) == ("measure", 49)  # (9 + 3 · 10) / 0.8
    assert (audits.why, audits.more) == ("measure", 30)  # 6 / 0.2


def test_then_the_answers_whose_gain_is_forecast():
    aim = goal(Progress(curve=CURVE, forecast=AuditForecast(0.03, 0.01, 0.05, 40)), 100)

    assert (aim.why, aim.more, aim.answers, aim.minutes) == ("gain", 50, 150, 5.0)


def test_in_the_end_nothing_more():
    aim = goal(Progress(curve=CURVE, forecast=AuditForecast(0.0, 0.0, 0.004, 40)), 100)

    assert (aim.why, aim.more, aim.answers) == ("enough", 0, 100)


@pytest.mark.parametrize("left", [0, 4])
def test_it_is_never_more_than_the_text(left: int):
    aim = goal(Progress(), labeled=6, sentences=6 + left)

    assert (aim.why, aim.more, aim.answers) == ("all", left, 6 + left)


def test_without_an_audit_it_is_all_of_the_text():
    settings = ProjectSettings("p", ("PER",), audit_share=0.0)

    aim = goal_of(Counts(sentences=100), Progress(), settings, 7, SOON)

    assert (aim.why, aim.more) == ("all", 100)
