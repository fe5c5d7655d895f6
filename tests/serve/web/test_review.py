"""The routes of answers in doubt."""

from __future__ import annotations

import pytest

from seqmix.serve.review.doubts import REVIEW_NOW, gold_events, write_doubts
from seqmix.serve.review.evidence import Doubt
from seqmix.serve.store.answers import answer_version
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.records import Mark
from seqmix.serve.tags.changes import Wish, change_tags
from seqmix.serve.web.security import Limits
from tests.serve.web.test_app import answer, mark
from tests.support.served import Served, project, serve


@pytest.fixture
def site(tmp_path):
    limits = Limits(rate=1e9, burst=1e9)
    with project(tmp_path / "people") as opened, serve(opened, limits=limits) as served:
        yield served


def doubted(site: Served, person) -> dict:
    """An answer by somebody that a model would tag otherwise."""
    id = answer(person, [mark(0, 1)])[0]["id"]
    store = site.project.store
    doubt = Doubt(id, "model", 0.9, {"spans": [[0, 1, "LOC", 0.8]]})
    write_doubts(store, "model", [doubt], gold_events(store))
    return next(r for r in site.ada.get("/api/reviews").json()["reviews"] if r["id"] == id)


def test_an_answer_in_doubt_comes_with_what_to_do_and_is_kept(site: Served):
    review = doubted(site, site.bo)

    assert (review["annotator"], review["mine"], review["score"]) == ("Bo", False, 0.9)
    assert review["spans"] == [mark(0, 1)]
    assert review["doubts"][0]["proposal"] == [mark(0, 1, "LOC")]
    kept = {"id": review["id"], "seq": review["seq"]}
    assert site.bo.post("/api/reviews/keep", kept).json() == {"settled": 1}
    assert site.ada.get("/api/reviews").json()["total"] == 0
    site.bo.post("/api/reviews/keep", {**kept, "keep": False})
    assert site.bo.get("/api/reviews").json()["total"] == 1


def test_mending_corrects_the_answer_and_ends_the_doubt(site: Served):
    review = doubted(site, site.bo)
    (mine,) = site.bo.get("/api/reviews").json()["reviews"]
    body = {"id": mine["id"], "seq": mine["seq"], "version": mine["version"]}

    saved = site.bo.post("/api/reviews/mend", {**body, "spans": [mark(0, 1, "LOC")]})

    assert saved.status_code == 201
    assert (saved.json()["kind"], saved.json()["before"]) == ("label", [mark(0, 1)])
    assert site.ada.get("/api/reviews").json()["total"] == 0
    late = {**body, "version": review["version"], "spans": []}
    assert site.ada.post("/api/reviews/mend", late).status_code == 409
    (now,) = current_answers(site.project.store)
    assert now.spans[0].tag == "LOC"


def test_a_correction_with_old_tags_gets_those_of_now_or_is_refused(site: Served):
    store = site.project.store
    sent, saved = answer(site.bo)
    change_tags(store, Wish("rename", "LOC", ("Place",)))
    change_tags(store, Wish("split", "PER", ("Real", "Fictional")))
    body, seq = {"id": sent["id"], "tag_change": 0}, saved.json()["seq"]

    def corrected(spans):
        body["version"] = answer_version(store, sent["id"])
        yield site.bo.post("/api/reviews/mend", {**body, "seq": seq, "spans": spans})
        body["version"] = answer_version(store, sent["id"])
        yield site.ada.post("/api/adjudications", {**body, "spans": spans})

    for refused in corrected([mark(0, 1)]):
        assert refused.status_code == 422
        assert "the tag PER is now one of Real, Fictional" in refused.json()["error"]
    for saved in corrected([mark(1, 2, "LOC")]):
        assert saved.status_code == 201
    answers = current_answers(store, sent["id"], overridden=True)
    assert [a.spans for a in answers] == [(Mark(1, 2, "Place"),)] * 2


def test_nobody_but_an_admin_mends_or_keeps_what_others_answered(site: Served):
    review = doubted(site, site.ada)
    body = {"id": review["id"], "seq": review["seq"]}

    assert site.bo.get("/api/reviews").json()["total"] == 0
    assert site.bo.post("/api/reviews/keep", body).status_code == 404
    mended = {**body, "version": review["version"], "spans": []}
    assert site.bo.post("/api/reviews/mend", mended).status_code == 404
    assert site.bo.post("/api/reviews/judge", {"model": True}).status_code == 403


def test_answers_are_compared_when_there_are_new_ones_and_models_judge_when_asked(site: Served):
    for _ in range(3):
        answer(site.ada, [mark(0, 1)])
    assert site.bo.post("/api/reviews/compare", {}).json() == {"compared": True}
    assert site.bo.post("/api/reviews/compare", {}).json() == {"compared": False}
    assert site.ada.post("/api/reviews/judge", {"model": True}).json() == {"judging": True}
    assert site.project.store.read_note(REVIEW_NOW) is not None
    assert site.ada.get("/api/reviews").json()["judging"] is True
    site.ada.post("/api/reviews/judge", {"model": False})
    assert site.project.store.read_note(REVIEW_NOW) is None


@pytest.mark.parametrize(
    "body",
    [{}, {"id": "s0"}, {"id": "s0", "seq": -1}, {"id": "", "seq": 1}, {"id": "s0", "seq": "1"}],
)
def test_a_wrong_decision_is_refused_in_one_sentence(site: Served, body):
    refused = site.ada.post("/api/reviews/keep", body)
    assert refused.status_code == 422
    assert isinstance(refused.json()["error"], str)
