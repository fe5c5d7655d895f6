"""The page of answers: found again, in any browser, and opened to correct them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from seqmix.data.sentence import Sentence
from seqmix.serve.answers.mark_all import mark_all
from seqmix.serve.answers.same_text import Cause
from seqmix.serve.store.annotators import add_model_annotator
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import accept_answers
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import add_sentences
from tests.support.page import answer_as, each_has, expect, lines, press, ranked, shown, stored

Serve = Callable[..., Any]


@pytest.fixture
def answered(serve: Serve) -> Any:
    """Three answers by lena and one by omar, two open sentences."""
    served = serve(
        lines("Lena left Oslo .", "Ada came .", "Bo saw Rome .", "Eve slept .", "a / b ?", "Zoe !")
    )
    ranked(served)
    served.invite("omar")
    answer_as(served, "lena", "s0", (0, 1, "PER"), (2, 3, "LOC"))
    answer_as(served, "lena", "s1", (0, 1, "PER"))
    answer_as(served, "omar", "s2", (2, 3, "LOC"))
    answer_as(served, "lena", "s3")
    return served


def lists(page: Any, *ids: str) -> None:
    """Wait until the answers to these sentences are listed, and no others."""
    page.wait_for_selector("#summary:not(:empty)")
    each_has(page.locator(".card"), "data-id", *ids)


def opened(page: Any, url: str, *ids: str) -> None:
    """Go to a list and wait until it is there."""
    page.goto(url)
    lists(page, *ids)


def test_all_answers_are_listed_in_a_new_browser_and_filtered(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    url = f"{answered.url}/answers.html"

    opened(page, url, "s3", "s2", "s1", "s0")
    expect(page.locator('[data-id="s2"]')).to_contain_text("omar", use_inner_text=True)
    expect(page.locator('[data-id="s3"]')).to_contain_text("nothing marked", use_inner_text=True)
    expect(page.locator('[data-id="s0"] .mark')).to_have_count(2)
    page.locator("#tag").select_option("LOC")
    lists(page, "s2", "s0")
    page.locator("#text").fill("OSLO")
    lists(page, "s0")
    expect(page).to_have_url(f"{url}?text=OSLO&tag=LOC")
    page.reload()
    lists(page, "s0")
    page.get_by_role("button", name="Clear").click()
    lists(page, "s3", "s2", "s1", "s0")
    opened(page, f"{url}?state=open", "s4", "s5")
    opened(page, f"{url}?id=s2", "s2")
    expect(page.locator("#id")).to_be_visible()
    opened(page, f"{url}?text=nowhere")
    expect(page.locator("#summary")).to_contain_text("No answer matches")


def test_sentences_labeled_before_the_project_show_their_labels(answered: Any, visit: Any) -> None:
    seed = [
        Sentence("a", ("Ada", "left"), ("B-PER", "O")),
        Sentence("b", ("So", "what"), ("O", None)),
    ]
    add_sentences(answered.project.store, seed, seed=True)
    page = visit(answered.link)

    opened(page, f"{answered.url}/answers.html?state=seed", "a", "b")
    expect(page.locator('[data-id="a"] .mark')).to_have_text(re.compile("^Ada"))
    facts = page.locator('[data-id="b"] .facts')
    expect(facts).to_contain_text("nothing marked")
    expect(facts).to_contain_text("part only")


def test_an_old_answer_is_opened_and_corrected(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html?id=s0")
    page.get_by_role("link", name="Open: Lena").click()
    shown(page, "s0")
    expect(page.locator("#stream")).to_contain_text("Your earlier answer")
    press(page, "x", "Enter")
    shown(page, "s4")
    assert stored(answered)["s0"][0] == [(2, 3, "LOC")]


def test_an_answer_is_corrected_where_it_is_listed(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html?tag=LOC")
    page.get_by_role("button", name="Correct: Lena").click()
    editor = page.locator('[data-id="s0"] .sentence')
    editor.wait_for()
    press(page, "x", "z", "ArrowRight", "ArrowRight", "2", "Enter")
    page.locator('[data-id="s0"] .made').wait_for()
    assert stored(answered)["s0"][0] == [(0, 1, "PER"), (2, 3, "ORG")]
    expect(page.locator('[data-id="s0"] .made')).to_contain_text("ORG", use_inner_text=True)
    page.get_by_role("button", name="Correct: Lena").click()
    editor.wait_for()
    press(page, "X", "Escape")
    page.locator('[data-id="s0"] .made').wait_for()
    assert stored(answered)["s0"][0] == [(0, 1, "PER"), (2, 3, "ORG")]


def test_an_admins_correction_of_somebodys_answer_is_a_decision_that_can_be_taken_back(
    answered: Any, visit: Any
) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html?text=rome")
    card = page.locator('.card[data-id="s2"]').first
    page.get_by_role("button", name="Correct: Bo").click()
    card.locator(".sentence").wait_for()
    expect(card).to_contain_text("omar’s answer", use_inner_text=True)
    expect(card.get_by_role("button", name="Sure part")).to_have_count(0)
    press(page, "p", "1", "Enter")
    card.locator(".facts", has_text="decided by lena").wait_for()
    assert stored(answered)["s2"][0] == [(0, 1, "PER"), (2, 3, "LOC")]

    page.get_by_role("button", name="Correct: Bo").click()  # a decision is corrected, too
    card.locator(".sentence").wait_for()
    press(page, "X", "Enter")
    card.locator(".made").wait_for()
    assert stored(answered)["s2"][0] == []
    page.get_by_role("button", name="Take back the decision: Bo").click()
    page.wait_for_selector(".card:nth-child(2)")  # the first decision, and the answer
    page.get_by_role("button", name="Take back the decision: Bo").click()
    page.wait_for_selector(".card:nth-child(2)", state="detached")
    card.locator(".facts", has_text="omar").wait_for()
    assert stored(answered)["s2"][0] == [(2, 3, "LOC")]


def test_somebodys_answer_is_opened_on_the_annotation_page_and_z_takes_the_decision_back(
    answered: Any, visit: Any
) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html?text=rome")
    page.get_by_role("link", name="Open: Bo").click()
    shown(page, "s2")
    expect(page.locator("#stream")).to_contain_text("omar’s answer: what you save is your decision")
    expect(page.locator("#sentence .mark")).to_have_count(1)
    press(page, "1", "Delete")
    page.locator("#status", has_text="Only who gave this answer").wait_for()
    press(page, "Enter")
    shown(page, "s4")
    assert stored(answered)["s2"][0] == [(0, 1, "PER"), (2, 3, "LOC")]
    press(page, "z")
    page.locator("#status", has_text="Decision taken back.").wait_for()
    assert stored(answered)["s2"][0] == [(2, 3, "LOC")]


def test_anybody_corrects_what_a_model_answered_and_what_was_accepted_in_bulk(
    answered: Any, visit: Any
) -> None:
    store = answered.project.store
    gpt = add_model_annotator(store, "model:gpt").id
    save_answer(store, "s5", gpt, "label", [Mark(0, 1, "LOC")], stream="source")
    accept_answers(store, add_batch(store, "accept", 1, {"alpha": 0.05}), 1, [("s4", [])])
    page = visit(answered.invite("eve"))
    page.goto(f"{answered.url}/answers.html")
    corrected = page.get_by_text("Correct").filter(visible=True)
    each_has(corrected, "aria-label", "Correct: a / b ?", "Correct: Zoe !")
    page.get_by_role("button", name="Correct: Zoe").click()
    page.locator('[data-id="s5"] .sentence').wait_for()
    expect(page.locator('.card[data-id="s5"]')).to_contain_text(
        "A model’s answer (gpt): what you save", use_inner_text=True
    )
    press(page, "1", "Enter")
    page.locator('[data-id="s5"] .facts', has_text="you").wait_for()
    page.get_by_role("link", name="Open: a / b").click()
    shown(page, "s4")
    expect(page.locator("#stream")).to_contain_text("A model’s answer, accepted by lena")
    press(page, "3", "Enter")
    page.locator("#status", has_text="Saved.").wait_for()
    assert [stored(answered)[id][0] for id in ("s4", "s5")] == [[(0, 1, "LOC")], [(0, 1, "PER")]]
    assert {a.annotator for a in current_answers(store) if a.sentence_id in ("s4", "s5")} == {"eve"}


def test_a_correction_of_what_was_changed_elsewhere_is_refused(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html?id=s0")
    page.get_by_role("button", name="Correct: Lena").click()
    page.locator('[data-id="s0"] .sentence').wait_for()
    store = answered.project.store
    save_answer(store, "s0", 1, "label", [], version=answer_version(store, "s0", 1))
    press(page, "1", "Enter")
    page.locator(
        '[data-id="s0"]', has_text="Not saved. This sentence has been answered since"
    ).wait_for()
    assert stored(answered)["s0"][0] == []


def test_comments_and_flags_are_said_found_and_resolved(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html?state=open")
    page.get_by_role("button", name="Flag: Zoe").click()
    page.locator('[data-id="s5"] .comments', has_text="⚑ Flag").wait_for()
    page.get_by_role("button", name="Comment: Zoe").click()
    page.get_by_role("textbox", name="Your comment").fill("<img src=x onerror=alert(1)> who?")
    page.get_by_role("button", name="Save comment").click()
    page.locator('[data-id="s5"] .comments', has_text="<img src=x").wait_for()
    page.get_by_label("With a comment or flag").check()
    lists(page, "s5")

    other = visit(answered.invite("eve"))
    other.goto(f"{answered.url}/answers.html?state=open&commented=true")
    other.locator(".comments li", has_text="lena").nth(1).wait_for()
    other.get_by_role("button", name="Resolve: flag").click()
    expect(other.locator(".comments li")).to_have_count(1)  # drawn anew
    other.get_by_role("button", name="Resolve: <img").click()
    expect(other.locator(".comments li")).to_have_count(0)
    opened(page, f"{answered.url}/answers.html?state=open&commented=true")


def test_a_sentence_is_flagged_and_discussed_while_it_is_labeled(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    shown(page, "s4")
    press(page, "F")
    page.locator("#talk", has_text="⚑ Flag").wait_for()
    expect(page.locator("#flag")).to_have_attribute("aria-pressed", "true")
    press(page, "C")
    page.keyboard.type("an x, or a name? s")  # keys that would mean something outside
    press(page, "Control+Enter")
    page.locator("#talk", has_text="an x, or a name? s").wait_for()
    press(page, "Enter")
    shown(page, "s5")
    expect(page.locator("#talk li")).to_have_count(0)
    press(page, "Backspace")
    shown(page, "s4")
    expect(page.locator("#talk li")).to_have_count(2)
    press(page, "F")
    expect(page.locator("#talk li")).to_have_count(1)
    expect(page.locator("#flag")).to_have_attribute("aria-pressed", "false")


def test_what_was_done_in_one_go_is_listed_with_its_cause_and_taken_back(
    answered: Any, visit: Any
) -> None:
    mark_all(answered.project.store, 1, Cause("s4", 0, 1, "LOC"))
    mark_all(answered.project.store, 1, Cause("s0", 3, 4, "ORG"))
    add_batch(answered.project.store, "accept", 1, {"alpha": 0.05})
    page = visit(answered.link)
    page.goto(f"{answered.url}/answers.html")
    page.locator("#batches-box summary").click()
    page.locator("#batches li", has_text="“.” marked ORG everywhere: 2 answers, lena").wait_for()
    assert stored(answered)["s1"][0] == [(0, 1, "PER"), (2, 3, "ORG")]
    page.get_by_role("button", name="Take back: “.” marked ORG").click()
    page.locator("#batches .undone").wait_for()
    assert stored(answered)["s1"][0] == [(0, 1, "PER")]
    expect(page.get_by_role("button", name="Take back: “a” marked")).to_be_visible()
    expect(page.locator("#batches")).to_contain_text("at an error rate of at most 5%: 0 answers")


def test_an_open_sentence_is_opened_whatever_its_id(serve: Serve, visit: Any) -> None:
    from seqmix.data.sentence import Sentence

    served = serve([*lines("Lena left .", "Ada ."), Sentence("a/b c#d?e%&é=1", ("Zoe", "!"))])
    ranked(served)
    page = visit(served.link)
    page.goto(f"{served.url}/answers.html?state=open&text=zoe")
    page.get_by_role("link", name="Open: Zoe !").click()
    page.wait_for_selector("#work:not([aria-busy]) #sentence")
    page.get_by_role("option", name="Zoe").wait_for()
    press(page, "1", "Enter")
    page.get_by_text("Saved.").wait_for()
    assert stored(served)["a/b c#d?e%&é=1"][0] == [(0, 1, "PER")]


def test_the_skip_link_of_the_annotation_page_opens_nothing(answered: Any, visit: Any) -> None:
    page = visit(answered.link)
    shown(page, "s4")
    press(page, "Shift+Tab")
    page.goto(f"{answered.url}/#sentence")
    page.wait_for_timeout(200)
    expect(page.locator("#trouble")).to_be_hidden()


def test_somebody_who_gives_second_answers_sees_only_theirs(serve: Serve, visit: Any) -> None:
    served = serve(lines("Lena left Oslo .", "Ada came ."), overlap_share=1.0)
    ranked(served)
    link = served.invite("omar")
    answer_as(served, "lena", "s0", (0, 1, "PER"))
    page = visit(link)
    opened(page, f"{served.url}/answers.html")
    expect(page.locator("#annotator option")).to_have_text(["You", "omar"])
    answer_as(served, "omar", "s0", (0, 1, "ORG"))
    opened(page, f"{served.url}/answers.html", "s0")
    expect(page.locator("#list")).not_to_contain_text("lena", use_inner_text=True)


def test_more_answers_come_with_a_click_and_a_phone_shows_all_filters(
    serve: Serve, visit: Any
) -> None:
    served = serve(lines(*(f"Lena saw {i} ." for i in range(70))))
    ranked(served)
    page = visit(served.link, width=390, height=844)
    page.goto(f"{served.url}/answers.html?state=open")
    expect(page.locator(".card")).to_have_count(50)
    page.get_by_role("button", name="Show more").click()
    expect(page.locator(".card")).to_have_count(70)
    expect(page.locator("#more")).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
