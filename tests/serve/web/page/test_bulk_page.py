"""The part of the page Review that accepts what a model is sure of: look, accept, take back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from seqmix.serve.review.model_answers import (
    PREDICT_NOW,
    ModelAnswer,
    ModelAnswers,
    write_model_answers,
)
from seqmix.serve.store.annotators import find_annotator
from seqmix.serve.store.answers import answer_version, save_answer
from seqmix.serve.store.batches.bulk import bulk_ids, untouched
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import read_audit_sentences
from tests.support.page import expect, lines

Serve = Callable[..., Any]
MARKS = (Mark(0, 1, "PER"),)


@pytest.fixture
def audited(serve: Serve) -> Any:
    """200 audit answers, one of which a model has wrong, and 200 open sentences."""
    served = serve(lines(*(f"Ada saw {i} <b> ." for i in range(400))), audit_share=0.5)
    store = served.project.store
    lena = find_annotator(store, "lena").id
    audit = [sentence.id for sentence in read_audit_sentences(store)]
    for at, id in enumerate(audit):
        save_answer(store, id, lena, "label", MARKS if at else ())
    said = [
        [ModelAnswer(id, 0.9 + at / 4000, MARKS) for at, id in enumerate(ids)]
        for ids in (audit, sorted(untouched(store)))
    ]
    served.project.models.mkdir(exist_ok=True)
    write_model_answers(served.project.models, ModelAnswers(1.0, 30, 0, *said))
    return served


def test_what_a_model_is_sure_of_is_shown_accepted_and_taken_back(audited: Any, visit: Any) -> None:
    page = visit(audited.link)
    page.wait_for_selector("#sentence .token")  # this one is left to whoever has it open
    page.goto(f"{audited.url}/review.html")
    page.get_by_role("button", name="Accept 199 sentences").wait_for()
    expect(page.locator("#verdict")).to_contain_text(
        "At most 5% of them are wrong, with 95% confidence"
    )
    expect(page.locator("#verdict")).to_contain_text("1 wrong")
    expect(page.locator("#sample .sure")).to_have_count(10)
    expect(page.locator("#sample .sure").first).to_contain_text("<b>")
    page.locator("#alpha").select_option("0.01")
    page.locator("#verdict", has_text="requires at least").wait_for()
    expect(page.locator("#verdict")).to_contain_text("there are 200 in all")
    expect(page.locator("#accept")).to_be_disabled()
    page.locator("#alpha").select_option("0.05")
    page.get_by_role("button", name="Accept 199 sentences").click()
    page.locator("#bulk-status", has_text="199 sentences accepted.").wait_for()
    assert len(bulk_ids(audited.project.store)) == 199

    page.reload()
    page.get_by_role("button", name="Take back 199 sentences").click()
    page.locator("#bulk-status", has_text="199 sentences taken back.").wait_for()
    assert bulk_ids(audited.project.store) == set()
    page.locator("#accepted", has_text="taken back").wait_for()


def test_the_page_says_that_too_many_are_wrong(audited: Any, visit: Any) -> None:
    store = audited.project.store
    lena = find_annotator(store, "lena").id
    for sentence in read_audit_sentences(store)[1::4]:
        version = answer_version(store, sentence.id, lena)
        save_answer(store, sentence.id, lena, "label", [], version=version)
    page = visit(audited.link)
    page.goto(f"{audited.url}/review.html")
    page.locator("#verdict", has_text="that the model is most sure of are wrong").wait_for()
    expect(page.locator("#accept")).to_be_disabled()


def test_somebody_asks_for_predictions_and_who_is_no_admin_sees_none_of_it(
    serve: Serve, visit: Any
) -> None:
    served = serve(lines("Ada came .", "Bo left ."))
    page = visit(served.link)
    page.goto(f"{served.url}/review.html")
    page.locator("#verdict", has_text="No model has predicted").wait_for()
    page.get_by_role("button", name="Let a model predict the open sentences").click()
    page.get_by_role("button", name="Stop predicting").wait_for()
    assert served.project.store.read_note(PREDICT_NOW) is not None
    page.get_by_role("button", name="Stop predicting").click()
    page.get_by_role("button", name="Let a model predict").wait_for()

    other = visit(served.invite("eve"))
    other.goto(f"{served.url}/review.html")
    other.locator("#summary:not(:empty)").wait_for()
    expect(other.locator("#bulk")).to_be_hidden()
