"""The routes that look answers up again."""

from __future__ import annotations

import pytest

from seqmix.data.sentence import Sentence
from seqmix.serve.store.sentences import add_sentences
from seqmix.serve.web.security import Limits
from tests.serve.web.test_app import answer, mark
from tests.support.served import Served, project, serve


@pytest.fixture
def site(tmp_path):
    limits = Limits(rate=1e9, burst=1e9)
    with project(tmp_path / "people") as opened, serve(opened, limits=limits) as served:
        yield served


def test_answers_are_listed_and_pages_resume_by_key(site: Served):
    for _ in range(3):
        answer(site.ada, [mark(0, 1)])
    first = site.bo.get("/api/answers?limit=2").json()
    rest = site.bo.get(f"/api/answers?limit=2&after={first['next']}").json()

    assert [len(first["answers"]), len(rest["answers"]), rest["next"]] == [2, 1, None]
    entry = first["answers"][0]
    assert entry["answer"]["annotator"] == "Ada"
    assert (entry["answer"]["mine"], entry["answer"]["counts"]) == (False, True)
    assert entry["answer"]["spans"] == [mark(0, 1)]
    assert site.ada.get("/api/answers/choices").json()["people"] == ["Ada", "Bo"]


def test_an_answer_is_opened_by_who_may_correct_it_with_what_a_correction_is(site: Served):
    seq = answer(site.bo, [mark(0, 1)], sure=[[0, 2]])[1].json()["seq"]
    (listed,) = site.ada.get("/api/answers").json()["answers"]
    assert listed["answer"]["correction"] == "adjudicate"
    theirs, admins = (who.get(f"/api/answers/{seq}").json() for who in (site.bo, site.ada))
    assert theirs["answer"]["sure"] == [[0, 2]]
    assert admins["answer"] == {"spans": [mark(0, 1)], "sure": None, "open": []}
    assert (theirs["corrects"]["kind"], theirs["corrects"]["mine"]) == ("label", True)
    assert list(admins["corrects"].values()) == [seq, "adjudicate", "Bo", False]

    body = {"id": listed["id"], "version": admins["sentence"]["version"], "spans": []}
    decision = site.ada.post("/api/adjudications", {**body, "tag_change": 0}).json()["seq"]
    assert site.bo.get(f"/api/answers/{decision}").status_code == 404
    assert site.ada.post("/api/undo", {"seq": decision}).json()["decision"] is True
    (listed,) = site.bo.get("/api/answers").json()["answers"]
    assert (listed["answer"]["counts"], listed["answer"]["correction"]) == (True, "label")


def test_second_answers_stay_blind(tmp_path):
    with project(tmp_path / "twice", overlap_share=1.0) as opened, serve(opened) as site:
        seq = answer(site.ada, [mark(0, 1)])[1].json()["seq"]
        assert site.bo.get(f"/api/answers/{seq}").status_code == 404


@pytest.mark.parametrize(
    "query", ["state=none", "limit=0", "after=x", "since=nan", "what=1", "text=" + "x" * 201]
)
def test_a_wrong_search_is_refused_in_one_sentence(site: Served, query: str):
    refused = site.ada.get(f"/api/answers?{query}")
    assert refused.status_code == 422
    assert isinstance(refused.json()["error"], str)


def test_sentences_labeled_before_the_project_come_with_their_labels(site: Served):
    seed = Sentence("seed", ("Ada", "left", "Oslo"), ("B-PER", "O", None))
    add_sentences(site.project.store, [seed], seed=True)

    (entry,) = site.ada.get("/api/answers?state=seed").json()["answers"]
    assert (entry["answer"], entry["stream"]) == (None, "seed")
    assert entry["seed"] == {"spans": [mark(0, 1)], "sure": [[0, 2]]}
    opened = site.ada.get("/api/answers?state=open").json()["answers"]
    assert {entry["seed"] for entry in opened} == {None}
