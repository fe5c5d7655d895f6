"""The text around a sentence, shown on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqmix.data.sentence import Sentence
from tests.support.page import expect, press, ranked, shown, stored

TEXTS = (
    "The mill burned down.",
    "It stood in Oslo <b>for years</b>.",
    "Lena sold it.",
    "Nobody came.",
)


def test_a_key_shows_the_neighbors_and_they_stay_until_it_hides_them(
    serve: Callable[..., Any], visit: Any
) -> None:
    served = serve([Sentence.from_text(text, f"notes:{i}") for i, text in enumerate(TEXTS)])
    ranked(served)
    page = visit(served.link)
    shown(page, "notes:0")
    expect(page.locator("#before")).to_be_hidden()
    press(page, ".")
    page.wait_for_selector("#after p:nth-child(3)")
    expect(page.locator("#before")).to_be_hidden()  # nothing stands before the first sentence
    expect(page.locator("#after p")).to_have_text(list(TEXTS[1:]))

    press(page, "1", "Enter")
    shown(page, "notes:1")
    page.wait_for_selector("#before p")
    expect(page.locator("#before p")).to_have_text([TEXTS[0]])
    expect(page.locator("#after p")).to_have_text(list(TEXTS[2:]))
    assert stored(served) == {"notes:0": ([(0, 1, "PER")], None)}

    page.click("#context")
    expect(page.locator("#before")).to_be_hidden()
    expect(page.locator("#after")).to_be_hidden()
    expect(page.locator("#context")).to_have_attribute("aria-pressed", "false")


def test_a_sentence_without_a_document_says_so(serve: Callable[..., Any], visit: Any) -> None:
    page = visit(serve([Sentence("alone", ("Nobody", "came"))]).link)
    shown(page, "alone")
    page.click("#context")
    page.wait_for_selector("#before p")
    expect(page.locator("#before")).to_have_text("This sentence belongs to no document.")
