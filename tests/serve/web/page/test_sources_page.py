"""Suggestions of sources on the page: labeled, turned off by one key, counted; a dictionary typed in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from seqmix.serve.settings import read_settings
from seqmix.serve.sources.adding import add_dictionary
from seqmix.serve.sources.figures import Figures
from seqmix.serve.sources.llm.asking import Asker
from seqmix.serve.sources.records import PREDICTIONS, TAGGER, TYPES
from seqmix.serve.sources.terms import Terms
from tests.support.endpoint import endpoint, says
from tests.support.page import answer_as, expect, lines, press, ranked, shown, stored

Serve = Callable[..., Any]
TEXTS = ("Lena left New York .", "Ada saw Oslo .", "Nobody came .")


def chipped(page: Any, *chips: str) -> None:
    """Wait until these tags stand at marks, each with its source, and no others."""
    expect(page.locator("#sentence .chip")).to_have_text(list(chips), use_inner_text=True)


def test_each_suggestion_says_where_it_is_from_and_one_key_hides_them_all(
    serve: Serve, visit: Any
) -> None:
    served = serve(lines(*TEXTS))
    store = served.project.store
    add_dictionary(store, "places", Terms((("New York", "LOC"), ("Oslo", "LOC"))))
    add_dictionary(store, "cities", Terms((("York", "ORG"), ("Oslo", "LOC"))))
    model = {"start": 0, "end": 1, "tag": "PER", "confidence": 0.9}
    ranked(served, {"s0": [model]})
    page = visit(served.link)
    shown(page, "s0")
    chipped(page, "PER 90% ×", "LOC places ×")  # of two that overlap, the first source's
    expect(page.locator("#stream")).to_contain_text("Others are from places, cities.")

    press(page, ",")
    chipped(page)
    expect(page.locator("#suggestions")).to_have_attribute("aria-pressed", "false")
    press(page, "2")  # the first token, by hand
    press(page, ",")
    chipped(page, "ORG ×", "LOC places ×")
    press(page, "z", ",", "Enter")
    shown(page, "s1")
    chipped(page)
    page.reload()
    shown(page, "s1")
    chipped(page)  # remembered
    expect(page.locator("#stream")).to_have_text("Suggestions are off.")
    page.click("#suggestions")
    chipped(page, "LOC places · cities ×")
    press(page, "Enter")
    shown(page, "s2")

    assert stored(served) == {"s0": ([(0, 1, "ORG")], None), "s1": ([(2, 3, "LOC")], None)}
    kept = {row["name"]: (row["offered"], row["kept"]) for row in Figures(store).rows()}
    assert kept == {"places": (2, 1), "cities": (2, 1), "model": (1, 0)}


def test_a_dictionary_is_typed_in_turned_off_and_removed(serve: Serve, visit: Any) -> None:
    served = serve(lines(*TEXTS))
    ranked(served)
    page = visit(served.link)
    page.goto(f"{served.url}/sources.html")
    page.wait_for_selector("#summary:not(:empty)")
    page.fill("#name", "<b>places</b>")
    page.select_option("#tag", "LOC")
    page.fill("#terms", "New York\nre:Os.o\nLena\tPER\n\n")
    page.click("#dictionary button")
    card = page.locator(".source-card")
    card.wait_for()
    expect(card.locator("h2")).to_have_text("<b>places</b> dictionary")
    expect(page.locator("#terms")).to_have_value("")

    page.fill("#name", "wrong")
    page.fill("#terms", "re:(")
    page.click("#dictionary button")
    page.wait_for_selector("#trouble:not([hidden])")
    expect(page.locator("#trouble")).to_contain_text("regular expression")
    expect(page.locator("#terms")).to_have_value("re:(")  # what was typed is kept

    page.goto(f"{served.url}/")
    shown(page, "s0")
    chipped(page, "PER <b>places</b> ×", "LOC <b>places</b> ×")
    press(page, "Enter")
    shown(page, "s1")
    (figures,) = Figures(served.project.store).rows()
    assert (figures["offered"], figures["kept"]) == (2, 2)
    page.goto(f"{served.url}/sources.html")
    card.wait_for()
    card.get_by_role("button", name="Turn off").click()
    page.wait_for_selector(".source-card.off")
    page.on("dialog", lambda dialog: dialog.accept())
    card.get_by_role("button", name="Remove").click()
    card.wait_for(state="detached")
    expect(page.locator("#summary")).to_have_text("This project has no sources yet.")


def test_who_is_no_admin_sees_the_figures_only(serve: Serve, visit: Any) -> None:
    served = serve(lines(*TEXTS))
    add_dictionary(served.project.store, "places", Terms((("Oslo", "LOC"),)))
    page = visit(served.invite("omar"))
    page.goto(f"{served.url}/sources.html")
    page.locator(".source-card").wait_for()
    expect(page.locator("main button")).to_have_count(0)
    expect(page.locator("form")).to_have_count(0)


def test_a_long_list_of_sources_and_an_answered_sentence(serve: Serve, visit: Any) -> None:
    served = serve(lines(*TEXTS))
    ranked(served)
    add_dictionary(served.project.store, "people", Terms((("Lena", "PER"),)))
    page = visit(served.link)
    shown(page, "s0")
    answer_as(served, "lena", "s0", (2, 4, "LOC"))
    page.goto(f"{served.url}/#id=s0")
    expect(page).to_have_url(f"{served.url}/")  # the page has taken it
    page.reload()
    shown(page, "s1")
    page.evaluate("location.hash = '#id=s0'")
    shown(page, "s0")
    chipped(page, "LOC ×")  # the answer, without suggestions
    expect(page.locator("#suggestions")).to_be_hidden()


def test_a_language_model_is_sent_nothing_before_a_yes_and_its_prompt_can_be_changed(
    serve: Serve, visit: Any
) -> None:
    served = serve(lines(*TEXTS))
    ranked(served)
    with endpoint(says({"spans": [{"text": "Lena", "tag": "PER"}]}, total_tokens=70)) as server:
        page = visit(served.link)
        page.goto(f"{served.url}/sources.html")
        form = page.locator("#endpoint")
        form.locator("[name=name]").fill("gpt <i>")
        form.locator("[name=model]").fill("m")
        form.locator("[name=url]").fill(server.url)
        form.locator("button").click()
        card = page.locator(".source-card")
        yes = card.get_by_role("button", name="Yes, send text there")
        yes.wait_for()
        expect(card.locator("pre")).to_have_text(re.compile(r"Text:\nLena left New York \.$"))
        place = server.url.removesuffix("/v1")
        folder = served.project.folder
        asker = Asker(served.project.store, lambda: read_settings(folder).send_text_to.split())
        assert not asker.step()

        yes.click()
        card.get_by_role("button", name="Stop sending").wait_for()
        assert read_settings(folder).send_text_to == place
        assert asker.step()
        card.get_by_text("Prompt and limits").click()
        card.locator("textarea").fill("Names in <b>{text}</b>?")
        card.get_by_role("button", name="Save").click()
        card.get_by_text("1 request so far, 70 of at most 500,000 tokens").wait_for()
        card.get_by_text("Prompt and limits").click()
        expect(card.locator("textarea")).to_have_value("Names in <b>{text}</b>?")
        card.locator("textarea").fill("no place for the sentence")
        card.get_by_role("button", name="Save").click()
        page.wait_for_selector("#trouble:not([hidden])")
        card.get_by_role("button", name="Stop sending").click()
        yes.wait_for()
        assert read_settings(folder).send_text_to == ""
        assert not asker.step()
        assert len(server.requests) == 1


def test_the_kinds_that_the_page_does_not_add_are_shown_with_their_command(
    serve: Serve, visit: Any
) -> None:
    served = serve(lines(*TEXTS))
    page = visit(served.link)
    page.goto(f"{served.url}/sources.html")
    expect(page.get_by_role("heading", name="Add a model or a file")).to_be_visible()
    commands = page.locator(".commands code").all_inner_texts()
    assert all(line.startswith("seqmix project FOLDER source add NAME ") for line in commands)
    assert {line.split()[6] for line in commands} == {TAGGER, PREDICTIONS, TYPES}
    for kind in ("spaCy", "Hugging Face"):
        expect(page.locator(".commands")).to_contain_text(kind)
    other = visit(served.invite("eve"))
    other.goto(f"{served.url}/sources.html")
    other.wait_for_selector("#summary:not(:empty)")
    expect(other.locator(".commands")).to_have_count(0)
