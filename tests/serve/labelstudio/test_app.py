"""The Label Studio backend as Label Studio 1.23.2 calls it.

The bodies here are what that server sent, cut to what matters.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seqmix.data.tagset import TagSet
from seqmix.errors import RunError
from seqmix.serve.labelstudio.app import Password, create_app
from seqmix.serve.project import open_project
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.records import Mark
from seqmix.testing import WordTagger
from tests.support.labelstudio_fakes import (
    CONFIG,
    PROJECT,
    UID,
    annotation,
    backend,
    created,
    event,
    region,
    task,
)
from tests.support.waiting import until

TAGS = ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")
TEXTS = {
    1: "Lena left Oslo.",
    2: "🚀🇳🇴 Lena left Oslo.",
    3: "nothing here",
    4: "Bo and Ada met in Rome",
    5: "Lena saw Rome",
}


def client(
    folder: Path, password: Password | None = None, body: int = 1 << 20, **options: Any
) -> TestClient:
    return TestClient(
        create_app(backend(folder, **options), password, body), base_url="http://127.0.0.1:9090"
    )


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[TestClient]:
    with client(tmp_path) as studio:
        assert (
            studio.post(
                "/setup",
                json={"project": UID, "schema": CONFIG, "access_token": "secret-of-studio"},
            ).status_code
            == 200
        )
        yield studio


def predict(studio: TestClient, *ids: int, **more: Any) -> list[Any]:
    body = {
        "tasks": [task(id, TEXTS[id]) for id in ids],
        "project": UID,
        "label_config": CONFIG,
        "params": {},
        **more,
    }
    answer = studio.post("/predict", json=body)
    assert answer.status_code == 200, answer.text
    results: list[Any] = answer.json()["results"]
    return results


def hook(studio: TestClient, body: dict[str, Any]) -> None:
    answer = studio.post("/webhook", json=body)
    assert answer.status_code == 200, answer.text


def label(studio: TestClient, *ids: int) -> None:
    """Label Lena and Oslo in these tasks, one annotation each."""
    for id in ids:
        found = [
            region(TEXTS[id], word, kind)
            for word, kind in (("Lena", "PER"), ("Oslo", "LOC"))
            if word in TEXTS[id]
        ]
        hook(studio, created(100 + id, id, TEXTS[id], *found))


def trained(studio: TestClient, on: int) -> dict[str, Any]:
    return dict(
        until(
            lambda: (
                (found := studio.get("/health").json())["trained_on"] == on
                and found["phase"] == "waiting"
                and found
            )
        )
    )


def test_it_says_that_it_is_up(studio: TestClient) -> None:
    for path in ("/", "/health"):
        found = studio.get(path).json()
        assert (found["status"], found["model_class"], found["error"]) == ("UP", "seqmix", None)
    assert studio.get("/versions").json() == {"versions": [found["model_version"]]}


def test_connecting_tells_the_version_and_keeps_no_secret(
    studio: TestClient, tmp_path: Path
) -> None:
    hook(studio, created(1, 1, TEXTS[1]))

    assert (
        studio.post("/setup", json={"project": UID, "schema": CONFIG})
        .json()["model_version"]
        .startswith("seqmix-")
    )
    kept = "\n".join(sqlite3.connect(tmp_path / "store.sqlite").iterdump())
    assert "secret-of-studio" not in kept
    assert PROJECT["token"] not in kept


def test_before_there_are_labels_tasks_are_ranked_and_nothing_is_suggested(
    studio: TestClient,
) -> None:
    first = predict(studio, 1, 2, 3)
    assert first == [[], [], []] or all(
        one["result"] == [] for one in first
    )  # nothing is ranked yet, or it was quick

    later = until(lambda: (found := predict(studio, 1, 2, 3)) and all(found) and found)
    assert [one["result"] for one in later] == [[], [], []]
    assert sorted(one["score"] for one in later) == pytest.approx([1 / 6, 3 / 6, 5 / 6])


def test_annotations_train_a_tagger_that_suggests_in_the_right_characters(
    studio: TestClient,
) -> None:
    predict(studio, *TEXTS)
    before = studio.get("/health").json()["model_version"]
    label(studio, 1, 3, 4)
    version = trained(studio, 3)["model_version"]

    assert version > before
    (one,) = predict(studio, 2)
    text = TEXTS[2]
    assert one["model_version"] == version
    assert [(r["value"]["text"], r["value"]["labels"], r["type"]) for r in one["result"]] == [
        ("Lena", ["PER"], "labels"),
        ("Oslo", ["LOC"], "labels"),
    ]
    for found in one["result"]:
        assert text[found["value"]["start"] : found["value"]["end"]] == found["value"]["text"]
        assert (found["from_name"], found["to_name"]) == ("label", "text")
        assert 0 < found["score"] <= 1
    assert [r["value"]["start"] for r in one["result"]] == [
        4,
        14,
    ]  # code points: a rocket is one, a flag two
    assert len({r["id"] for r in one["result"]}) == 2


def test_sentences_without_entity_are_ranked_and_trained_on_like_any_other(
    studio: TestClient,
) -> None:
    predict(studio, *TEXTS)
    label(studio, 3)
    hook(studio, event("START_TRAINING"))

    assert trained(studio, 1)["labeled"] == 1
    (nothing,) = predict(studio, 3)
    assert nothing["result"] == []
    assert 0 < nothing["score"] < 1


@pytest.mark.parametrize("policy", ["nte", "random"])
def test_ascending_scores_are_the_policys_order(policy: str, tmp_path: Path) -> None:
    words = dict(enumerate("abcdefghi", 1))
    texts = {id: f"w{words[10 - id]}" for id in range(1, 10)}  # less and less certain
    taught = " ".join(f"w{words[n]}" for n in words for _ in range(n))
    with client(tmp_path, policy=policy) as studio:
        tasks = [task(id, text) for id, text in texts.items()]
        ask = {"project": UID, "label_config": CONFIG, "tasks": tasks}
        studio.post("/predict", json=ask)
        hook(studio, created(1, 50, taught))
        hook(studio, event("START_TRAINING"))
        trained(studio, 1)
        scores = {
            t["id"]: one["score"]
            for t, one in zip(
                tasks, studio.post("/predict", json=ask).json()["results"], strict=True
            )
        }
        newcomer = studio.post(
            "/predict",
            json={**ask, "tasks": [task(99, "wd wd wi")]},
        )

    order = sorted(scores, key=scores.__getitem__)
    assert sorted(scores.values()) == pytest.approx([(place + 0.5) / 9 for place in range(9)])
    assert (order == [9, 8, 7, 6, 5, 4, 3, 2, 1]) is (policy == "nte")
    if policy == "nte":  # a task that came later stands among those the tagger is as unsure of
        assert scores[7] < newcomer.json()["results"][0]["score"] < scores[6]


def test_a_text_that_stands_there_twice_is_wanted_once(tmp_path: Path) -> None:
    with client(tmp_path) as studio:
        tasks = [
            task(1, "x y z"),
            task(2, "x y z"),
            task(3, "Lena"),
            task(4, ""),
            task(5, "Lena left"),
        ]
        ask = {"project": UID, "label_config": CONFIG, "tasks": tasks}
        studio.post("/predict", json=ask)
        hook(studio, created(1, 50, "Lena left", region("Lena", "Lena", "PER")))
        hook(studio, event("START_TRAINING"))
        trained(studio, 1)
        one, two, known, empty, labeled = (
            r["score"] for r in studio.post("/predict", json=ask).json()["results"]
        )

    assert (
        min(one, two) < known < min(max(one, two), labeled)
    )  # one of the twins, then what is almost certain, then what adds nothing
    assert max(one, two, labeled) < empty


def test_too_few_annotations_train_nothing_until_the_button_is_pressed(studio: TestClient) -> None:
    predict(studio, *TEXTS)
    version = until(
        lambda: "0001" in (found := studio.get("/health").json()["model_version"]) and found
    )
    label(studio, 1, 2)
    hook(
        studio,
        created(101, 1, TEXTS[1], region(TEXTS[1], "Lena", "PER"), region(TEXTS[1], "Oslo", "LOC")),
    )  # sent again: nothing new
    assert studio.get("/health").json()["model_version"] == version

    hook(studio, event("START_TRAINING"))
    assert trained(studio, 2)["model_version"] > version


def test_skips_updates_and_deletions_are_followed(studio: TestClient) -> None:
    predict(studio, *TEXTS)
    label(studio, 1, 5)
    hook(studio, created(7, 4, TEXTS[4], was_cancelled=True))  # skipped
    assert studio.get("/health").json()["labeled"] == 2

    changed = created(
        101,
        1,
        TEXTS[1],
        region(TEXTS[1], "Oslo", "PER"),
        action="ANNOTATION_UPDATED",
        updated_at="2026-11-15T12:00:00Z",
    )
    hook(studio, changed)
    stale = created(
        101,
        1,
        TEXTS[1],
        region(TEXTS[1], "left", "PER"),
        action="ANNOTATION_UPDATED",
        updated_at="2026-11-15T11:00:00Z",
    )
    hook(studio, stale)
    hook(studio, event("START_TRAINING"))
    trained(studio, 2)
    assert [
        (r["value"]["text"], r["value"]["labels"]) for r in predict(studio, 2)[0]["result"]
    ] == [("Oslo", ["PER"])]

    hook(studio, event("ANNOTATIONS_DELETED", annotations=[{"id": 105}, {"id": 999}]))
    hook(studio, event("TASKS_DELETED", tasks=[{"id": 1}]))
    label(studio, 1, 5)  # what was sent before arrives late
    assert studio.get("/health").json()["labeled"] == 0
    assert studio.get("/health").json()["tasks"] == len(TEXTS) - 1


def test_of_several_annotations_the_ground_truth_counts_else_the_last(tmp_path: Path) -> None:
    text = TEXTS[1]
    answers = [
        annotation(1, 1, region(text, "Lena", "PER")),
        annotation(2, 1, region(text, "Lena", "LOC")),
        annotation(3, 1, was_cancelled=True),
    ]
    for truth, expected in ((None, "LOC"), (1, "PER")):
        marked = [{**one, "ground_truth": one["id"] == truth} for one in answers]
        own = tmp_path / expected
        with client(
            own
        ) as studio:  # annotations made before the backend was connected come along with the tasks
            studio.post(
                "/predict",
                json={
                    "project": UID,
                    "label_config": CONFIG,
                    "tasks": [task(1, text, *marked), task(5, TEXTS[5])],
                },
            )
            hook(studio, event("START_TRAINING"))
            trained(studio, 1)
            assert [r["value"]["labels"] for r in predict(studio, 5)[0]["result"]] == [[expected]]


def test_many_annotations_at_once_are_taken(studio: TestClient) -> None:
    ids = [1, 4, 5]
    hook(studio, event("TASKS_CREATED", tasks=[task(id, text) for id, text in TEXTS.items()]))
    annotations = [
        annotation(10 + id, id, region(TEXTS[id], TEXTS[id].split()[0], "PER")) for id in ids
    ]
    hook(
        studio,
        event(
            "ANNOTATIONS_CREATED", annotation=annotations, task=[task(id, TEXTS[id]) for id in ids]
        ),
    )

    assert trained(studio, 3)["tasks"] == len(TEXTS)


def test_the_older_way_to_ask_for_training_works_too(studio: TestClient) -> None:
    tasks = [task(1, TEXTS[1], annotation(1, 1, region(TEXTS[1], "Lena", "PER")))]
    assert (
        studio.post(
            "/train", json={"annotations": tasks, "project": UID, "label_config": CONFIG}
        ).status_code
        == 200
    )
    trained(studio, 1)


def test_offsets_that_count_utf16_units_are_mended(studio: TestClient) -> None:
    text = "🚀🚀 Lena left"
    units = {
        **region(text, "Lena", "PER"),
        "value": {"start": 5, "end": 9, "text": "Lena", "labels": ["PER"]},
    }
    hook(studio, created(1, 1, text, units))
    hook(studio, event("START_TRAINING"))
    trained(studio, 1)

    assert [r["value"]["text"] for r in predict(studio, 5)[0]["result"]] == ["Lena"]


def test_half_a_word_grows_to_a_whole_one_and_what_does_not_fit_is_left_out(
    studio: TestClient,
) -> None:
    hook(studio, created(1, 1, TEXTS[1], region(TEXTS[1], "Len", "PER")))
    hook(
        studio,
        created(
            2,
            4,
            TEXTS[4],
            {
                **region(TEXTS[4], "Bo", "PER"),
                "value": {"start": 900, "end": 905, "labels": ["PER"]},
            },
        ),
    )
    hook(studio, event("START_TRAINING"))

    assert trained(studio, 1)["left_out"] == 1
    assert [r["value"]["text"] for r in predict(studio, 5)[0]["result"]] == ["Lena"]


def test_results_of_other_control_tags_are_not_ours(studio: TestClient) -> None:
    other = {
        "from_name": "mood",
        "to_name": "text",
        "type": "choices",
        "value": {"choices": ["fine"]},
    }
    sound = {
        "from_name": "sound",
        "to_name": "audio",
        "type": "labels",
        "value": {"start": 0.5, "end": 1.5, "labels": ["PER"]},
    }
    hook(studio, created(1, 1, TEXTS[1], region(TEXTS[1], "Lena", "PER"), other, sound))
    hook(studio, event("START_TRAINING"))

    trained(studio, 1)


def test_events_that_do_not_concern_us_are_taken(studio: TestClient) -> None:
    hook(studio, event("LABEL_LINK_CREATED", label_link=[{}]))
    hook(studio, {"action": "WHATEVER"})


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with client(tmp_path) as studio:
        predict(studio, *TEXTS)
        label(studio, 1, 3, 4)
        version = trained(studio, 3)["model_version"]
        label(studio, 5)
    with client(tmp_path) as studio:
        found = studio.get("/health").json()
        assert (found["model_version"], found["labeled"], found["trained_on"]) == (version, 4, 3)
        assert [r["value"]["text"] for r in predict(studio, 2)[0]["result"]] == ["Lena", "Oslo"]
        hook(studio, event("START_TRAINING"))
        assert trained(studio, 4)["model_version"] > version
        label(studio, 2)
        hook(studio, event("START_TRAINING"))
        trained(studio, 5)
    models = sorted(path.name for path in (tmp_path / "models").iterdir() if path.name.isdecimal())
    assert models == ["002", "003"]  # older ones are gone


def test_an_annotation_is_in_the_project_when_label_studio_hears_that_it_was_taken(
    studio: TestClient, tmp_path: Path
) -> None:
    label(studio, 1)
    with open_project(tmp_path) as project:  # as another process reads it
        (answer,) = current_answers(project.store)
    marks = (Mark(0, 1, "PER"), Mark(2, 3, "LOC"))
    assert (answer.annotator, answer.spans) == ("label-studio", marks)


def test_a_tagger_to_begin_with_suggests_at_once_and_is_trained_further(tmp_path: Path) -> None:
    start = WordTagger(TagSet(TAGS), {"Rome": {"B-LOC": 5.0}})
    with client(tmp_path, given=start) as studio:
        assert [r["value"]["text"] for r in predict(studio, 5)[0]["result"]] == ["Rome"]
        label(studio, 1)
        hook(studio, event("START_TRAINING"))
        trained(studio, 1)
        assert [r["value"]["text"] for r in predict(studio, 5)[0]["result"]] == ["Lena", "Rome"]


def test_a_round_that_fails_is_told_and_tried_again_when_there_is_more(tmp_path: Path) -> None:
    tried: list[int] = []

    def fails(*_: Any) -> WordTagger:
        tried.append(1)
        raise RunError("the disk is full")

    with client(tmp_path, fit=fails, min_new=1) as studio:
        studio.post("/setup", json={"project": UID, "schema": CONFIG})
        label(studio, 1)
        failed = "the last training failed: the disk is full"
        until(lambda: studio.get("/health").json()["error"] == failed)
        before = len(tried)
        assert [one["result"] for one in predict(studio, 4) if one] in ([], [[]])
        label(studio, 3)
        until(lambda: len(tried) > before)
        assert studio.get("/health").json()["labeled"] == 2


def test_a_new_labeling_configuration_is_followed(studio: TestClient) -> None:
    predict(studio, *TEXTS)
    label(studio, 1, 3, 4)
    trained(studio, 3)
    other = CONFIG.replace('name="label"', 'name="ner"').replace(
        '<Label value="LOC" background="red"/>', ""
    )
    body = {"tasks": [task(2, TEXTS[2])], "project": UID, "label_config": other}

    found = studio.post("/predict", json=body).json()["results"][0]["result"]
    assert [(r["from_name"], r["value"]["labels"]) for r in found] == [("ner", ["PER"])]


def test_another_project_is_refused_and_changes_nothing(studio: TestClient) -> None:
    other = CONFIG.replace("PER", "ORG")
    for path, body in (
        ("/setup", {"project": "8.1794743715", "schema": other}),
        ("/setup", {"project": "7.1", "schema": other}),
        ("/predict", {"project": "8.1", "label_config": other, "tasks": [task(1, "x")]}),
        (
            "/webhook",
            {"action": "TASKS_CREATED", "project": {**PROJECT, "id": 8}, "tasks": [task(1, "x")]},
        ),
    ):
        answer = studio.post(path, json=body)
        assert answer.status_code == 409
        assert "serves the Label Studio project 7" in answer.json()["error"]
    assert studio.get("/health").json()["tasks"] == 0


def test_a_password_is_asked_for_everywhere(tmp_path: Path) -> None:
    def basic(pair: str) -> dict[str, str]:
        return {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}

    with client(tmp_path, Password("seqmix", "tröt")) as studio:
        for headers in (
            {},
            basic("seqmix:x"),
            basic("seqmix"),
            {"Authorization": "Basic ???"},
            {"Authorization": "Bearer x"},
            {"Authorization": "x"},
        ):
            assert studio.get("/health", headers=headers).status_code == 401
            assert studio.post("/predict", headers=headers, json={}).status_code == 401
            assert (
                studio.post("/setup", headers=headers, json={})
                .headers["WWW-Authenticate"]
                .startswith("Basic")
            )
        assert studio.get("/health", headers=basic("seqmix:tröt")).status_code == 200
        assert studio.get(
            "/health", headers={"Authorization": "Bearer tröt".encode()}
        ).status_code in (200, 401)
    with client(tmp_path / "b", Password("seqmix", "ascii")) as studio:
        assert studio.get("/health", headers={"Authorization": "Bearer ascii"}).status_code == 200


def test_browsers_strangers_and_large_bodies_are_turned_away(studio: TestClient) -> None:
    body = json.dumps({"action": "x"})
    assert (
        studio.post("/webhook", content=body, headers={"Content-Type": "text/plain"}).status_code
        == 415
    )
    assert (
        studio.post("/webhook", json={}, headers={"Origin": "http://evil.example"}).status_code
        == 403
    )
    assert studio.post("/webhook", json={"action": "x" * (2 << 20)}).status_code == 413
    assert studio.get("/nowhere").status_code == 404
    assert studio.get("/predict").status_code == 405
    assert all(
        studio.get(path).json()["error"]
        for path in ("/nowhere", "/predict", "/docs", "/openapi.json")
    )


BROKEN = [
    ("/setup", {}, "strings"),
    ("/setup", {"project": UID, "schema": "<View/>"}, "<Labels"),
    ("/setup", {"project": UID, "schema": "<View>"}, "XML"),
    ("/setup", {"project": UID, "schema": "\ud800"}, "surrogate"),
    ("/setup", {"project": "x", "schema": CONFIG}, "as in 1.17"),
    ("/predict", {"tasks": 5}, '"tasks" to be a list'),
    ("/predict", {"tasks": [5]}, "a task to be an object"),
    ("/predict", {"tasks": [{"id": True, "data": {}}]}, "a task to be an object"),
    ("/predict", {"tasks": [{"id": 2**80, "data": {}}]}, "a task to be an object"),
    ("/predict", {"tasks": [{"id": 1}]}, 'a task with "data"'),
    ("/webhook", {}, '"action"'),
    ("/webhook", {"action": "START_TRAINING", "project": {"id": 7}}, '"created_at"'),
    (
        "/webhook",
        {"action": "START_TRAINING", "project": {"id": 7, "created_at": "9" * 30}},
        '"created_at"',
    ),
    ("/webhook", event("ANNOTATION_CREATED"), '"task" to be a list'),
    (
        "/webhook",
        event(
            "ANNOTATION_CREATED", task=task(1, "x"), annotation={"id": 1, "task": 2, "result": []}
        ),
        "come with its task",
    ),
    (
        "/webhook",
        event(
            "ANNOTATION_CREATED", task=task(1, "x"), annotation={"id": 1, "task": {}, "result": []}
        ),
        "come with its task",
    ),
    (
        "/webhook",
        event("ANNOTATION_CREATED", task=task(1, "x"), annotation={"task": 1, "result": []}),
        "an annotation to be an object",
    ),
    (
        "/webhook",
        event(
            "ANNOTATION_CREATED", task=task(1, "x"), annotation={"id": 1, "task": 1, "result": 5}
        ),
        '"result" to be a list',
    ),
    (
        "/webhook",
        event(
            "ANNOTATION_CREATED", task=task(1, "x"), annotation={"id": 1, "task": 1, "result": [5]}
        ),
        "list of objects",
    ),
    (
        "/webhook",
        created(
            1, 1, "x", {"type": "labels", "value": {"start": "0", "end": 1, "labels": ["PER"]}}
        ),
        "whole numbers",
    ),
    (
        "/webhook",
        created(1, 1, "x", {"type": "labels", "value": {"start": 0, "end": 1, "labels": [None]}}),
        "label of a span",
    ),
    ("/webhook", created(1, 1, "x", updated_at=5), '"updated_at"'),
    ("/webhook", event("TASKS_DELETED", tasks=[{"id": "1"}]), "what was deleted"),
    ("/train", {"annotations": 5}, '"annotations" to be a list'),
]


@pytest.mark.parametrize(("path", "body", "match"), BROKEN)
def test_a_malformed_body_gets_a_sentence(
    path: str, body: dict[str, Any], match: str, studio: TestClient
) -> None:
    answer = studio.post(
        path, content=json.dumps(body), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 422
    assert match in answer.json()["error"]
    assert "\n" not in answer.json()["error"]
    assert studio.get("/health").json()["labeled"] == 0


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"\xff", 400),
        (b"[" * 100_000, 400),
        (b"[]", 422),
        (b"9" * 5000, 400),
    ],
)
def test_a_body_that_is_no_json_object_gets_a_sentence(
    content: bytes, status: int, studio: TestClient
) -> None:
    for path in ("/setup", "/predict", "/webhook", "/train"):
        answer = studio.post(path, content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, bool(answer.json()["error"])) == (status, True)


@pytest.mark.parametrize("depth", [120, 900, *range(960, 1000, 2)])
def test_a_body_that_is_nested_deep_is_refused_whatever_is_deep_in_it(
    depth: int, studio: TestClient
) -> None:
    deep, objects = "[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth
    answer = (
        '"task":{"id":1,"data":{"text":"a"}},"annotation":{"id":1,"task":1,"result":[{"a":DEEP}]}'
    )
    bodies = [
        ("/webhook", '{"action":"TASKS_CREATED","tasks":[{"id":1,"data":{"text":"a","x":DEEP}}]}'),
        ("/webhook", '{"action":"ANNOTATION_CREATED",' + answer + "}"),
        ("/predict", '{"tasks":DEEP}'),
        ("/predict", '{"tasks":[{"id":1,"data":OBJECTS}]}'),
    ]
    for path, text in bodies:
        body = text.replace("DEEP", deep).replace("OBJECTS", objects)
        assert (
            studio.post(
                path, content=body, headers={"Content-Type": "application/json"}
            ).status_code
            == 400
        )


def test_a_task_nested_deep_that_an_earlier_version_stored_ends_no_training(
    studio: TestClient, tmp_path: Path
) -> None:
    predict(studio, 1, 3)
    label(studio, 1)
    with closing(sqlite3.connect(tmp_path / "store.sqlite")) as db, db:
        for id, depth in ((900, 986), (901, 5000)):
            data = '{"text": "Lena left Oslo.", "x": ' + "[" * depth + "]" * depth + "}"
            row = ("task", id, "new", data)
            db.execute("INSERT INTO external (kind, id, state, value) VALUES (?, ?, ?, ?)", row)

    other = CONFIG.replace("LOC", "ORG")  # everything is read again
    studio.post("/setup", json={"project": UID, "schema": other})
    hook(studio, event("START_TRAINING"))

    assert trained(studio, 1)["error"] is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([
        "id", "data", "text", "task", "tasks", "result", "value", "start", "end", "labels",
        "type", "annotation", "annotations", "tokens",
    ]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["/setup", "/predict", "/webhook", "/train"]),
    body=st.dictionaries(
        st.sampled_from(["tasks", "annotation", "annotations", "task", "params"]),
        json_values,
        max_size=3,
    ),
    action=st.sampled_from(
        [
            "ANNOTATION_CREATED",
            "ANNOTATIONS_CREATED",
            "ANNOTATIONS_DELETED",
            "TASKS_CREATED",
            "TASKS_DELETED",
            "x",
        ]
    ),
)
def test_whatever_comes_is_never_a_500(
    path: str, body: dict[str, Any], action: str, studio: TestClient
) -> None:
    own = (
        {"action": action, "project": PROJECT}
        if path == "/webhook"
        else {"project": UID, "label_config": CONFIG, "schema": CONFIG}
    )
    answer = studio.post(
        path, content=json.dumps({**own, **body}), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code in (200, 422)


def test_strange_texts_are_text(studio: TestClient) -> None:
    texts = [
        "<script>alert(1)</script>",
        "\u202eLena\u202c",
        "a\x00b",
        "\ud83d Lena",
        "x" * 100_000,
        "",
        " \n ",
        "👩‍🚀🇳🇴é",
    ]
    body = {
        "project": UID,
        "label_config": CONFIG,
        "tasks": [task(id, text) for id, text in enumerate(texts, 1)],
    }
    for _ in range(2):
        answer = studio.post(
            "/predict", content=json.dumps(body), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 200
        hook(studio, created(100, 1, texts[0], region(texts[0], "script", "PER")))
        hook(studio, event("START_TRAINING"))
        trained(studio, 1)
    assert all(0 < one["score"] <= 1 for one in answer.json()["results"])


def test_a_task_whose_text_is_elsewhere_gets_no_prediction(studio: TestClient) -> None:
    predict(studio, *TEXTS)
    until(lambda: studio.get("/health").json()["model_version"].endswith("0001"))
    body = {
        "project": UID,
        "label_config": CONFIG,
        "tasks": [{"id": 50, "data": {"body": "Lena"}}, task(1, TEXTS[1])],
    }

    missing, there = studio.post("/predict", json=body).json()["results"]
    assert missing == []
    assert there["score"] > 0


def test_the_cut_of_a_task_that_brings_its_tokens_is_kept(studio: TestClient) -> None:
    text = "Lena-Marie left"
    hook(
        studio,
        event(
            "TASKS_CREATED",
            tasks=[task(1, text, tokens=[[0, 10], [11, 15]]), task(2, text, tokens=["Lena"])],
        ),
    )
    hook(
        studio,
        {
            **created(1, 1, text, region(text, "Lena", "PER")),
            "task": task(1, text, tokens=[[0, 10], [11, 15]]),
        },
    )
    hook(studio, event("START_TRAINING"))
    trained(studio, 1)

    body = {
        "project": UID,
        "label_config": CONFIG,
        "tasks": [task(9, text, tokens=[[0, 10], [11, 15]])],
    }
    assert (
        studio.post("/predict", json=body).json()["results"][0]["result"][0]["value"]["text"]
        == "Lena-Marie"
    )


def test_without_a_password_only_names_of_this_machine_are_answered_to(
    studio: TestClient, tmp_path: Path
) -> None:
    for host in ("evil.example", "localhost.evil.example", ""):
        assert studio.get("/health", headers={"Host": host}).status_code == 421
        assert studio.post("/webhook", json={}, headers={"Host": host}).status_code == 421
    assert studio.get("/health", headers={"Host": "localhost:9090"}).status_code == 200
    with client(
        tmp_path / "guarded", Password("seqmix", "secret")
    ) as guarded:  # a password is enough: it may stand behind any name
        assert (
            guarded.get(
                "/health", headers={"Host": "labels.example", "Authorization": "Bearer secret"}
            ).status_code
            == 200
        )
