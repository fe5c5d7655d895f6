"""doccano's JSON lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError


def read(tmp_path: Path, *records: object) -> list[Sentence]:
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(record) for record in records))
    return list(formats.read(tmp_path / "a.jsonl", "doccano"))


@pytest.mark.parametrize(
    "labels",
    [
        {"label": [[0, 4, "PER"]]},
        {"labels": [[0, 4, "PER"]]},
        {
            "entities": [{"id": 9, "label": "PER", "start_offset": 0, "end_offset": 4}],
            "relations": [],
        },
    ],
)
def test_labels_under_any_of_their_names(labels: dict[str, object], tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, {"id": 7, "text": "Lena left", **labels})

    assert (sentence.id, sentence.tokens, sentence.tags) == ("7", ("Lena", "left"), ("B-PER", "O"))


def test_an_empty_list_is_a_label_and_none_is_not(tmp_path: Path) -> None:
    actual = read(tmp_path, {"text": "a", "label": []}, {"text": "a"}, {"text": "a", "label": None})

    assert [s.labeled for s in actual] == [True, False, False]


def test_the_cut_is_written_only_where_ours_would_differ(tmp_path: Path) -> None:
    formats.write(
        [Sentence("x", ("U.S.",), ("B-LOC",)), Sentence("y", ("Oslo",), ("B-LOC",))],
        tmp_path / "b.jsonl",
        "doccano",
    )

    assert [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()] == [
        {"id": "x", "text": "U.S.", "label": [[0, 4, "LOC"]], "tokens": [[0, 4]]},
        {"id": "y", "text": "Oslo", "label": [[0, 4, "LOC"]]},
    ]


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"label": []}, '"text" to be a string'),
        ({"text": "a", "label": "PER"}, '"label" to be a list'),
        ({"text": "a", "label": [[0, 1]]}, r"a label to be a list \[start, end"),
        ({"text": "a", "label": [{"start": 0, "end": 1, "labels": ["X"]}]}, "a label to be a list"),
        ({"text": "a", "label": [[0, 1, 5]]}, "label of a span to be a string"),
        ({"text": "a", "label": [[0, None, "X"]]}, "whole numbers"),
        ({"text": "a", "entities": [[0, 1, "X"]]}, "an entity to be an object"),
    ],
)
def test_a_broken_record_says_what_was_expected(record: object, match: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path, record)
    assert caught.value.line == 1
