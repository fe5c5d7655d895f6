"""Figures as all commands print them."""

from __future__ import annotations

import pytest

from seqmix.app.console import duration, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")],
)
def test_a_duration_is_said_in_the_unit_that_people_would_use(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_share_is_said_in_percent() -> None:
    assert percent(0.8127) == "81.3"
