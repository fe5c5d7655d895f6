"""The spans of a split tag wait on the page Review until a person has chosen for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqmix.serve.store.sentences import read_labeled
from seqmix.serve.tags.changes import Wish
from seqmix.serve.tags.in_settings import change_project_tags
from tests.support.page import answer_as, expect, lines, press, ranked, stored


def reviewed(page: Any, id: str) -> None:
    page.wait_for_selector(f'#review:not([hidden]):not([aria-busy]) #sentence[data-id="{id}"]')


def tags_of(served: Any) -> dict[str, tuple[Any, ...]]:
    return {s.id: tuple(s.tags) for s in read_labeled(served.project.store)}


def test_each_span_of_a_split_tag_gets_one_choice(serve: Callable[..., Any], visit: Any) -> None:
    served = serve(
        lines("Oslo and Rome .", "Lena left Turin .", "Bo saw Thames <b> .", "Nobody came .")
    )
    ranked(served)
    served.invite("omar")
    answer_as(served, "lena", "s0", (0, 1, "LOC"), (2, 3, "LOC"))
    answer_as(served, "lena", "s1", (0, 1, "PER"), (2, 3, "LOC"))
    answer_as(served, "omar", "s2", (0, 1, "PER"), (2, 4, "LOC"))
    split = Wish("split", "LOC", ("City", "River"))
    change_project_tags(served.project.folder, served.project.store, split)
    assert tags_of(served)["s0"] == (None, "O", None, "O")

    page = visit(served.link)
    page.goto(f"{served.url}/tags.html")
    page.locator("#waiting", has_text="3 answers with spans").wait_for()
    page.get_by_role("link", name="Review them").click()
    reviewed(page, "s0")
    expect(page.locator("#keep")).to_be_hidden()
    expect(page.locator("#save")).to_be_disabled()
    expect(page.locator("#reasons")).to_contain_text("“Oslo” was LOC")
    press(page, "Enter", "k", "3")
    expect(page.locator("#save")).to_be_disabled()
    press(page, "3")
    expect(page.locator("#save")).to_be_enabled()
    expect(page.locator("#reasons [aria-pressed=true]")).to_have_text(["City", "City"])
    press(page, "z")
    expect(page.locator("#save")).to_be_disabled()
    page.locator(".choice").nth(1).get_by_role("button", name="Nothing").click()
    press(page, "Enter")

    reviewed(page, "s1")
    page.get_by_role("button", name="River", exact=True).first.click()
    press(page, "Enter")
    reviewed(page, "s2")
    expect(page.locator("#whose")).to_have_text("omar’s answer")
    page.locator(".choice").get_by_role("button", name="River").click()
    press(page, "Enter")
    page.locator("#summary", has_text="No answer is in doubt.").wait_for()
    assert tags_of(served) == {
        "s0": ("B-City", "O", "O", "O"),
        "s1": ("B-PER", "O", "B-River", "O"),
        "s2": ("B-PER", "O", "B-River", "I-River", "O"),
    }
    assert stored(served)["s0"][1] is None

    page.goto(f"{served.url}/tags.html")
    page.locator("#changes li").first.wait_for()
    expect(page.locator("#waiting")).to_be_hidden()


def test_an_opened_answer_points_at_the_spans_of_a_split_tag(
    serve: Callable[..., Any], visit: Any
) -> None:
    served = serve(lines("Lena left Oslo .", "Nobody came ."))
    ranked(served)
    answer_as(served, "lena", "s0", (0, 1, "PER"), (2, 3, "LOC"))
    split = Wish("split", "LOC", ("City", "River"))
    change_project_tags(served.project.folder, served.project.store, split)
    page = visit(served.link)
    page.goto(f"{served.url}/#id=s0")
    page.locator("#stream", has_text="what the dotted spans are now (City, River)").wait_for()
    expect(page.locator("#sentence .hint")).to_have_text("Oslo")
    press(page, "n", "3", "Enter")
    page.locator("#status", has_text="Saved.").wait_for()
    assert tags_of(served)["s0"] == ("B-PER", "O", "B-City", "O")


def test_one_choice_is_made_wherever_the_text_stands_and_taken_back(
    serve: Callable[..., Any], visit: Any
) -> None:
    served = serve(lines("Lena left Oslo .", "Ada saw Oslo .", "Bo in Oslo .", "Eve in Po ."))
    ranked(served)
    for id in ("s0", "s1", "s2", "s3"):
        answer_as(served, "lena", id, (2, 3, "LOC"))
    split = Wish("split", "LOC", ("City", "River"))
    change_project_tags(served.project.folder, served.project.store, split)
    page = visit(served.link)
    page.goto(f"{served.url}/review.html")
    reviewed(page, "s0")
    page.get_by_label("wherever it occurs").check()
    page.locator(".choice").get_by_role("button", name="City").click()
    press(page, "Enter")
    page.locator(
        "#status", has_text="Corrected, and so are 2 other answers with the same text."
    ).wait_for()
    reviewed(page, "s3")
    expect(page.locator("#summary")).to_have_text("1 answer in doubt.")
    assert {tags[2] for tags in tags_of(served).values()} == {"B-City", None}
    press(page, "z")
    page.locator("#summary", has_text="3 answers in doubt.").wait_for()
    assert tags_of(served)["s1"][2] is None
