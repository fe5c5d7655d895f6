"""The routes that accept many sentences at an error rate."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.serve.review.model_answers import (
    PREDICT_NOW,
    ModelAnswer,
    ModelAnswers,
    write_model_answers,
)
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.bulk import bulk_ids, untouched
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import add_sentences, read_audit_sentences, reserve_audit
from seqmix.serve.web.security import Limits
from tests.support.served import Served, project, serve


@pytest.fixture
def site(tmp_path):
    limits = Limits(rate=1e9, burst=1e9)
    with project(tmp_path / "people") as opened, serve(opened, limits=limits) as served:
        yield served


def audited(site: Served, at: float = 1.0) -> None:
    """300 sentences, 150 of them audited and answered as a model says that is sure of all."""
    store, marks = site.project.store, (Mark(0, 1, "PER"),)
    add_sentences(store, [Sentence(f"a:{i}", ("Ada", f"w{i}")) for i in range(300)])
    reserve_audit(store, 0.5)
    audit = [s.id for s in read_audit_sentences(store)]
    for id in audit:
        save_answer(store, id, site.ada.id, "label", marks)
    said = [[ModelAnswer(id, 0.97, marks) for id in ids] for ids in (audit, untouched(store))]
    site.project.models.mkdir(exist_ok=True)
    write_model_answers(site.project.models, ModelAnswers(at, 12, 0, *said))


def test_what_the_preview_shows_is_accepted_and_taken_back(site: Served):
    audited(site)
    shown = site.ada.get("/api/bulk?alpha=0.05").json()
    preview = shown["preview"]

    assert (preview["alpha"], preview["answers"], preview["errors"]) == (0.05, 12, 0)
    assert preview["accepted"] == preview["open"] > 100
    assert len(shown["sample"]) == 10
    assert shown["sample"][0]["spans"] == [{"start": 0, "end": 1, "tag": "PER"}]
    assert bulk_ids(site.project.store) == set()

    accepted = site.ada.post("/api/bulk/accept", {"alpha": 0.05, "at": preview["at"]})
    assert accepted.status_code == 201
    assert accepted.json()["accepted"] == preview["accepted"] == len(bulk_ids(site.project.store))
    listed = site.ada.get("/api/answers?stream=bulk&limit=200").json()["answers"]
    assert len(listed) == preview["accepted"]
    assert site.ada.get("/api/status").json()["answers"]["bulk"] == preview["accepted"]
    undone = site.ada.post(f"/api/batches/{accepted.json()['batch']}/undo").json()
    assert undone["cancelled"] == preview["accepted"]
    assert bulk_ids(site.project.store) == set()


def test_without_predictions_the_preview_says_what_to_do_and_somebody_asks_for_them(site: Served):
    shown = site.ada.get("/api/bulk").json()
    assert shown["preview"] is None
    assert "no model has predicted the open sentences yet" in shown["why"]
    site.ada.post("/api/bulk/predict", {})
    assert site.project.store.read_note(PREDICT_NOW) is not None
    assert site.ada.get("/api/bulk").json()["predicting"] is True
    site.ada.post("/api/bulk/predict", {"on": False})
    assert site.project.store.read_note(PREDICT_NOW) is None


def test_other_predictions_than_those_that_were_shown_are_refused(site: Served):
    audited(site, at=2.0)
    refused = site.ada.post("/api/bulk/accept", {"alpha": 0.05, "at": 1.0})
    assert refused.status_code == 409
    assert "preview again" in refused.json()["error"]
    assert bulk_ids(site.project.store) == set()


def test_admins_alone_accept_in_bulk(site: Served):
    assert site.bo.get("/api/bulk").status_code == 403
    assert site.bo.post("/api/bulk/predict", {}).status_code == 403
    assert site.bo.post("/api/bulk/accept", {"alpha": 0.05, "at": 1.0}).status_code == 403


@pytest.mark.parametrize(
    "body", [{"alpha": 0.9, "at": 1}, {"alpha": "0.05", "at": 1}, {"alpha": 0.05}, {"alpha": 0}]
)
def test_an_error_rate_that_makes_no_sense_is_refused(site: Served, body):
    refused = site.ada.post("/api/bulk/accept", body)
    assert refused.status_code == 422
    assert isinstance(refused.json()["error"], str)
