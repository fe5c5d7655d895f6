"""What the page says about the goal and the time answers take."""

from __future__ import annotations

import os
from typing import Any

from seqmix.serve.store.annotators import find_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.records import Mark
from tests.support.page import Served, answer_as, expect, lines, ranked


def answered(served: Served, n: int, seconds: float) -> None:
    """Answers of Lena's that took so long, each with a mark."""
    store = served.project.store
    ada = find_annotator(store, "lena").id
    for _ in range(n):
        given = next_sentence(store, ada, served.project.rules)
        mark = Mark(0, 1, "PER")
        save_answer(store, given.sentence.id, ada, "label", [mark], None, seconds, given.version)


def test_the_goal_is_the_next_step_and_the_time_of_answers_is_shown(serve: Any, visit: Any) -> None:
    served = serve(lines(*(f"Lena{n} left Oslo{n} ." for n in range(60))), audit_share=0.1)
    page = visit(served.link)
    page.locator("#total", has_text="of about").wait_for()
    expect(page.locator("#done")).to_have_text("0")
    expect(page.locator("#goal")).to_contain_text("until the first model.")
    expect(page.locator("#pace")).to_be_hidden()

    answered(served, 4, 6.0)
    page.reload()
    page.locator("#pace-summary", has_text="6 s an answer").wait_for()
    expect(page.locator("#goal")).to_contain_text("(about ")
    page.click("#pace-summary")
    for said in ("a mark of PER", "4 marks", "chosen by the model"):
        expect(page.locator("#pace-rows")).to_contain_text(said)

    page.click("#by-tag summary")
    page.locator("#by-tag-rows", has_text="4 marks").wait_for()
    if folder := os.environ.get("SEQMIX_SHOTS"):
        page.screenshot(path=f"{folder}/pace.png")
        phone = visit(served.link, width=390, height=800, color_scheme="dark")
        phone.locator("#pace-summary").click()
        phone.locator("#pace").scroll_into_view_if_needed()
        phone.screenshot(path=f"{folder}/pace-phone.png", full_page=True)
    page.wait_for_selector("#work:not([aria-busy])")
    page.click("#save")
    page.locator("#done", has_text="5").wait_for()


def test_admins_see_what_people_confuse_and_open_an_example(serve: Any, visit: Any) -> None:
    served = serve(lines("Lena left Oslo .", "Ada came ."), overlap_share=1.0)
    ranked(served)
    served.invite("omar")
    answer_as(served, "lena", "s0", (0, 1, "PER"), (2, 3, "LOC"))
    answer_as(served, "omar", "s0", (0, 1, "ORG"), (1, 3, "LOC"))
    page = visit(served.link)
    page.goto(f"{served.url}/agreement.html")

    page.get_by_role("row", name="lena marks PER, omar ORG").wait_for()
    expect(
        page.get_by_role("row", name="lena and omar mark LOC with different boundaries")
    ).to_be_visible()
    if folder := os.environ.get("SEQMIX_SHOTS"):
        page.screenshot(path=f"{folder}/team.png", full_page=True)
        phone = visit(served.link, width=390, height=800, color_scheme="dark")
        phone.goto(f"{served.url}/agreement.html")
        phone.get_by_role("row", name="lena marks PER, omar ORG").wait_for()
        phone.screenshot(path=f"{folder}/team-phone.png", full_page=True)
    page.get_by_role("link", name="example").first.click()
    page.wait_for_url("**/answers.html?id=s0")
    page.get_by_text("Lena").first.wait_for()
