"""The route that shows what stands around a sentence."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

from seqmix.serve.store.sentences import add_sentences
from tests.serve.web.test_app import PLENTY, answer, mark
from tests.support.served import project, sentences, serve


def test_neighbors_are_text_and_nobody_s_answers(tmp_path):
    with project(tmp_path / "people", n=1, overlap_share=1.0) as opened, serve(opened) as site:
        document = [replace(s, id=f"a b/ü:{i}") for i, s in enumerate(sentences(9)[1:])]
        add_sentences(opened.store, document)
        answer(site.ada, [mark(0, 1)])

        reply = site.bo.get(f"/api/neighbors/{quote('a b/ü:2', safe='')}")

        assert reply.json()["document"] == "a b/ü"
        assert [s["tokens"] for s in reply.json()["before"]] == [[*s.tokens] for s in document[:2]]
        assert [s["tokens"] for s in reply.json()["after"]] == [[*s.tokens] for s in document[3:6]]
        assert all(
            set(s) == {"tokens", "spaces", "length"}
            for side in ("before", "after")
            for s in reply.json()[side]
        )


def test_a_long_neighbor_is_cut_and_says_how_long_it_is(tmp_path):
    with project(tmp_path / "people", n=1) as opened, serve(opened, limits=PLENTY) as site:
        one, two = sentences(3)[1:]
        add_sentences(
            opened.store,
            [replace(one, id="d:0"), replace(two, id="d:1", tokens=("ha",) * 500, tags=())],
        )
        after = site.bo.get("/api/neighbors/d:0").json()["after"]
        assert [(len(s["tokens"]), s["length"]) for s in after] == [(400, 500)]


def test_strangers_and_unknown_sentences_are_refused(tmp_path):
    with project(tmp_path / "people", n=2) as opened, serve(opened, limits=PLENTY) as site:
        assert site.client.get("/api/neighbors/s0").status_code == 401
        assert site.ada.get("/api/neighbors/s9").status_code == 404
        assert site.ada.get("/api/neighbors/s1").json() == {
            "document": None,
            "before": [],
            "after": [],
        }
