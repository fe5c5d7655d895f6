"""What the status says of the goal and of the time answers take."""

from __future__ import annotations

from tests.serve.web.test_app import PLENTY, answer, mark
from tests.support.served import project, serve


def test_at_first_the_goal_is_the_first_model_and_nothing_is_known_of_times(tmp_path):
    with (
        project(tmp_path / "people", n=40, batch=4, audit_share=0.25) as opened,
        serve(opened, limits=PLENTY) as site,
    ):
        status = site.bo.get("/api/status").json()

        assert status["goal"] == {"why": "first model", "answers": 6, "more": 6, "minutes": None}
        assert status["pace"] is None


def test_everybody_sees_the_times_of_all_and_only_their_own_apart(tmp_path):
    with project(tmp_path / "people", n=40) as opened, serve(opened, limits=PLENTY) as site:
        for person, seconds in ((site.ada, 4.0), (site.ada, 8.0), (site.bo, 30.0)):
            assert answer(person, [mark(0, 1)], seconds=seconds)[1].status_code == 201
        ada, bo = (person.get("/api/status").json()["pace"] for person in (site.ada, site.bo))

        assert (ada["answers"], ada["seconds"]) == (bo["answers"], bo["seconds"]) == (3, 8.0)
        assert (ada["mine"]["answers"], ada["mine"]["seconds"]) == (2, 6.0)
        assert (bo["mine"]["answers"], bo["mine"]["seconds"]) == (1, 30.0)
        assert "Ada" not in str(bo)
        assert site.ada.get("/api/status").json()["goal"]["minutes"] > 0


def test_tags_are_for_all_and_what_people_confuse_is_for_admins(tmp_path):
    with (
        project(tmp_path / "people", n=4, overlap_share=1.0) as opened,
        serve(opened, limits=PLENTY) as site,
    ):
        answer(site.ada, [mark(0, 1)])
        answer(site.bo, [mark(0, 1, "LOC")])
        tags = site.bo.get("/api/tags/progress").json()["tags"]

        assert ({"tag": "PER", "spans": 1, "sentences": 1, "f1": None}) in tags
        assert site.bo.get("/api/confusion").status_code == 403
        assert site.client.get("/api/tags/progress").status_code == 401
        (difference,) = site.ada.get("/api/confusion").json()["differences"]
        assert (difference["tag_a"], difference["tag_b"], difference["n"]) == ("PER", "LOC", 1)
