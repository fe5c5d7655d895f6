"""Prodigy's JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

TEXT = "New  York fell"
TOKENS = [
    {"text": "New", "start": 0, "end": 3, "id": 0, "ws": True},
    {"text": " ", "start": 4, "end": 5, "id": 1, "ws": False},
    {"text": "York", "start": 5, "end": 9, "id": 2, "ws": True},
    {"text": "fell", "start": 10, "end": 14, "id": 3, "ws": False},
]


def read(tmp_path: Path, *records: object, options: Options | None = None) -> list[Sentence]:
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(record) for record in records))
    return list(formats.read(tmp_path / "a.jsonl", "prodigy", options))


def test_an_accepted_record_is_read_without_its_white_space_tokens(tmp_path: Path) -> None:
    span = {"start": 0, "end": 9, "token_start": 0, "token_end": 2, "label": "LOC"}
    (sentence,) = read(
        tmp_path,
        {"text": TEXT, "tokens": TOKENS, "spans": [span], "answer": "accept", "_input_hash": 1},
    )

    assert sentence == Sentence(
        "a:1", ("New", "York", "fell"), ("B-LOC", "I-LOC", "O"), TEXT, ((0, 3), (5, 9), (10, 14))
    )


def test_a_span_may_be_given_by_its_tokens_the_last_one_included(tmp_path: Path) -> None:
    (sentence,) = read(
        tmp_path,
        {
            "text": TEXT,
            "tokens": TOKENS,
            "spans": [{"token_start": 2, "token_end": 3, "label": "X"}],
        },
    )

    assert sentence.tags == ("O", "B-X", "I-X")


def test_answers_other_than_accept_are_passed_over_and_counted(tmp_path: Path) -> None:
    options = Options()
    records = [
        {"text": "a b", "spans": [], "answer": answer} for answer in ("reject", "accept", "ignore")
    ]

    assert [s.id for s in read(tmp_path, *records, options=options)] == ["a:2"]
    assert options.counts == {"not accepted": 2}


def test_a_task_without_spans_and_answer_is_unlabeled(tmp_path: Path) -> None:
    task, accepted = read(tmp_path, {"text": "a b"}, {"text": "a b", "answer": "accept"})

    assert not task.labeled
    assert accepted.tags == ("O", "O")


def test_the_last_token_of_a_written_span_is_inclusive(tmp_path: Path) -> None:
    formats.write(
        [Sentence("x", ("New", "York", "fell"), ("B-LOC", "I-LOC", "O"))],
        tmp_path / "b.jsonl",
        "prodigy",
    )
    record = json.loads((tmp_path / "b.jsonl").read_text())

    assert record["spans"] == [
        {"start": 0, "end": 8, "token_start": 0, "token_end": 1, "label": "LOC"}
    ]
    assert record["answer"] == "accept"
    assert record["tokens"][1] == {"text": "York", "start": 4, "end": 8, "id": 1, "ws": True}


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"answer": "accept"}, '"text" to be a string'),
        ({"text": "a", "tokens": ["a"]}, '"tokens" to be objects'),
        ({"text": "a", "tokens": [{"start": 0}]}, "pairs"),
        ({"text": "a", "spans": [5]}, "a span to be an object"),
        ({"text": "a", "spans": [{"start": 0, "end": 1}]}, "label of a span"),
        ({"text": "a", "spans": [{"label": "X"}]}, "whole numbers"),
        (
            {
                "text": TEXT,
                "tokens": TOKENS,
                "spans": [{"token_start": 3, "token_end": 4, "label": "X"}],
            },
            "in the 4 tokens",
        ),
    ],
)
def test_a_broken_record_says_what_was_expected(record: object, match: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path, record)
    assert caught.value.line == 1


def test_a_token_of_white_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only white space"):
        formats.write([Sentence("x", ("a", "\u00a0"), ("O", "O"))], tmp_path / "b.jsonl", "prodigy")
