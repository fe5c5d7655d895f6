"""The application over a real store: every route, and every way to ask wrongly."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqmix.data import formats
from seqmix.data.augmented import Augmented, Lineage
from seqmix.data.sentence import Sentence
from seqmix.serve.store.annotators import add_annotator, find_annotator, revoke_token
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import answered_by_others_only
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.rankings import publish_generation, vetoed_ids
from seqmix.serve.store.records import Annotator, Generation, Notes, Rank, digest
from seqmix.serve.store.sentences import add_sentences
from seqmix.serve.web.security import Limits
from tests.support.served import Person, Served, project, serve
from tests.support.stores import find_sentence

PLENTY = Limits(rate=1e9, burst=1e9)


@pytest.fixture
def site(tmp_path):
    with project(tmp_path / "people") as own, serve(own, limits=PLENTY) as served:
        yield served


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    """One project for all who change nothing."""
    with (
        project(tmp_path_factory.mktemp("still") / "people") as own,
        serve(own, limits=PLENTY) as served,
    ):
        yield served


def answer(person, spans=(), **more):
    """Label the next sentence; what was sent and what came back."""
    given = person.get("/api/next").json()["sentence"]
    body = {
        "id": given["id"],
        "version": given["version"],
        "spans": list(spans),
        "sure": None,
        "seconds": 1.5,
        **more,
    }
    return body, person.post("/api/annotations", body)


def mark(start, end, tag="PER"):
    return {"start": start, "end": end, "tag": tag}


def test_the_project_says_what_is_to_be_labeled(still: Served):
    found = still.ada.get("/api/project").json()

    assert found["name"] == "people"
    assert [tag["name"] for tag in found["tags"]] == ["PER", "LOC"]
    assert [tag["key"] for tag in found["tags"]] == ["1", "2"]
    assert found["guidelines"] == "Mark **names**."
    assert found["annotator"] == {"name": "Ada", "admin": True}
    assert (found["annotators"], found["sentences"], found["direction"]) == (2, 30, "auto")


def test_next_gives_a_sentence_and_the_same_one_until_it_is_answered(site: Served):
    first = site.ada.get("/api/next").json()

    assert site.ada.get("/api/next").json() == first
    assert site.bo.get("/api/next").json()["sentence"]["id"] != first["sentence"]["id"]
    assert first["left"] == 30
    assert first["suggestion"] is None
    assert answer(site.ada, [mark(0, 1)])[1].status_code == 201
    assert site.ada.get("/api/next").json()["sentence"]["id"] != first["sentence"]["id"]


def test_spaces_follow_the_raw_text_and_are_unknown_without_one(still: Served):
    with_text = still.ada.get("/api/sentences/s0").json()["sentence"]

    assert with_text["spaces"] == [True] * (len(with_text["tokens"]) - 2) + [False, False]
    assert still.ada.get("/api/sentences/s1").json()["sentence"]["spaces"] is None


def test_an_answer_is_saved_with_its_spans_and_can_be_gone_back_to_and_changed(site: Served):
    body, saved = answer(site.ada, [mark(2, 3, "LOC"), mark(0, 1)])
    version = saved.json()["version"]
    back = site.ada.get(f"/api/sentences/{body['id']}").json()

    assert back["answer"] == {"spans": [mark(0, 1), mark(2, 3, "LOC")], "sure": None, "open": []}
    assert back["sentence"]["version"] == version
    again = site.ada.post(
        "/api/annotations", {**body, "version": version, "spans": [], "sure": [[0, 2]]}
    )
    assert again.status_code == 201
    assert site.ada.get(f"/api/sentences/{body['id']}").json()["answer"] == {
        "spans": [],
        "sure": [[0, 2]],
        "open": [],
    }


def test_a_retry_of_the_same_answer_is_one_answer(site: Served):
    body, first = answer(site.ada, [mark(0, 1)])

    assert site.ada.post("/api/annotations", body).json() == first.json()
    assert len(list(read_events(site.project.store))) == 1


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"id": "nobody"}, 404),
        ({"id": "\x00"}, 404),
        ({"version": 77}, 409),
        ({"spans": [mark(0, 1), mark(0, 2)]}, 422),
        ({"spans": [mark(3, 2)]}, 422),
        ({"spans": [mark(1, 1)]}, 422),
        ({"spans": [mark(0, 99)]}, 422),
        ({"spans": [mark(-1, 1)]}, 422),
        ({"spans": [mark(0, 1, "ORG")]}, 422),
        ({"spans": [mark(0, 1, "O")]}, 422),
        ({"spans": [mark(0, 1, "")]}, 422),
        ({"spans": [{"start": 0, "end": 1}]}, 422),
        ({"spans": [{**mark(0, 1), "more": 1}]}, 422),
        ({"spans": [mark("0", 1)]}, 422),
        ({"spans": [mark(0.0, 1)]}, 422),
        ({"spans": [mark(False, True)]}, 422),
        ({"spans": None}, 422),
        ({"spans": {"0": mark(0, 1)}}, 422),
        ({"sure": [[0]]}, 422),
        ({"sure": [[0, 1, 2]]}, 422),
        ({"sure": [[2, 1]]}, 422),
        ({"sure": [[0, 10**6]]}, 422),
        ({"sure": [], "spans": []}, 422),
        ({"sure": "all"}, 422),
        ({"seconds": -1}, 422),
        ({"seconds": "1"}, 422),
        ({"seconds": 10**400}, 422),
        ({"version": 2**64}, 422),
        ({"version": -1}, 422),
        ({"version": 10**5000 // 10**4000}, 422),
        ({"version": True}, 422),
        ({"id": 7}, 422),
        ({"id": ""}, 422),
        ({"id": "x" * 2000}, 422),
        ({"unknown": 1}, 422),
    ],
)
def test_a_wrong_answer_is_refused_in_one_sentence_and_nothing_is_saved(
    still: Served, change, status
):
    given_now = still.ada.get("/api/next").json()["sentence"]
    body = {
        "id": given_now["id"],
        "version": 0,
        "spans": [mark(0, 1)],
        "sure": None,
        "seconds": 1.0,
        **change,
    }
    found = still.ada.post("/api/annotations", body)

    assert found.status_code == status
    assert len(found.json()["error"]) > 10
    assert "\n" not in found.json()["error"]
    assert list(read_events(still.project.store)) == []


RAW = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"x"',
    b"7",
    b"NaN",
    b"\xff\xfe{}",
    b"{}" * 2,
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"id": "s0", "version": 0, "spans": [], "seconds": NaN}',
    b'{"id": "s0", "version": 0, "spans": [], "seconds": Infinity}',
    b'{"id": "s0", "version": 0, "spans": [], "seconds": 1e999}',
    b'{"id": "s0", "version": ' + b"9" * 10_000 + b', "spans": []}',
    b'{"id": "\\ud800", "version": 0, "spans": []}',
    b'{"id": "s0\\u0000", "version": 0, "spans": []}',
    b'{"id": "s0", "version": 0, "spans": [{"start": 0, "end": 1, "tag": "\\udfff"}]}',
    b'{"id": "s0", "version": 0, "spans": [{"start": 0, "end": 1, "tag": "PER\\u0000"}]}',
    b'{"\\ud800": 1}',
    b'{"id": "s0", "version": 0, "spans": [], "x\\u0000": ' + b"[" * 900 + b"]" * 900 + b"}",
]


@pytest.mark.parametrize(
    "path",
    [
        "annotations",
        "skip",
        "discard",
        "adjudications",
        "annotators",
        "undo",
        "generated/x/veto",
        "augmentation",
    ],
)
@pytest.mark.parametrize("raw", RAW, ids=range(len(RAW)))
def test_a_body_that_is_no_good_json_is_a_4xx_with_a_sentence(still: Served, path, raw):
    found = still.client.post(
        f"/api/{path}",
        content=raw,
        headers={**still.ada.headers, "Content-Type": "application/json"},
    )

    assert 400 <= found.status_code < 500, found.text
    assert set(json.loads(found.content)) == {"error"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(codec=None), max_size=5)
    | st.sampled_from(["s1", "PER"]),
    lambda own: (
        st.lists(own, max_size=4)
        | st.dictionaries(
            st.sampled_from(["id", "version", "spans", "sure", "start", "end", "tag"]), own
        )
    ),
    max_leaves=12,
)


@given(
    path=st.sampled_from(
        [
            "annotations",
            "skip",
            "discard",
            "adjudications",
            "annotators",
            "undo",
            "generated/x/veto",
            "augmentation",
        ]
    ),
    body=st.dictionaries(
        st.sampled_from(["id", "version", "spans", "sure", "seconds", "name", "veto", "more"]), JSON
    ),
)
@settings(max_examples=300)
def test_no_body_at_all_ends_in_a_500(still: Served, path, body):
    raw = json.dumps(body).encode("ascii")
    found = still.client.post(
        f"/api/{path}",
        content=raw,
        headers={**still.ada.headers, "Content-Type": "application/json"},
    )

    assert found.status_code < 500, found.text


@given(
    st.sampled_from(
        [
            "sentences/",
            "generated/",
            "export?format=",
            "generated?offset=",
            "generated?limit=",
            "",
            "next?",
        ]
    ),
    st.text(max_size=20),
)
@settings(max_examples=200)
def test_no_address_ends_in_a_500(still: Served, start, rest):
    assert still.ada.get(f"/api/{start}{quote(rest, safe='')}").status_code < 500


@pytest.mark.parametrize(
    "address",
    [
        *(
            "/api/sentences/%00",
            "/api/sentences/%ff%fe",
            "/api/sentences/" + "x" * 5000,
            "/api/sentences/",
            "/api/nothing",
            "/api/next/",
            "/api",
        ),
        *(
            "/nothing.js",
            "/page",
            "/page/",
            "/../pyproject.toml",
            "/%2e%2e/%2e%2e/pyproject.toml",
            "/..%2fapi.py",
        ),
        *("//etc/passwd", "/index.html%00.css"),
    ],
)
def test_what_is_not_there_is_404(still: Served, address):
    found = still.client.get(address, headers=still.ada.headers)

    assert found.status_code == 404
    assert set(found.json()) == {"error"}


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "BREW"])
def test_a_wrong_method_is_405(still: Served, method):
    found = still.client.request(
        method, "/api/next", headers={**still.ada.headers, "Content-Type": "application/json"}
    )

    assert found.status_code == 405
    assert set(found.json()) == {"error"}
    assert still.ada.post("/api/next").status_code == 405


def test_without_a_token_every_route_is_401_the_schema_and_the_page_too(still: Served):
    schema = still.ada.get("/openapi.json").json()
    paths = [path.replace("{id}", "s1") for path in schema["paths"]]

    assert len(paths) >= 15
    for path in (
        *paths,
        "/openapi.json",
        "/",
        "/index.html",
        "/style.css",
        "/docs",
        "/redoc",
        "/nothing",
        "/login",
        "/login?token=wrong",
    ):
        for method in ("GET", "POST"):
            assert still.client.request(method, path).status_code == 401, (method, path)


def test_there_are_no_documentation_pages_which_would_load_scripts_from_elsewhere(still: Served):
    assert still.ada.get("/docs").status_code == still.ada.get("/redoc").status_code == 404


def test_the_page_is_served_with_its_kinds_and_nothing_else_from_the_package(still: Served):
    found = still.ada.get("/")

    assert found.status_code == 200
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.content == still.ada.get("/index.html").content
    assert still.ada.get("/style.css").headers["content-type"].startswith("text/css")
    assert still.ada.get("/annotate.js").headers["content-type"].startswith("text/javascript")
    assert still.ada.get("/api.py").status_code == 404


def test_the_page_holds_no_inline_script_or_style_that_the_policy_would_block(still: Served):
    names = ("answers", "review", "sources", "tags", "generated", "agreement")
    for page in ("/", *(f"/{name}.html" for name in names)):
        text = still.ada.get(page).text
        assert "<style" not in text
        assert " style=" not in text
        assert " onclick" not in text
        assert "<script>" not in text


def test_logging_in_opens_the_page(site: Served):
    found = site.client.get(f"/login?token={site.bo.token}")

    assert found.status_code == 303
    assert site.client.get("/api/project").json()["annotator"]["name"] == "Bo"
    site.client.cookies.clear()


def take_back(person: Person) -> dict[str, object]:
    """Undo the last answer, as the page does."""
    return person.post("/api/undo", person.get("/api/status").json()["answers"]["last"]).json()


def test_skip_gives_another_sentence_and_undo_brings_the_last_one_back(site: Served):
    first = site.ada.get("/api/next").json()["sentence"]
    assert (
        site.ada.post("/api/skip", {"id": first["id"], "version": 0, "seconds": 2}).status_code
        == 201
    )
    assert site.ada.get("/api/next").json()["sentence"]["id"] != first["id"]
    body, _ = answer(site.ada, [mark(0, 1)])
    undone = take_back(site.ada)

    assert undone["id"] == body["id"]
    shown = site.ada.get("/api/next").json()["sentence"]
    assert (shown["id"], shown["version"]) == (body["id"], undone["version"])
    last = take_back(site.ada)
    assert (last["id"], last["last"]) == (first["id"], None)


def test_an_undo_that_names_no_answer_is_refused(site: Served):
    """Sent again after a lost reply it would take back two."""
    answer(site.ada)

    assert site.ada.post("/api/undo", {}).status_code == 422
    assert site.ada.get("/api/status").json()["answers"]["mine"] == 1


def test_an_undo_whose_reply_was_lost_can_be_sent_again(site: Served):
    seqs = [answer(site.ada)[1].json()["seq"] for _ in range(3)]
    assert site.ada.get("/api/status").json()["answers"]["last"] == {"seq": seqs[2]}
    undone = site.ada.post("/api/undo", {"seq": seqs[2]})

    assert site.ada.post("/api/undo", {"seq": seqs[2]}).json() == undone.json()
    assert undone.json()["last"] == {"seq": seqs[1]}
    assert site.ada.get("/api/status").json()["answers"]["mine"] == 2
    assert site.ada.post("/api/undo", {"seq": 10**6}).status_code == 404
    assert site.bo.post("/api/undo", {"seq": seqs[1]}).status_code == 404


def test_who_may_be_asked_for_a_second_answer_cannot_read_the_first_in_an_export(site: Served):
    answer(site.ada, [mark(0, 1)])

    assert site.bo.get("/api/export?format=jsonl-tokens").status_code == 403
    assert site.ada.get("/api/export?format=jsonl-tokens").status_code == 200


def test_nobody_answers_a_sentence_that_is_open_on_another_page(site: Served):
    theirs = site.bo.get("/api/next").json()["sentence"]
    found = site.ada.post("/api/annotations", {"id": theirs["id"], "version": 0, "spans": []})

    assert found.status_code == 409


def test_when_all_is_labeled_next_says_so(tmp_path):
    with project(tmp_path / "few", n=2) as own, serve(own) as site:
        answer(site.ada)
        site.bo.get("/api/next")
        assert "another page" in site.ada.get("/api/next").json()["why"]
        answer(site.bo)
        found = site.ada.get("/api/next").json()

    assert found["sentence"] is None
    assert "every sentence" in found["why"]


def test_suggestions_come_with_the_ranking_but_never_for_audit_sentences(tmp_path):
    with (
        project(tmp_path / "audited", n=40, audit_share=0.2) as own,
        serve(own, limits=PLENTY) as site,
    ):
        suggestion = {"spans": [{**mark(0, 1), "confidence": 0.8}], "confidence": 0.7}
        ids = unlabeled_ids(own.store)
        publish_generation(
            own.store,
            Generation(1, 5, model="models/001"),
            [Rank(id, 1.0, suggestion) for id in ids],
        )
        given_now = []
        for _ in range(20):
            shown = site.ada.get("/api/next").json()
            given_now.append(shown)
            site.ada.post(
                "/api/annotations", {"id": shown["sentence"]["id"], "version": 0, "spans": []}
            )

    active = [one for one in given_now if one["stream"] == "active"]
    audit = [one for one in given_now if one["stream"] == "audit"]
    assert [one["sentence"]["id"] for one in active] == ids[: len(active)]
    assert all((one["suggestion"], one["generation"]) == (suggestion, 1) for one in active)
    assert len(audit) == 4
    assert all(one["suggestion"] is None for one in audit)


def test_status_counts_answers_and_says_when_training_comes_next(site: Served):
    before = site.ada.get("/api/status").json()
    for _ in range(3):
        answer(site.ada)
    answer(site.bo)
    after = site.ada.get("/api/status").json()

    assert before["model"] is None
    assert (before["next_training_in"], after["next_training_in"]) == (10, 6)
    answers = {"sentences": 30, "labeled": 4, "skipped": 0, "audit": 0, "mine": 3, "left": 26}
    assert after["answers"].items() >= answers.items()
    assert (after["audit"], after["forecast"], after["curve"]) == (None, None, [])


def test_status_tells_what_the_trainer_does_and_when_it_is_silent(tmp_path):
    trouble: list[str | None] = [None]
    with project(tmp_path / "watched") as own, serve(own, trainer=lambda: trouble[0]) as site:
        own.store.write_note("trainer", {"phase": "training", "at": time.time()})
        publish_generation(
            own.store,
            Generation(3, 12, model="models/003", notes=Notes(augmentation={"reason": "too few"})),
        )
        model = site.ada.get("/api/status").json()["model"]
        assert (model["generation"], model["trained_on"], model["training"], model["phase"]) == (
            3,
            12,
            True,
            "training",
        )
        assert model["augmentation"] == {"reason": "too few"}
        own.store.write_note("trainer", {"phase": "training", "at": time.time() - 60})
        model = site.ada.get("/api/status").json()["model"]
        assert (model["training"], model["phase"]) == (False, "starting")
        trouble[0] = "it died"
        assert site.ada.get("/api/status").json()["model"]["phase"] == "it died"


def generated(own) -> str:
    made = Sentence(
        "r1/sub(s1,s2)#1", ("Lena", "left", "Bo"), ({"B-PER": 0.6, "B-LOC": 0.4}, "O", None)
    )
    lineage = Lineage("sub", ("s1", "s2"), ((0, 2), (1, 3)), 0, 0.4, 123.0)
    publish_generation(own.store, Generation(1, 5), records=[Augmented(made, lineage).to_record()])
    return digest(made.tokens)


def test_generated_sentences_tell_nobody_what_others_said_of_a_sentence_they_may_be_asked(tmp_path):
    with project(tmp_path / "p", overlap_share=1.0) as own, serve(own, limits=PLENTY) as site:
        generated(site.project)
        (record,) = site.ada.get("/api/generated").json()["generated"]
        parents = [parent["id"] for parent in record["parents"]]
        for id in parents:
            save_answer(site.project.store, id, site.ada.id, "label", [(0, 1, "PER")])
        (seen,) = site.bo.get("/api/generated").json()["generated"]
        assert seen["tokens"] == record["tokens"] and any(record["tags"])
        assert not any(seen["tags"]) and seen["window"] is None
        assert all(parent["window"] is None for parent in seen["parents"])
        assert answered_by_others_only(own.store, site.bo.id, parents) == set(parents)
        assert (
            answered_by_others_only(own.store, site.ada.id, parents) == set()
        )  # who has answered may see


def test_generated_sentences_show_their_lineage_and_can_be_vetoed(site: Served):
    id = generated(site.project)
    (one,) = site.ada.get("/api/generated").json()["generated"]

    assert (one["id"], one["tokens"], one["weight"], one["score"], one["window"]) == (
        id,
        ["Lena", "left", "Bo"],
        0.4,
        123.0,
        [0, 2],
    )
    assert one["tags"] == [{"B-PER": 0.6, "B-LOC": 0.4}, {"O": 1.0}, {}]
    assert [(parent["id"], parent["window"]) for parent in one["parents"]] == [
        ("s1", [0, 2]),
        ("s2", [1, 3]),
    ]
    assert one["parents"][0]["tokens"][:3] == ["left", "Oslo", "for"]
    assert site.bo.post(f"/api/generated/{id}/veto", {"veto": True}).json()["vetoed"] is True
    assert site.ada.get("/api/generated").json()["generated"][0]["vetoed"] is True
    assert vetoed_ids(site.project.store) == {id}
    site.bo.post(f"/api/generated/{id}/veto", {"veto": False})
    assert vetoed_ids(site.project.store) == set()
    assert site.ada.post("/api/generated/nothing/veto", {"veto": True}).status_code == 404


@pytest.mark.parametrize(
    "query",
    ["offset=-1", "offset=x", "limit=0", "limit=100000", f"offset={2**70}", "offset=NaN", "limit="],
)
def test_a_page_of_generated_sentences_has_bounds(still: Served, query):
    assert still.ada.get(f"/api/generated?{query}").status_code == 422


def test_an_admin_alone_chooses_how_sentences_are_generated(site: Served):
    assert site.ada.get("/api/generated").json()["variant"] == "mention"
    assert site.bo.post("/api/augmentation", {"seqmix": True}).status_code == 403
    assert site.ada.post("/api/augmentation", {"seqmix": "yes"}).status_code == 422
    assert site.ada.post("/api/augmentation", {"seqmix": True}).json() == {"variant": "sub"}
    assert site.bo.get("/api/generated").json()["variant"] == "sub"
    assert site.ada.post("/api/augmentation", {"seqmix": False}).json() == {"variant": "mention"}


def test_people_who_differ_are_seen_compared_and_decided_by_an_admin_alone(tmp_path):
    with project(tmp_path / "twice", n=6, overlap_share=1.0) as own, serve(own) as site:
        body, _ = answer(site.ada, [mark(0, 1)])
        shown = site.bo.get("/api/next").json()
        assert (shown["stream"], shown["sentence"]["id"]) == ("overlap", body["id"])
        site.bo.post(
            "/api/annotations", {"id": body["id"], "version": 0, "spans": [mark(0, 1, "LOC")]}
        )
        agreement = site.ada.get("/api/agreement").json()
        (conflict,) = site.ada.get("/api/conflicts").json()
        decision = {"id": body["id"], "version": conflict["version"], "spans": [mark(0, 1)]}
        refused = site.bo.post("/api/adjudications", decision)
        stale = site.ada.post("/api/adjudications", {**decision, "version": 0})
        decided = site.ada.post("/api/adjudications", decision)

        assert (
            agreement["pairs"][0]["a"],
            agreement["pairs"][0]["b"],
            agreement["pairs"][0]["f1"],
        ) == ("Ada", "Bo", 0.0)
        assert agreement["overall"]["n"] == 1
        assert {one["annotator"] for one in conflict["answers"]} == {"Ada", "Bo"}
        assert (refused.status_code, stale.status_code, decided.status_code) == (403, 409, 201)
        assert site.bo.get("/api/conflicts").status_code == 403
        assert site.ada.get("/api/conflicts").json() == []


def test_an_admin_invites_somebody_with_a_link_that_works_and_others_may_not(site: Served):
    invited = site.ada.post("/api/annotators", {"name": "Cy"})
    link = invited.json()["link"]

    assert invited.status_code == 201
    assert link.startswith("http://127.0.0.1:8765/login?token=")
    assert site.client.get(link).status_code == 303
    site.client.cookies.clear()
    assert [one["name"] for one in site.ada.get("/api/annotators").json()] == ["Ada", "Bo", "Cy"]
    assert "token" not in site.ada.get("/api/annotators").text
    answer(site.ada, [], seconds=3.0)
    ada, bo, _ = site.ada.get("/api/annotators").json()
    assert (ada["admin"], ada["labeled"], ada["each"], bo["each"]) == (True, 1, 3.0, None)
    assert site.bo.post("/api/annotators", {"name": "Di"}).status_code == 403
    assert site.bo.get("/api/annotators").status_code == 403
    assert site.ada.post("/api/annotators", {"name": "Cy"}).status_code == 422
    assert site.ada.post("/api/annotators", {"name": "\u202eevil"}).status_code == 422


def test_what_is_exported_is_what_was_labeled(site: Served, tmp_path: Path):
    rng = random.Random(0)
    said = {}
    for _ in range(12):
        start = rng.randrange(3)
        body, saved = answer(
            site.ada, [mark(start, start + 1 + rng.randrange(2), rng.choice(["PER", "LOC"]))]
        )
        assert saved.status_code == 201
        span = body["spans"][0]
        said[body["id"]] = (span["start"], span["end"], span["tag"])
    for name, ending in (("conll", "conll"), ("jsonl-tokens", "jsonl")):
        found = site.ada.get(f"/api/export?format={name}")
        assert found.headers["content-disposition"] == f'attachment; filename="people.{ending}"'
        (tmp_path / f"out.{ending}").write_bytes(found.content)
        read = list(formats.read(tmp_path / f"out.{ending}"))
        tags = sorted(tuple(sentence.tags) for sentence in read)
        expected = []
        for id, (start, end, tag) in said.items():
            row = ["O"] * len(find_sentence(site.project.store, id))
            row[start:end] = [f"B-{tag}", *[f"I-{tag}"] * (end - start - 1)]
            expected.append(tuple(row))
        assert tags == sorted(expected)
    assert site.ada.get("/api/export?format=exe").status_code == 422
    assert site.ada.get("/api/export?format=brat").status_code == 422


def test_an_export_that_the_format_cannot_hold_says_which_can(site: Served):
    answer(site.ada, [mark(0, 1)], sure=[[0, 2]])
    found = site.ada.get("/api/export?format=doccano")

    assert found.status_code == 422
    assert "jsonl-tokens" in found.json()["error"]
    assert site.ada.get("/api/export?format=jsonl-tokens").status_code == 200


HOSTILE = [
    "<script>alert(1)</script>",
    "\u202egnirts",
    "a\x00b",
    "\x1b[31m",
    "\ud800",
    "x" * 1_000_000,
    "\u0000",
    "عربي",
    "日本語",
    "</textarea>",
]


def test_text_of_any_kind_is_shown_as_it_is(tmp_path):
    given_sentences = [Sentence(f"h{i}", (token, "and", str(i))) for i, token in enumerate(HOSTILE)]
    with project(tmp_path / "odd", n=1) as own, serve(own) as site:
        add_sentences(own.store, given_sentences)
        for i, token in enumerate(HOSTILE):
            found = site.ada.get(f"/api/sentences/h{i}")
            assert found.status_code == 200
            assert json.loads(found.content)["sentence"]["tokens"] == [token, "and", str(i)]
            assert found.headers["content-type"] == "application/json"
        for _ in range(len(HOSTILE) + 1):
            assert answer(site.ada, [mark(0, 1)])[1].status_code == 201


def test_the_token_of_this_start_stands_for_its_annotator(tmp_path):
    with project(tmp_path / "own") as own:
        add_annotator(own.store, "me", admin=True)
        me = find_annotator(own.store, "me")
        assert isinstance(me, Annotator)
        with serve(own, owner=("z" * 43, me)) as site:
            found = site.client.get("/api/project", headers={"Authorization": "Bearer " + "z" * 43})

    assert found.json()["annotator"] == {"name": "me", "admin": True}


def test_a_revoked_annotator_is_out_and_a_database_that_is_gone_is_a_503_with_a_sentence(
    site: Served,
):
    revoke_token(site.project.store, site.bo.id)
    assert site.bo.get("/api/next").status_code == 401
    site.ada.get("/api/next")
    site.project.store.close()
    path = site.project.folder / "store.sqlite"
    path.write_bytes(b"no database at all" * 1000)
    for more in ("-wal", "-shm"):
        Path(f"{path}{more}").unlink(missing_ok=True)
    found = site.ada.get("/api/next")

    assert found.status_code == 503
    assert found.json() == {
        "error": "the store does not answer at the moment; what was shown as saved is saved"
    }  # and not where it is


def test_the_schema_describes_bodies_so_that_others_can_write_clients(still: Served):
    schema = still.ada.get("/openapi.json").json()
    body = schema["components"]["schemas"]["Annotation"]

    assert body["additionalProperties"] is False
    assert set(body["required"]) == {"id", "version", "spans"}
    assert "/api/next" in schema["paths"]


def test_sources_suggest_at_once_and_what_was_kept_of_them_is_counted(site: Served):
    terms = {"name": "a/b", "terms": "Oslo\tLOC\nre:[A-Z][a-z]+\tPER"}
    assert site.bo.post("/api/sources", terms).status_code == 403
    assert site.ada.post("/api/sources", terms).status_code == 201
    assert site.ada.post("/api/sources", terms).status_code == 422
    assert "tab" in site.ada.post("/api/sources", {**terms, "terms": "Oslo"}).json()["error"]

    tokens = site.ada.get("/api/next").json()
    (offer,) = tokens["offers"]
    assert (offer["source"], offer["kind"]) == ("a/b", "dictionary")
    assert offer["spans"] == [
        mark(at, at + 1, "LOC" if token == "Oslo" else "PER")
        for at, token in enumerate(tokens["sentence"]["tokens"])
        if token[0].isupper()
    ]
    _, saved = answer(site.ada, offer["spans"][:1], sources=["a/b", "gone"])
    assert saved.status_code == 201
    (event,) = read_events(site.project.store)
    assert event.shown == {"a/b": [len(offer["spans"]), 1, "dictionary"]}
    (row,) = site.bo.get("/api/status").json()["sources"]
    assert (row["name"], row["offered"], row["kept"]) == ("a/b", len(offer["spans"]), 1)

    assert site.ada.post("/api/sources/a%2Fb/state", {"on": False}).json()["on"] is False
    assert site.ada.get("/api/next").json()["offers"] == []
    assert site.bo.get("/api/sources").json()[0]["on"] is False
    assert site.ada.post("/api/sources/a%2Fb/remove").status_code == 200
    assert site.ada.post("/api/sources/a%2Fb/remove").status_code == 404
    assert site.ada.get("/api/sources").json() == []


def test_audit_sentences_are_shown_without_offers(tmp_path):
    with (
        project(tmp_path / "people", audit_share=0.9) as own,
        serve(own, limits=PLENTY) as served,
    ):
        served.ada.post("/api/sources", {"name": "all", "terms": "re:.+\tPER"})
        streams = set()
        for _ in range(20):
            shown = served.ada.get("/api/next").json()
            streams.add(shown["stream"])
            assert bool(shown["offers"]) == (shown["stream"] != "audit")
            answer(served.ada)
        assert streams == {"audit", "active"}
