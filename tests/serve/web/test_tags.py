"""The routes for the tags: previews, changes, and what an older page's tags mean."""

from __future__ import annotations

import pytest

from seqmix.serve.settings import read_settings
from seqmix.serve.store.current import current_answers
from seqmix.serve.web.security import Limits
from tests.serve.web.test_app import answer, mark
from tests.support.served import Served, project, serve


@pytest.fixture
def site(tmp_path):
    limits = Limits(rate=1e9, burst=1e9)
    with project(tmp_path / "people") as opened, serve(opened, limits=limits) as served:
        yield served


def names(person) -> list[str]:
    return [tag["name"] for tag in person.get("/api/project").json()["tags"]]


def test_a_change_is_counted_first_made_and_seen_by_everybody(site: Served):
    answer(site.bo, [mark(0, 1), mark(1, 2)])
    wish = {"kind": "rename", "tag": "PER", "into": [" Person "]}

    there = site.ada.post("/api/tags/preview", wish).json()
    done = site.ada.post("/api/tags", {**wish, "newest": there["newest"]})

    assert (there["answers"], there["spans"], there["newest"]) == (1, 2, 0)
    assert there["words"] == "1 answer with 2 spans"
    assert (done.status_code, done.json()["newest"]) == (201, 1)
    assert names(site.bo) == ["Person", "LOC"]
    assert site.bo.get("/api/status").json()["tag_change"] == 1
    assert site.bo.get("/api/tags?since=0").json()["meanings"] == {
        "PER": ["Person"],
        "LOC": ["LOC"],
    }
    assert site.bo.get("/api/tags?since=1").json()["meanings"] == {}
    assert read_settings(site.project.folder).tags == ("Person", "LOC")
    listed = site.ada.get("/api/tags/changes").json()
    (change,) = listed["changes"]
    assert (change["kind"], change["tag"], change["into"], change["by"]) == (
        "rename",
        "PER",
        ["Person"],
        "Ada",
    )
    assert (listed["spans"], listed["open"]) == ({"Person": 2}, 0)


def test_colors_and_keys_are_those_of_the_store(site: Served):
    site.ada.post("/api/tags", {"kind": "recolor", "tag": "LOC", "color": 7})
    site.ada.post("/api/tags", {"kind": "retire", "tag": "PER"})

    assert site.bo.get("/api/project").json()["tags"] == [{"name": "LOC", "key": "2", "color": 7}]


def test_a_page_that_does_not_know_a_change_is_mapped_or_told_to_choose(site: Served):
    site.ada.post("/api/tags", {"kind": "rename", "tag": "PER", "into": ["Person"]})
    body, saved = answer(site.bo, [mark(0, 1)], tag_change=0)
    assert saved.status_code == 201
    assert [a.spans[0].tag for a in current_answers(site.project.store)] == ["Person"]

    site.ada.post("/api/tags", {"kind": "split", "tag": "Person", "into": ["Hero", "Crowd"]})
    assert site.ada.get("/api/tags/changes").json()["open"] == 1
    _, refused = answer(site.bo, [mark(0, 1, "Person")], tag_change=1)
    assert refused.status_code == 422
    assert "the tag Person is now one of Hero, Crowd" in refused.json()["error"]
    version = saved.json()["version"]
    again = {**body, "version": version, "spans": [mark(0, 1, "Hero")], "tag_change": 2}
    assert site.bo.post("/api/annotations", again).status_code == 201
    assert site.ada.get("/api/tags/changes").json()["open"] == 0


def test_of_two_admins_the_second_looks_again(site: Served):
    wish = {"kind": "rename", "tag": "PER", "into": ["A"], "newest": 0}
    assert site.ada.post("/api/tags", wish).status_code == 201
    assert site.ada.post("/api/tags", wish).status_code == 409
    undo = {"kind": "undo", "newest": 1}
    assert site.ada.post("/api/tags/preview", undo).json()["answers"] == 0
    assert site.ada.post("/api/tags", undo).status_code == 201
    assert site.ada.get("/api/tags/changes").json()["changes"][1]["undone"] is True


def test_only_admins_change_the_tags_or_see_who_did(site: Served):
    wish = {"kind": "retire", "tag": "PER"}
    assert site.bo.post("/api/tags", wish).status_code == 403
    assert site.bo.post("/api/tags/preview", wish).status_code == 403
    assert site.bo.get("/api/tags/changes").status_code == 403
    assert names(site.ada) == ["PER", "LOC"]


@pytest.mark.parametrize(
    "wish",
    [
        {"kind": "paint", "tag": "PER"},
        {"kind": "rename", "tag": "PER"},
        {"kind": "rename", "tag": "PER", "into": "A"},
        {"kind": "rename", "tag": "PER", "into": ["A" * 65]},
        {"kind": "rename", "tag": "PER", "into": ["\x00"]},
        {"kind": "rename", "tag": "PER", "into": ["A B"]},
        {"kind": "add", "tag": ""},
        {"kind": "add", "tag": "NEW", "earlier": "maybe"},
        {"kind": "recolor", "tag": "PER", "color": 12},
        {"kind": "recolor", "tag": "PER", "color": -1},
        {"kind": "undo"},
        {"tag": "PER"},
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(site: Served, wish):
    for path in ("/api/tags/preview", "/api/tags"):
        refused = site.ada.post(path, wish)
        assert refused.status_code == 422
        assert isinstance(refused.json()["error"], str)
    assert names(site.ada) == ["PER", "LOC"]
    assert site.ada.get("/api/tags?since=x").status_code == 422
