"""The routes for comments and flags."""

from __future__ import annotations

import pytest

from seqmix.serve.web.security import Limits
from tests.serve.web.test_app import answer, mark
from tests.support.served import project, serve

PLENTY = Limits(rate=1e9, burst=1e9)


def test_comments_are_part_of_the_list_of_answers_until_they_are_resolved(tmp_path):
    with project(tmp_path / "people") as opened, serve(opened, limits=PLENTY) as site:
        body, _ = answer(site.ada, [mark(0, 1)])
        said = site.bo.post("/api/comments", {"id": body["id"], "text": "<b>Really?</b>"})
        flag = site.ada.post("/api/comments", {"id": body["id"]}).json()
        assert (said.status_code, flag["text"], flag["mine"]) == (201, "", True)

        (entry,) = site.ada.get("/api/answers?commented=true").json()["answers"]
        assert [(c["by"], c["text"], c["mine"]) for c in entry["comments"]] == [
            ("Bo", "<b>Really?</b>", False),
            ("Ada", "", True),
        ]
        for comment in entry["comments"]:
            path = f"/api/comments/{comment['id']}/resolved"
            assert site.bo.post(path, {"resolved": True}).status_code == 200
        assert site.ada.get("/api/answers?commented=true").json()["answers"] == []
        everything = site.ada.get(f"/api/comments/{body['id']}").json()
        assert [comment["resolved"] for comment in everything] == [True, True]


def test_who_gives_second_answers_reads_their_own_comments_only(tmp_path):
    settings = {"overlap_share": 1.0}
    with project(tmp_path / "people", **settings) as opened, serve(opened, limits=PLENTY) as site:
        by_ada = site.ada.post("/api/comments", {"id": "s0", "text": "a PER?"}).json()
        by_bo = site.bo.post("/api/comments", {"id": "s0", "text": "mine"}).json()

        assert [c["id"] for c in site.bo.get("/api/comments/s0").json()] == [by_bo["id"]]
        assert len(site.ada.get("/api/comments/s0").json()) == 2
        for comment, status in ((by_ada, 404), (by_bo, 200)):
            path = f"/api/comments/{comment['id']}/resolved"
            assert site.bo.post(path, {"resolved": True}).status_code == status


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", {"id": "nobody", "text": "x"}, 404),
        ("", {"id": "\x00", "text": "x"}, 404),
        ("", {"id": "s0", "text": "x" * 2001}, 422),
        ("", {"id": "s0", "text": "\x00"}, 422),
        ("", {"id": "s0", "text": 1}, 422),
        ("/99/resolved", {"resolved": True}, 404),
        ("/1/resolved", {"resolved": 1}, 422),
        ("/0/resolved", {"resolved": True}, 422),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(tmp_path, path, body, status):
    with project(tmp_path / "people") as opened, serve(opened, limits=PLENTY) as site:
        refused = site.ada.post(f"/api/comments{path}", body)
        assert refused.status_code == status
        assert isinstance(refused.json()["error"], str)
