"""Dark and light, small and large, with and without eyes or a mouse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.terms import Terms
from tests.support.page import answer_as, expect, lines, press, ranked, shown

Serve = Callable[..., Any]
PAGES = (
    "",
    "answers.html",
    "review.html",
    "sources.html",
    "tags.html",
    "generated.html",
    "agreement.html",
)
LONG = "Pneumonoultramicroscopicsilicovolcanoconiosis" * 3

CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8").partition("\n")[2]


@pytest.fixture
def team(serve: Serve) -> Any:
    """Two people who differ, a model with suggestions, a generated sentence: something on every page."""
    served = serve(
        lines("Ada left Rome .", f"Lena met {LONG} in Oslo .", "Bo came ."),
        "# Names\n\nTag `names`.",
        overlap_share=1.0,
    )
    ranked(served)
    made = {
        "id": "m0",
        "tokens": ["Lena", "left", "Rome", "."],
        "ner_tags": ["B-PER", {"O": 0.6, "B-LOC": 0.4}, "B-LOC", "O"],
        "lineage": {
            "method": "sub",
            "parents": ["s1", "s0"],
            "windows": [[0, 2], [1, 3]],
            "into": 1,
            "weight": 0.4,
            "score": 210.0,
        },
    }
    add_dictionary(served.project.store, "places", Terms((("Oslo", "LOC"),)))
    served.invite("omar")
    for name, tag in (("lena", "PER"), ("omar", "ORG")):
        answer_as(served, name, "s0", (0, 1, tag), (2, 3, "LOC"))
    suggestion = [
        {"start": 0, "end": 1, "tag": "PER", "confidence": 0.9},
        {"start": 2, "end": 3, "tag": "MISC", "confidence": 0.5},
    ]
    ranked(served, {"s1": suggestion}, number=2, records=[made])
    return served


def ready(page: Any, url: str) -> None:
    page.goto(url, wait_until="networkidle")
    page.wait_for_selector("#work:not([hidden]) .token, .card, .tag-list li")


@pytest.mark.parametrize("name", PAGES)
def test_before_its_script_is_ready_a_page_has_no_button_to_press(
    team: Any, visit: Any, name: str
) -> None:
    page = visit(team.link, java_script_enabled=False)
    page.goto(f"{team.url}/{name}")
    expect(page.locator("main")).to_be_attached()
    expect(page.locator("main button:enabled:visible:not([inert] *)")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_its_ground(team: Any, visit: Any, scheme: str) -> None:
    page = visit(team.link, color_scheme=scheme)
    for name in PAGES:
        ready(page, f"{team.url}/{name}")
        if not name:
            press(page, "n", "1", "End", "Shift+ArrowLeft", "p")
        assert page.evaluate(CONTRAST) == [], name or "index.html"


def test_the_theme_follows_the_system_until_someone_chooses_and_is_remembered(
    team: Any, visit: Any
) -> None:
    page = visit(team.link, color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ground = expect(page.locator("body"))
    button = page.get_by_role("button", name="Dark theme")
    expect(button).to_have_attribute("aria-pressed", "true")
    button.click()
    ground.not_to_have_css("background-color", dark)
    page.goto(f"{team.url}/generated.html")
    expect(button).to_have_text("☀")
    expect(button).to_have_attribute("aria-pressed", "false")
    ground.not_to_have_css("background-color", dark)


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_needs_no_scrolling_sideways(team: Any, visit: Any, name: str) -> None:
    page = visit(team.link, width=390, height=844, has_touch=True)
    ready(page, f"{team.url}/{name}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if not name:
        sizes = "nodes => nodes.filter(n => n.offsetParent).map(n => n.getBoundingClientRect()).map(b => Math.min(b.height, b.width))"
        assert min(page.eval_on_selector_all(".dock button, .top button", sizes)) >= 32


def test_a_screen_reader_hears_the_tokens_their_tags_and_the_landmarks(
    team: Any, visit: Any
) -> None:
    page = visit(team.link)
    shown(page, "s1")
    for role, name in (
        ("navigation", "Pages"),
        ("main", None),
        ("complementary", "Progress and guidelines"),
        ("banner", None),
    ):
        expect(page.get_by_role(role, **({"name": name} if name else {}))).to_have_count(1)
    box = page.get_by_role("listbox", name="Tokens of the sentence")
    expect(box.get_by_role("option")).to_have_count(6)
    expect(
        box.get_by_role("option", name="Lena, PER, suggested, 90 percent", exact=True)
    ).to_have_count(1)
    press(page, "1")
    expect(box.get_by_role("option", name="Lena, PER", exact=True)).to_have_count(1)
    page.get_by_role("status").filter(has_text="PER: Lena").wait_for()

    press(page, "ArrowRight", "Shift+ArrowRight")
    expect(box.get_by_role("option", selected=True)).to_have_count(2)
    active = box.get_attribute("aria-activedescendant")
    expect(page.locator(f"#{active}")).to_have_attribute("aria-posinset", "3")
    for button in ("Save", "Skip", "Clear", "Sure part", "Undo", "Help and keys", "Dark theme"):
        expect(page.get_by_role("button", name=button)).to_have_count(1)


def test_tab_reaches_everything_and_the_focus_can_be_seen(team: Any, visit: Any) -> None:
    page = visit(team.link)
    shown(page, "s1")
    reached = set()
    for _ in range(40):
        press(page, "Tab")
        name, outline = page.evaluate(
            "(at => [at.id || at.textContent.trim(), getComputedStyle(at).outlineStyle])(document.activeElement)"
        )
        if not page.evaluate("document.activeElement === document.body"):
            reached.add(name)
            assert outline != "none", name
    assert {
        "sentence",
        "save",
        "skip",
        "discard",
        "clear",
        "sure",
        "undo",
        "theme",
        "open-help",
    } <= reached


def test_who_wants_no_motion_sees_none(team: Any, visit: Any) -> None:
    page = visit(team.link, reduced_motion="reduce")
    shown(page, "s1")
    page.eval_on_selector("#model", "node => node.classList.add('training')")
    styles = "nodes => nodes.map(n => getComputedStyle(n)).map(s => `${s.transitionDuration} ${s.animationName}`)"
    assert set(page.eval_on_selector_all("body *", styles)) == {"0s none"}
    assert (
        page.evaluate(
            "getComputedStyle(document.getElementById('model'), '::before').animationName"
        )
        == "none"
    )
