"""The page of answers in doubt: one key keeps an answer, one mends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seqmix.serve.review.doubts import REVIEW_NOW, gold_events, write_doubts
from seqmix.serve.review.evidence import Doubt
from tests.support.page import Line, answer_as, expect, lines, press, ranked, stored

Serve = Callable[..., Any]


@pytest.fixture
def doubted(serve: Serve) -> Any:
    """Six answers by lena and one by omar: a model doubts two, and Oslo is tagged differently once."""
    served = serve(
        lines(
            *("Lena left Oslo .", "Ada saw Oslo .", "Bo saw Oslo .", "Eve in Oslo ."),
            *("Zoe from Oslo .", "Rome is big .", "Ada ran .", "open ."),
        )
    )
    ranked(served)
    served.invite("omar")
    for id in ("s0", "s1", "s2"):
        answer_as(served, "lena", id, (0, 1, "PER"), (2, 3, "LOC"))
    answer_as(served, "lena", "s3", (0, 1, "PER"), (2, 3, "ORG"))
    answer_as(served, "lena", "s4", (0, 1, "PER"), (2, 3, "LOC"))
    answer_as(served, "lena", "s5")
    answer_as(served, "omar", "s6", (0, 1, "LOC"))
    store = served.project.store
    new = [
        Doubt("s5", "model", 0.97, {"spans": [[0, 1, "LOC", 0.97]]}),
        Doubt("s6", "model", 0.95, {"spans": [[0, 1, "PER", 0.9]]}),
    ]
    write_doubts(store, "model", new, gold_events(store))
    return served


def reviewed(page: Any, id: str) -> None:
    page.wait_for_selector(f'#review:not([hidden]):not([aria-busy]) #sentence[data-id="{id}"]')


def test_the_most_likely_error_comes_first_and_one_key_mends_or_keeps(
    doubted: Any, visit: Any
) -> None:
    page = visit(doubted.link)
    page.get_by_role("link", name="Review").click()
    reviewed(page, "s5")
    expect(page.locator("#summary")).to_have_text("3 answers in doubt.")
    expect(page.locator("#reasons")).to_contain_text("97% sure")
    press(page, "m")
    reviewed(page, "s6")
    assert stored(doubted)["s5"][0] == [(0, 1, "LOC")]
    expect(page.locator("#whose")).to_have_text("omar’s answer")
    press(page, "k")
    reviewed(page, "s3")
    expect(page.locator("#reasons")).to_contain_text("ORG 1×")
    expect(page.locator("#reasons li")).to_have_count(3)
    page.locator("#sentence [data-at='2']").click()
    press(page, "3")
    expect(page.locator("#save")).to_be_enabled()
    press(page, "Enter")
    page.locator("#summary", has_text="No answer is in doubt.").wait_for()
    assert stored(doubted)["s3"][0] == [(0, 1, "PER"), (2, 3, "LOC")]
    assert stored(doubted)["s6"][0] == [(0, 1, "LOC")]


def test_decisions_are_taken_back_and_put_off(doubted: Any, visit: Any) -> None:
    page = visit(doubted.link)
    page.goto(f"{doubted.url}/review.html")
    reviewed(page, "s5")
    press(page, "s")
    reviewed(page, "s6")
    expect(page.locator("#summary")).to_contain_text("1 of them postponed")
    press(page, "k")
    reviewed(page, "s3")
    press(page, "m")
    reviewed(page, "s5")
    press(page, "z")
    page.locator("#status", has_text="Taken back.").wait_for()
    assert stored(doubted)["s3"][0] == [(0, 1, "PER"), (2, 3, "ORG")]
    press(page, "z")
    page.locator("#summary", has_text="3 answers in doubt").wait_for()


def test_a_decision_about_the_answer_of_another_is_taken_back_too(doubted: Any, visit: Any) -> None:
    page = visit(doubted.link)
    page.goto(f"{doubted.url}/review.html")
    reviewed(page, "s5")
    press(page, "k")
    reviewed(page, "s6")
    press(page, "m")
    reviewed(page, "s3")
    assert stored(doubted)["s6"][0] == [(0, 1, "PER")]
    press(page, "z")
    page.locator("#status", has_text="Taken back.").wait_for()
    reviewed(page, "s6")
    assert stored(doubted)["s6"][0] == [(0, 1, "LOC")]
    expect(page.locator("#whose")).to_have_text("omar’s answer")


def test_an_admin_lets_models_judge_and_others_see_only_their_answers(
    doubted: Any, visit: Any
) -> None:
    page = visit(doubted.link)
    page.goto(f"{doubted.url}/review.html")
    page.get_by_role("button", name="Let models judge the answers").click()
    page.get_by_role("button", name="Stop judging").wait_for()
    assert doubted.project.store.read_note(REVIEW_NOW) is not None
    page.get_by_role("button", name="Stop judging").click()
    page.get_by_role("button", name="Let models judge").wait_for()
    assert doubted.project.store.read_note(REVIEW_NOW) is None

    other = visit(doubted.invite("eve"))
    other.goto(f"{doubted.url}/review.html")
    other.locator("#summary", has_text="No answer is in doubt.").wait_for()
    expect(other.locator("#judge")).to_be_hidden()


def test_without_the_server_nothing_is_decided_and_the_page_says_so(
    doubted: Any, visit: Any
) -> None:
    page = visit(doubted.link)
    page.goto(f"{doubted.url}/review.html")
    line = Line(page, "**/api/reviews/*")
    reviewed(page, "s5")
    line.cut = True
    press(page, "k")
    page.get_by_text("Not kept.").wait_for()
    line.cut = False
    page.get_by_role("button", name="Load the list again").click()
    page.locator("#trouble").wait_for(state="hidden")
    reviewed(page, "s5")
