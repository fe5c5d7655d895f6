"""Argilla's records: nested as in its JSON export, and flat as by `to_list(flatten=True)`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

PER = {"start": 0, "end": 4, "label": "PER"}
USER = "3f1c0f4e-9f0f-4f8e-8f51-0d6f5a1f6d11"


def record(text: str = "Lena left", *values: object, **more: object) -> dict[str, object]:
    """A record as `dataset.records.to_json` of argilla 2.8 writes it."""
    responses = (
        {"span_label": [{"value": value, "user_id": USER} for value in values]} if values else {}
    )
    nested = {
        "fields": {"text": text},
        "metadata": {},
        "suggestions": {},
        "responses": responses,
        "vectors": {},
    }
    return {"id": "r1", **nested, "status": "completed", "_server_id": USER, **more}


def read(tmp_path: Path, *records: object, options: Options | None = None) -> list[Sentence]:
    (tmp_path / "a.json").write_text(json.dumps(records), encoding="utf-8")
    return list(formats.read(tmp_path / "a.json", options=options))


def test_an_export_is_read(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, record("Lena left", [PER]))

    assert (sentence.id, sentence.tokens, sentence.tags) == ("r1", ("Lena", "left"), ("B-PER", "O"))


def test_what_else_a_span_says_of_itself_is_passed_over(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, record("Lena left", [{**PER, "score": 0.9, "text": "Lena"}]))

    assert sentence.tags == ("B-PER", "O")


def test_an_empty_response_is_a_label_and_none_is_not(tmp_path: Path) -> None:
    actual = read(tmp_path, record("Lena left", []), record("Lena left"), record("Lena left", None))

    assert [s.tags for s in actual] == [("O", "O"), (None, None), (None, None)]


def test_the_last_response_that_was_not_taken_back_counts(tmp_path: Path) -> None:
    answers = [
        {"value": [PER], "user_id": USER, "status": "submitted"},
        {"value": [{**PER, "label": "ORG"}], "user_id": USER, "status": "submitted"},
        {"value": [{**PER, "label": "LOC"}], "user_id": USER, "status": "discarded"},
        {"value": [], "user_id": USER, "status": "draft"},
    ]
    both, none = read(
        tmp_path, record(responses={"q": answers}), record(responses={"q": answers[2:]})
    )

    assert both.tags == ("B-ORG", "O")
    assert not none.labeled


def test_suggestions_are_no_labels_unless_a_person_made_them(tmp_path: Path) -> None:
    machine = {"value": [PER], "score": 0.9, "agent": "gliner"}
    actual = read(
        tmp_path,
        record(suggestions={"q": machine}),
        record(suggestions={"q": {**machine, "type": "human"}}),
    )

    assert [s.labeled for s in actual] == [False, True]
    assert read(tmp_path, record("Lena left", [], suggestions={"q": {**machine, "type": "human"}}))[
        0
    ].tags == ("O", "O")


def test_answers_to_other_questions_are_passed_over(tmp_path: Path) -> None:
    others = {
        "good": [{"value": "yes"}],
        "topics": [{"value": ["a", "b"]}],
        "rank": [{"value": [{"rank": 1, "value": "a"}]}],
    }
    asked, only = read(
        tmp_path, record(responses={"q": [{"value": [PER]}], **others}), record(responses=others)
    )

    assert asked.tags == ("B-PER", "O")
    assert not only.labeled


def test_a_flattened_record_tells_the_status_of_each_response(tmp_path: Path) -> None:
    flat = {
        "id": "r1",
        "status": "completed",
        "text": "Lena left",
        "q.responses": [[PER], []],
        "q.responses.users": [USER, USER],
    }
    actual = read(
        tmp_path,
        {**flat, "q.responses.status": ["submitted", "discarded"]},
        flat,
        {**flat, "q.responses": None},
    )

    assert [s.tags for s in actual] == [("B-PER", "O"), ("O", "O"), (None, None)]


def test_the_text_may_have_another_name(tmp_path: Path) -> None:
    assert read(tmp_path, record("", [PER], fields={"body": "Lena left", "n": 5}))[0].tokens == (
        "Lena",
        "left",
    )


def test_offsets_as_the_page_counts_them_are_mended(tmp_path: Path) -> None:
    options = Options()
    page, script = ([{"start": start, "end": start + 4, "label": "PER"}] for start in (5, 3))
    actual = read(
        tmp_path, record("💩💩 Lena left", page), record("💩💩 Lena left", script), options=options
    )

    assert [s.tags for s in actual] == [("O", "O", "B-PER", "O")] * 2
    assert options.counts == {"UTF-16 offsets": 1}


def test_offsets_that_fit_neither_way_follow_the_option(tmp_path: Path) -> None:
    cut = record("💩 Lena", [{"start": 3, "end": 5, "label": "PER"}])

    with pytest.raises(DataError, match="must start and end where tokens do"):
        read(tmp_path, cut)
    assert read(tmp_path, cut, options=Options(misaligned="expand"))[0].tags == ("O", "B-PER")


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        ({"responses": {}}, 'a record with "fields"'),
        ({"fields": 5, "text": "a", "responses": {}}, 'a record with "fields"'),
        (
            {"fields": {"a": "x", "b": "y"}, "responses": {}},
            '"fields" to have "text", or a single field',
        ),
        (record(responses=[]), '"responses" to be an object'),
        (record(responses={"q": 5}), '"q" to be a list'),
        (record(responses={"q": [5]}), "a response to be an object"),
        (record("a", [{"start": 0, "end": 1}]), '"start", "end" and "label"'),
        (record("a", [{"start": 0, "end": "1", "label": "X"}]), "whole numbers"),
        (record("a", [{"start": 0, "end": 9, "label": "X"}]), "inside its text"),
        (record(suggestions=[]), '"suggestions" to be an object'),
        (record(suggestions={"q": [PER]}), '"suggestions" to be an object'),
        ({"text": "a", "q.responses": 5}, '"q.responses" to be a list'),
        (
            {"text": "a", "q.responses": [[]], "q.responses.status": []},
            '"q.responses.status" to be a list',
        ),
        (
            {"text": "a", "q.responses": [[]], "q.responses.status": ["submitted", "draft"]},
            '"q.responses.status" to be a list',
        ),
    ],
)
def test_a_broken_record_says_what_was_expected(broken: object, match: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(broken))

    with pytest.raises(DataError, match=match) as caught:
        list(formats.read(tmp_path / "a.jsonl", "argilla"))
    assert caught.value.line == 1


def test_what_is_written_are_records_that_argilla_imports(tmp_path: Path) -> None:
    sentences = [Sentence("x", ("U.S.",), ("B-LOC",)), Sentence("y", ("a",))]
    formats.write(sentences, tmp_path / "a.json", "argilla")
    formats.write(sentences, tmp_path / "a.jsonl", "argilla")

    empty = {"metadata": {}, "suggestions": {}, "responses": {}, "vectors": {}}
    human = {
        "value": [{"start": 0, "end": 4, "label": "LOC"}],
        "score": None,
        "agent": "seqmix",
        "type": "human",
    }
    assert json.loads((tmp_path / "a.json").read_text()) == [
        {
            "id": "x",
            "fields": {"text": "U.S."},
            **empty,
            "suggestions": {"span_label": human},
            "tokens": [[0, 4]],
        },
        {"id": "y", "fields": {"text": "a"}, **empty},
    ]
    assert [s.tags for s in formats.read(tmp_path / "a.jsonl")] == [("B-LOC",), (None,)]


def test_the_real_argilla_reads_what_is_written_and_its_export_is_read(tmp_path: Path) -> None:
    """Runs where argilla is installed; it is no dependency."""
    rg = pytest.importorskip("argilla", reason="argilla is not installed")
    json_io = pytest.importorskip("argilla.records._io._json").JsonIO
    formats.write(
        [Sentence("x", ("Lena", "left"), ("B-PER", "O")), Sentence("y", ("a",))],
        tmp_path / "a.json",
        "argilla",
    )

    taken = json_io._records_from_json(tmp_path / "a.json")
    assert [r.id for r in taken] == ["x", "y"]
    assert taken[0].suggestions["span_label"].value == [PER]
    answer = rg.Record(
        id="z", fields={"text": "Lena left"}, responses=[rg.Response("q", [PER], user_id=USER)]
    )
    json_io.to_json([answer], tmp_path / "b.json")
    assert [s.tags for s in formats.read(tmp_path / "b.json")] == [("B-PER", "O")]
