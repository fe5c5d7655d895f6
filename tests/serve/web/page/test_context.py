"""The text around a sentence, shown on demand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seqmix.data.sentence import Sentence
from tests.support.page import press, ranked, shown, stored

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
    assert page.is_hidden("#before")
    press(page, ".")
    page.wait_for_selector("#after p:nth-child(3)")
    assert page.is_hidden("#before")  # nothing stands before the first sentence
    assert page.locator("#after p").all_inner_texts() == list(TEXTS[1:])

    press(page, "1", "Enter")
    shown(page, "notes:1")
    page.wait_for_selector("#before p")
    assert page.locator("#before p").all_inner_texts() == [TEXTS[0]]
    assert page.locator("#after p").all_inner_texts() == list(TEXTS[2:])
    assert stored(served) == {"notes:0": ([(0, 1, "PER")], None)}

    page.click("#context")
    assert page.is_hidden("#before")
    assert page.is_hidden("#after")
    assert page.get_attribute("#context", "aria-pressed") == "false"


def test_a_sentence_without_a_document_says_so(serve: Callable[..., Any], visit: Any) -> None:
    page = visit(serve([Sentence("alone", ("Nobody", "came"))]).link)
    shown(page, "alone")
    page.click("#context")
    page.wait_for_selector("#before p")
    assert page.inner_text("#before") == "This sentence belongs to no document."
