"""The page of tags, and how open pages follow a change."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from seqmix.serve.review.doubts import gold_events, write_doubts
from seqmix.serve.review.evidence import Doubt
from seqmix.serve.store.sentences import read_labeled
from seqmix.serve.tags.changes import Wish
from seqmix.serve.tags.in_settings import change_project_tags
from tests.support.page import (
    Line,
    answer_as,
    each_has,
    expect,
    heard,
    lines,
    press,
    ranked,
    shown,
    stored,
)
from tests.support.waiting import until

Serve = Callable[..., Any]


@pytest.fixture
def answered(serve: Serve) -> Any:
    served = serve(lines("Lena left Oslo .", "Ada came .", "Bo saw Rome .", "Eve slept ."))
    ranked(served)
    served.invite("omar")
    answer_as(served, "lena", "s0", (0, 1, "PER"), (2, 3, "LOC"))
    answer_as(served, "omar", "s1", (0, 1, "PER"))
    return served


def tags_of(served: Any, id: str) -> tuple[Any, ...]:
    return next(s.tags for s in read_labeled(served.project.store) if s.id == id)


def lists(page: Any, *tags: str) -> None:
    """Wait until these tags are listed, and no others."""
    each_has(page.locator("#list li"), "data-tag", *tags)


def ask(page: Any, button: str, says: str) -> None:
    """Open a dialog and wait for what the server counted."""
    page.get_by_role("button", name=button, exact=True).click()
    page.locator("#touched", has_text=says).wait_for()


def sure(page: Any, says: str) -> None:
    page.locator("#sure:not([disabled])").click()
    page.locator("#status", has_text=says).wait_for()


def test_a_tag_is_renamed_split_retired_and_taken_back_after_its_answers_were_counted(
    answered: Any, visit: Any
) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/tags.html")
    page.locator('[data-tag="PER"] .count', has_text="2 spans").wait_for()
    ask(page, "Rename PER", "needs another tag")
    expect(page.locator("#sure")).to_be_disabled()
    page.get_by_label("New name").fill("Human")
    page.locator("#touched", has_text="This affects 2 answers of 2 people with 2 spans.").wait_for()
    sure(page, "Done: renamed PER to Human.")
    lists(page, "Human", "ORG", "LOC", "MISC")
    assert tags_of(answered, "s1")[0] == "B-Human"

    ask(page, "Split LOC", "two tags or more")
    page.get_by_label("Names, separated by spaces").fill("City River")
    page.locator("#touched", has_text="1 answer with 1 span").wait_for()
    sure(page, "Done: split LOC into City, River.")
    page.locator(
        "#waiting", has_text="1 answer with spans of a tag that was split waits"
    ).wait_for()
    assert tags_of(answered, "s0")[2] is None

    ask(page, "Take back the last change", "This affects 1 answer with 1 span.")
    sure(page, "Taken back.")
    ask(page, "Retire ORG", "This affects 0 answers.")
    sure(page, "Done: retired ORG.")
    lists(page, "Human", "LOC", "MISC")
    expect(page.locator("#waiting")).to_be_hidden()
    expect(page.locator("#changes li")).to_have_count(4)
    expect(page.locator("#changes li").last).to_contain_text("lena renamed PER to Human")


def test_a_tag_is_added_merged_and_recolored(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/tags.html")
    ask(page, "Add a tag", "a tag is 1 to 64")
    page.get_by_role("textbox", name="Name").fill("Event")
    page.locator("#touched", has_text="2 answers were given without it.").wait_for()
    page.get_by_label("Nobody looked for it").check()
    sure(page, "Done: added Event.")
    assert tags_of(answered, "s1") == ("B-PER", None, None)
    ask(page, "Merge PER", "This affects 2 answers")
    page.get_by_role("combobox", name="Into").select_option("Event")
    sure(page, "Done: merged PER into Event.")
    ask(page, "Color LOC", "This affects no answers.")
    page.get_by_role("radio", name="8").check()
    sure(page, "Done: gave LOC another color.")
    expect(page.locator('[data-tag="LOC"]')).to_have_attribute("class", "c7")


def test_of_two_admins_at_once_the_second_counts_again(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/tags.html")
    ask(page, "Retire MISC", "This affects 0 answers.")
    wish = Wish("rename", "PER", ("Human",))
    change_project_tags(answered.project.folder, answered.project.store, wish)
    page.locator("#sure").click()
    page.locator('[data-tag="Human"]').wait_for()
    page.locator("#touched", has_text="This affects 0 answers.").wait_for()
    sure(page, "Done: retired MISC.")


def test_others_see_a_change_at_once_and_their_unsaved_marks_follow(
    answered: Any, visit: Any
) -> None:
    page = visit(answered.link)
    shown(page, "s2")
    press(page, "1", "End", "ArrowLeft", "3")
    folder, store = answered.project.folder, answered.project.store
    change_project_tags(folder, store, Wish("rename", "PER", ("Human",)))
    page.locator("#status", has_text="The tags have changed: PER is now Human.").wait_for()
    expect(page.locator("#tags .name")).to_have_text(["Human", "ORG", "LOC", "MISC"])
    chips = "#sentence .chip .name"
    expect(page.locator(chips)).to_have_text(["Human", "LOC"])
    page.context.set_offline(True)  # it hears of both at once
    change_project_tags(folder, store, Wish("retire", "ORG"))
    change_project_tags(folder, store, Wish("add", "Event"))
    page.context.set_offline(False)
    page.locator("#status", has_text="ORG is no longer used; new: Event.").wait_for()
    press(page, "z", "z")
    expect(page.locator(chips)).to_have_text([])
    press(page, "Z", "Z", "Enter")
    shown(page, "s3")
    assert stored(answered)["s2"][0] == [(0, 1, "Human"), (2, 3, "LOC")]


def test_an_answer_sent_before_the_page_knew_of_a_change_is_mapped_or_asked_about(
    answered: Any, visit: Any
) -> None:
    page = visit(answered.link)
    line = Line(page, "**/api/status")
    shown(page, "s2")
    heard(page)
    line.cut = True  # it hears of nothing more
    press(page, "1")
    folder, store = answered.project.folder, answered.project.store
    change_project_tags(folder, store, Wish("rename", "PER", ("Human",)))
    press(page, "Enter")
    shown(page, "s3")
    until(lambda: stored(answered)["s2"][0] == [(0, 1, "Human")])
    change_project_tags(folder, store, Wish("split", "Human", ("Hero", "Crowd")))
    press(page, "1", "Enter")
    page.locator("#trouble", has_text="the tag PER is now one of Hero, Crowd; choose").wait_for()
    line.cut = False
    page.locator("#tags", has_text="Crowd").wait_for()
    press(page, "1", "Enter")
    page.locator("#finished").wait_for()
    assert stored(answered)["s3"][0] == [(0, 1, "Hero")]


def test_the_pages_of_old_answers_notice_a_change_and_what_is_not_saved_follows(
    answered: Any, visit: Any
) -> None:
    folder, store = answered.project.folder, answered.project.store
    answer_as(answered, "lena", "s2", (0, 1, "PER"), (2, 3, "ORG"))
    new = [Doubt(id, "model", 0.9, {"spans": [[0, 1, "PER", 0.9]]}) for id in ("s2", "s1")]
    write_doubts(store, "model", new, gold_events(store))
    answers, review = visit(answered.link), visit(answered.link)
    answers.goto(f"{answered.url}/answers.html?tag=PER")
    answers.wait_for_selector(".card")
    review.goto(f"{answered.url}/review.html")
    review.wait_for_selector("#review:not([hidden]):not([aria-busy])")
    first = review.get_attribute("#sentence", "data-id")
    press(review, "3")  # not saved yet

    change_project_tags(folder, store, Wish("rename", "LOC", ("Place",)))
    answers.locator("#summary", has_text="LOC is now Place.").wait_for()
    expect(answers.locator("#tag")).to_contain_text("Place")
    expect(answers.locator("#tag")).to_have_value("PER")
    review.locator("#status", has_text="LOC is now Place.").wait_for()
    expect(review.locator("#tags .tag", has_text="Place")).to_have_count(1)
    place = review.locator("#sentence .chip .name", has_text=re.compile("^Place$"))
    expect(place.first).to_be_visible()
    change_project_tags(folder, store, Wish("rename", "PER", ("Human",)))
    review.locator("#reasons", has_text="Human").wait_for()  # what the models propose, too
    press(review, "z", "m")
    review.wait_for_selector(f'#review:not([aria-busy]) #sentence:not([data-id="{first}"])')
    assert (0, 1, "Human") in stored(answered)[first][0]
    review.locator("#sentence .chip .name", has_text="Human").first.wait_for()
    change_project_tags(folder, store, Wish("rename", "Human", ("Person",)))
    review.locator("#status", has_text="Human is now Person.").wait_for()
    review.locator("#sentence .chip .name", has_text="Person").first.wait_for()


def test_a_correction_in_the_list_that_knew_the_old_tags_gets_those_of_now(
    answered: Any, visit: Any
) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html?id=s0")
    page.get_by_role("button", name="Correct: Lena").click()
    page.locator(".correct .sentence").wait_for()
    change_project_tags(
        answered.project.folder, answered.project.store, Wish("rename", "PER", ("Human",))
    )
    page.locator("#summary", has_text="PER is now Human.").wait_for()
    press(page, "End", "1", "Enter")
    page.locator('.card[data-id="s0"] .made').wait_for()
    assert stored(answered)["s0"][0] == [(0, 1, "Human"), (2, 3, "LOC"), (3, 4, "Human")]


def test_marks_that_were_kept_before_a_change_follow_when_they_come_back(
    answered: Any, visit: Any
) -> None:
    page = visit(answered.link)
    shown(page, "s2")
    press(page, "1", "End", "ArrowLeft", "2")
    folder, store = answered.project.folder, answered.project.store
    page.goto("about:blank")
    change_project_tags(folder, store, Wish("rename", "PER", ("Human",)))
    change_project_tags(folder, store, Wish("retire", "ORG"))
    page.goto(answered.url)
    shown(page, "s2")
    expect(page.locator("#status")).to_contain_text("Your unsaved marks are back.")
    expect(page.locator("#sentence .chip .name")).to_have_text(["Human"])
    press(page, "Enter")
    shown(page, "s3")
    assert stored(answered)["s2"][0] == [(0, 1, "Human")]


def test_only_admins_have_the_page(answered: Any, visit: Any) -> None:
    page = visit(answered.invite("eve"))
    page.locator("#pages a").first.wait_for()
    expect(page.locator("#pages")).not_to_contain_text("Tags")
    page.goto(f"{answered.url}/tags.html")
    page.get_by_role("heading", name="This page is for admins").wait_for()


def test_the_page_fits_a_phone(answered: Any, visit: Any) -> None:
    page = visit(answered.link, width=390, height=844)
    wish = Wish("rename", "MISC", ("W" * 64,))
    change_project_tags(answered.project.folder, answered.project.store, wish)
    page.goto(f"{answered.url}/tags.html")
    page.locator("#changes li").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    ask(page, "Color PER", "This affects no answers.")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
