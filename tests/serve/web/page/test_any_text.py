"""Whatever a sentence holds is shown as text: markup, control characters, megabytes, right-to-left, no spaces."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from seqmix.data.sentence import Sentence
from tests.support.page import expect, press, ranked, shown, stored

Serve = Callable[..., Any]


def opened(serve: Serve, visit: Any, *sentences: Sentence, **settings: Any) -> tuple[Any, Any]:
    served = serve(sentences, **settings)
    ranked(served)
    page = visit(served.link)
    shown(page, sentences[0].id)
    return served, page


def test_markup_in_tokens_names_tags_and_guidelines_is_shown_and_never_run(
    serve: Serve, visit: Any
) -> None:
    image, script = '<img/src=x/onerror="window.hacked=1">', "<script>window.hacked=2</script>"
    served = serve(
        [Sentence("s0", (image, script, "&amp;"))],
        f"# {image}\n{script}\n",
        name=f"<b>{script}",
        tags=("<i>PER", "LOC"),
    )
    ranked(served)
    page = visit(served.link)
    shown(page, "s0")
    press(page, "1", "Enter")
    page.get_by_role("heading", name="Nothing left").wait_for()
    press(page, "z")
    shown(page, "s0")

    expect(page.locator(".token")).to_have_text([image, script, "&amp;"])
    expect(page.locator("#project")).to_have_text(f"<b>{script}")
    expect(page.locator("main img, main script, main b, main i")).to_have_count(0)
    assert page.evaluate("window.hacked") is None


def test_control_characters_are_named_and_overrides_do_not_turn_the_text(
    serve: Serve, visit: Any
) -> None:
    _, page = opened(
        serve,
        visit,
        Sentence("s0", ("be\u0007ll", "\u202eabc\u202c", "after", "\u2067", "\u200b", "\u0085")),
    )

    expect(page.locator(".token")).to_have_text(
        ["beBELll", "RLOabcPDF", "after", "RLI", "ZWSP", "U+0085"]
    )
    raw = page.eval_on_selector_all(
        "body *",
        "nodes => nodes.map(n => n.textContent + (n.getAttribute('aria-label') ?? '')).join('')",
    )
    assert not set(raw) & set("\u0007\u202e\u202c\u2067\u200b\u0085")
    places = [box["x"] for i in range(3) if (box := page.locator(f"#sentence-{i}").bounding_box())]
    assert places == sorted(places)


def test_a_line_of_a_megabyte_opens_at_once_and_its_last_token_can_be_tagged(
    serve: Serve, visit: Any
) -> None:
    served, page = opened(
        serve,
        visit,
        Sentence("s0", ("Nobody", "came")),
        Sentence("s1", tuple(f"word{i}" for i in range(120_000))),
    )
    press(page, "Enter")
    shown(page, "s1")
    expect(page.locator(".token")).to_have_count(400)
    expect(page.locator("#pager")).to_contain_text("1–400 of 120,000")

    start = time.monotonic()
    press(page, "1", "End", "3")
    page.locator(".mark", has_text="word119999").wait_for()
    assert time.monotonic() - start < 30  # a page that froze would take minutes
    press(page, "Enter")
    page.get_by_role("button", name="Save anyway").click()  # most of it has not been on the page
    page.get_by_role("heading", name="Nothing left").wait_for()
    assert stored(served)["s1"] == ([(0, 1, "PER"), (119_999, 120_000, "LOC")], None)


def test_a_token_of_a_megabyte_is_cut_and_can_be_seen_whole(serve: Serve, visit: Any) -> None:
    served, page = opened(serve, visit, Sentence("s0", ("x" * 1_000_000, "end")))
    expect(page.locator("#sentence-0")).to_have_text("x" * 200 + "… 999,800 more")
    page.get_by_text("show all of it").click()
    expect(page.get_by_label("The whole token")).to_have_value("x" * 1_000_000)
    page.locator("#sentence-0").click()
    press(page, "1", "Enter")
    page.get_by_role("heading", name="Nothing left").wait_for()
    assert stored(served)["s0"] == ([(0, 1, "PER")], None)


def test_a_sentence_of_some_hundred_tokens_can_be_shown_whole(serve: Serve, visit: Any) -> None:
    _, page = opened(serve, visit, Sentence("s0", tuple(f"w{i}" for i in range(900))))
    expect(page.locator(".token")).to_have_count(400)
    page.get_by_role("button", name="Later").click()
    expect(page.locator("#sentence-400")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".token")).to_have_count(900)


def test_right_to_left_text_runs_and_moves_that_way(serve: Serve, visit: Any) -> None:
    served, page = opened(
        serve, visit, Sentence.from_text("זאב לנדאו גר ב New York מאז 1998.", "s0")
    )
    boxes = [page.locator(f"#sentence-{i}").bounding_box() for i in range(6)]
    expect(page.locator("#sentence")).to_have_attribute("dir", "rtl")
    assert boxes[0]["x"] > boxes[1]["x"] > boxes[2]["x"]  # Hebrew from the right
    assert boxes[4]["x"] < boxes[5]["x"]  # the Latin name inside keeps its order
    press(
        page,
        "Shift+ArrowLeft",
        "1",
        "ArrowLeft",
        "ArrowLeft",
        "ArrowLeft",
        "Shift+ArrowLeft",
        "3",
        "Enter",
    )
    page.get_by_role("heading", name="Nothing left").wait_for()
    assert stored(served)["s0"] == ([(0, 2, "PER"), (4, 6, "LOC")], None)


def test_text_without_spaces_is_shown_without_and_words_with_their_own(
    serve: Serve, visit: Any
) -> None:
    _, page = opened(
        serve,
        visit,
        Sentence.from_text("田中さんは東京に住む。", "s0"),
        Sentence.from_text("Don't (ever) go.", "s1"),
    )
    expect(page.locator("#sentence")).to_have_text("田中さんは東京に住む。")
    press(page, "Enter")
    shown(page, "s1")
    expect(page.locator("#sentence")).to_have_text("Don't (ever) go.")


@pytest.mark.parametrize("id", ["notes/2024/a file.txt:3", "a%2Fb?c=d#e", "«é»"])
def test_an_id_of_any_shape_can_be_gone_back_to(serve: Serve, visit: Any, id: str) -> None:
    served, page = opened(
        serve, visit, Sentence(id, ("Lena", "left")), Sentence("~", ("Ada", "came"))
    )
    press(page, "1", "Enter")
    shown(page, "~")
    press(page, "Backspace")
    page.locator("#leave").wait_for()
    press(page, "2", "Enter")
    page.locator("#status", has_text="Saved.").wait_for()
    assert stored(served)[id] == ([(0, 1, "ORG")], None)
