"""The routes for the same text elsewhere, and for what was done in one go."""

from __future__ import annotations

import pytest

from seqmix.serve.store.events import read_events
from seqmix.serve.web.security import Limits
from tests.serve.web.test_app import answer, mark
from tests.support.served import Served, project, serve


@pytest.fixture
def site(tmp_path):
    limits = Limits(rate=1e9, burst=1e9)
    with project(tmp_path / "people") as opened, serve(opened, limits=limits) as served:
        yield served


def span_of(person, word="Oslo", tag="LOC"):
    """The body that names a word in the sentence that is next for somebody."""
    given = person.get("/api/next").json()["sentence"]
    at = given["tokens"].index(word)
    return {"id": given["id"], "start": at, "end": at + 1, "tag": tag}


def until(person, word):
    """Answer without marks until a sentence with a word is next."""
    while word not in person.get("/api/next").json()["sentence"]["tokens"]:
        answer(person)


def test_one_request_marks_all_and_one_undo_takes_all_back(site: Served):
    until(site.ada, "Oslo")
    answer(site.ada)
    until(site.ada, "Oslo")
    body = span_of(site.ada)

    there = site.ada.get("/api/same", params=body).json()
    done = site.ada.post("/api/same", body)

    assert (there["text"], there["here"], there["answers"]) == ("Oslo", [], 1)
    assert there["open"] > 5
    assert (done.status_code, done.json()["answers"]) == (201, 1)
    offers = site.ada.get("/api/next").json()["offers"]
    assert [(o["source"], o["kind"]) for o in offers] == [("marked before", "mark_all")]
    assert offers[0]["spans"] == [mark(body["start"], body["end"], "LOC")]
    (row,) = site.ada.get("/api/batches").json()
    assert (row["kind"], row["answers"], row["annotator"]) == ("mark_all", 1, "Ada")
    assert row["details"]["tokens"] == ["Oslo"]

    last = site.ada.get("/api/status").json()["answers"]["last"]
    assert last == {"seq": done.json()["last"]}
    undone = site.ada.post("/api/undo", last).json()
    assert (undone["id"], undone["batch"], undone["cancelled"]) == (None, row["id"], 1)
    assert site.ada.get("/api/next").json()["offers"] == []
    assert site.ada.get("/api/batches").json()[0]["answers"] == 0
    assert undone["last"]["seq"] < last["seq"]


def test_marking_all_where_no_answer_is_corrected_is_taken_back_in_its_turn(site: Served):
    until(site.ada, "Oslo")
    body = span_of(site.ada)
    batch = site.ada.post("/api/same", body).json()
    assert (batch["answers"], batch["last"]) == (0, None)
    answered = answer(site.ada, [mark(body["start"], body["end"], "LOC")])[1].json()["seq"]

    first = site.ada.post("/api/undo", {"seq": answered}).json()
    assert first["last"] == {"batch": batch["batch"]}
    assert site.ada.get("/api/status").json()["answers"]["last"] == first["last"]
    undone = site.ada.post(f"/api/batches/{batch['batch']}/undo").json()
    assert (undone["cancelled"], undone["last"] != first["last"]) == (0, True)
    assert undone["here"] == {"id": body["id"], "spans": []}
    assert site.ada.get("/api/next").json()["offers"] == []


def test_an_answer_says_how_many_of_the_marks_it_kept(site: Served):
    until(site.ada, "Oslo")
    body = span_of(site.ada)
    site.ada.post("/api/same", body)

    answer(site.ada, [mark(body["start"], body["end"], "LOC")], sources=["marked before"])

    *_, event = read_events(site.project.store)
    assert event.shown == {"marked before": [1, 1]}


def test_a_batch_is_for_its_annotator_and_for_admins(site: Served):
    until(site.bo, "Oslo")
    batch = site.bo.post("/api/same", span_of(site.bo)).json()["batch"]
    until(site.ada, "Rome")
    other = site.ada.post("/api/same", span_of(site.ada, "Rome")).json()["batch"]

    assert [row["id"] for row in site.bo.get("/api/batches").json()] == [batch]
    assert [row["id"] for row in site.ada.get("/api/batches").json()] == [other, batch]
    assert site.bo.post(f"/api/batches/{other}/undo").status_code == 404
    assert site.ada.post(f"/api/batches/{batch}/undo").status_code == 200
    assert site.ada.post("/api/batches/99/undo").status_code == 404


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"id": "nobody"}, 404),
        ({"id": "\x00"}, 404),
        ({"tag": "ORG"}, 422),
        ({"end": 99}, 422),
        ({"start": 1, "end": 1}, 422),
        ({"start": "0"}, 422),
        ({"endings": 1}, 422),
        ({"more": 1}, 422),
        ({"tag": "x" * 300}, 422),
    ],
)
def test_what_cannot_be_marked_is_refused_in_one_sentence(site: Served, change, status):
    body = {"id": "s0", "start": 0, "end": 1, "tag": "PER", **change}
    refused = site.ada.post("/api/same", body)

    assert refused.status_code == status
    assert isinstance(refused.json()["error"], str)
    assert site.ada.get("/api/batches").json() == []
    assert site.ada.post("/api/batches/x/undo").status_code == 422
