"""Mark one, mark all: one key marks the same text everywhere, one undo takes all of it back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.serve.store.batches.batches import list_batches
from seqmix.serve.store.events import read_events
from seqmix.serve.store.sentences import add_sentences
from tests.support.page import answer_as, expect, heard, lines, press, ranked, shown, stored
from tests.support.waiting import until

TEXTS = (
    "Ada left Oslo .",
    "Bo saw OSLO .",
    "Oslo is far from Oslo .",
    "Zoe likes Oslo .",
    "Nobody came .",
)


def marked(page: Any, *tokens: str) -> None:
    """Wait until these tokens are in marks, and no others."""
    expect(page.locator("#sentence .mark .token")).to_have_text(list(tokens))


def started(serve: Callable[..., Any], visit: Any, **options: Any) -> Any:
    """Two answers without Oslo; a sentence with Oslo twice is on the page."""
    served = serve(lines(*TEXTS))
    ranked(served)
    answer_as(served, "lena", "s0", (0, 1, "PER"))
    answer_as(served, "lena", "s1", (0, 1, "PER"))
    page = visit(served.link, **options)
    shown(page, "s2")
    return served, page


def test_one_key_marks_all_and_one_undo_takes_all_back(
    serve: Callable[..., Any], visit: Any
) -> None:
    served, page = started(serve, visit)
    press(page, "m")
    expect(page.locator("#status")).to_contain_text("Mark something first")
    press(page, "3")
    page.wait_for_selector("#same:not([hidden])")
    expect(page.locator("#same")).to_contain_text(
        "1 more here, 1 answer of yours without it, 1 open sentence."
    )

    press(page, "m")
    page.locator("#status").get_by_text(
        "Marked all: 1 here, 1 answer of yours, 1 open sentence will show it"
    ).wait_for()
    marked(page, "Oslo", "Oslo")
    assert stored(served)["s0"][0] == [(0, 1, "PER"), (2, 3, "LOC")]
    assert stored(served)["s1"][0] == [(0, 1, "PER")]

    press(page, "z")
    page.locator("#status").get_by_text("Taken back: 1 answer").wait_for()
    marked(page, "Oslo")
    assert stored(served)["s0"][0] == [(0, 1, "PER")]
    press(page, "z")
    marked(page)


def test_the_next_sentence_shows_the_mark_and_an_undo_after_saving_takes_the_batch_back(
    serve: Callable[..., Any], visit: Any
) -> None:
    served, page = started(serve, visit)
    press(page, "3")
    page.click("#mark-all")
    page.locator("#status").get_by_text("Marked all").wait_for()
    press(page, "Enter")
    shown(page, "s3")
    marked(page, "Oslo")
    expect(page.locator("#sentence")).to_contain_text("marked before")
    expect(page.locator("#same")).to_be_hidden()
    press(page, "Enter")
    shown(page, "s4")
    *_, event = read_events(served.project.store)
    assert event.shown == {"marked before": [1, 1]}

    press(page, "z")
    shown(page, "s3")
    press(page, "z")
    shown(page, "s2")
    press(page, "z")
    page.locator("#status").get_by_text("Took back what was done in one go: 1 answer.").wait_for()
    assert list_batches(served.project.store)[0].undone_at is not None
    assert stored(served)["s0"][0] == [(0, 1, "PER")]


def test_without_an_answer_to_correct_an_undo_after_saving_takes_it_back_with_the_marks_here(
    serve: Callable[..., Any], visit: Any
) -> None:
    served = serve(lines("Oslo is far from Oslo .", "Zoe likes Oslo .", "Nobody came ."))
    ranked(served)
    page = visit(served.link)
    shown(page, "s0")
    press(page, "3")
    page.wait_for_selector("#same:not([hidden])")
    press(page, "m")
    page.locator("#status").get_by_text("Marked all: 1 here, 1 open sentence").wait_for()
    press(page, "Enter")
    shown(page, "s1")
    press(page, "Enter")
    shown(page, "s2")

    press(page, "z")
    shown(page, "s1")
    marked(page, "Oslo")
    press(page, "z")
    shown(page, "s0")
    marked(page, "Oslo", "Oslo")
    press(page, "z")
    page.locator("#status").get_by_text("Took back what was done in one go").wait_for()
    marked(page, "Oslo")
    assert list_batches(served.project.store)[0].undone_at is not None
    press(page, "Enter")
    shown(page, "s1")
    assert stored(served)["s0"][0] == [(0, 1, "LOC")]
    marked(page)


def test_case_and_endings_are_chosen_in_the_page_and_remembered(
    serve: Callable[..., Any], visit: Any
) -> None:
    served, page = started(serve, visit)
    heard(page)
    add_sentences(served.project.store, [Sentence("late", ("Oslos", "mill"))])
    page.locator("#status", has_text="1 new sentence").wait_for()  # or it would come later
    press(page, "3")
    page.get_by_label("Any case").check()
    page.locator("#same").get_by_text("2 answers of yours").wait_for()
    page.get_by_label("Other endings").check()
    page.locator("#same").get_by_text("2 open sentences").wait_for()
    expect(page.locator("#same")).to_contain_text("OSLO 1×")
    press(page, "m")
    page.locator("#status").get_by_text("Marked all: 1 here, 2 answers of yours").wait_for()
    until(lambda: stored(served)["s1"][0] == [(0, 1, "PER"), (2, 3, "LOC")])
    page.reload()
    shown(page, "s2")
    press(page, "x", "3")  # the marks of the draft are there; a new one is looked for
    page.wait_for_selector("#same:not([hidden])")
    expect(page.get_by_label("Any case")).to_be_checked()


def test_hostile_text_is_shown_as_text_on_a_phone(serve: Callable[..., Any], visit: Any) -> None:
    word = "<img/src=x/onerror=alert(1)>" + "W" * 300
    served = serve(lines(f"{word} {word} .", f"{word} !"))
    ranked(served)
    page = visit(served.link, width=390, height=844)
    shown(page, "s0")
    press(page, "1")
    page.wait_for_selector("#same:not([hidden])")
    expect(page.locator("#same img")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.click("#mark-all")
    page.locator("#status").get_by_text(
        "Marked all: 1 here, 1 open sentence will show it"
    ).wait_for()
    assert stored(served) == {}
