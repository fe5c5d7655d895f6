"""A round as a value: the bytes of its line stay what they are."""

from __future__ import annotations

import json

import pytest

from seqmix.loop.round_record import RoundRecord, sum_known
from tests.support.run_folders import run_directory

LINE = (
    '{"format_version": 1, "round": 1, "seed": 0, "arm": "nte+sub", "config": "abc", "labeled": 30,'
    ' "tokens": 300, "spans": 30, "generated": 4, "steps": 10, "chosen": ["a"], "scores": [0.5],'
    ' "augmentation": {"asked": 4, "counts": {"scored": 8, "out of range": 2}}, "agreement": null,'
    ' "guard": null, "dev": {"f1": 0.5}, "test": {"f1": 0.25},'
    ' "forecast": {"gain": 0.01, "low": 0.0, "high": 0.02}, "stop": null}'
)


def test_a_line_read_and_written_has_the_same_bytes() -> None:
    assert json.dumps(RoundRecord.from_json(json.loads(LINE)).to_json()) == LINE


def test_pieces_and_parts_are_written_only_where_there_are_any() -> None:
    line = json.loads(LINE) | {"pieces": 700, "parts": [[2, 5]]}
    record = RoundRecord.from_json(line)

    assert (record.pieces, record.parts) == (700, [(2, 5)])
    assert record.to_json() | {"parts": [[2, 5]]} == line
    for key, value in {"pieces": "many", "parts": [[5, 2]]}.items():
        with pytest.raises(ValueError, match=key):
            RoundRecord.from_json(json.loads(LINE) | {key: value})


def test_a_sum_with_an_unknown_part_is_unknown() -> None:
    assert (sum_known(1, 2), sum_known(1, None)) == (3, None)


def test_a_record_says_what_a_round_cost_and_gave() -> None:
    record = RoundRecord.from_json(json.loads(LINE))

    assert (record.number, record.labeled, record.names["arm"]) == (1, 30, "nte+sub")
    assert record.figures == "dev F1 50.00, test F1 25.00" and record.f1("test") == 0.25
    assert record.acceptance == 0.75 and record.forecast is not None
    assert record.forecast.high == 0.02


def test_a_split_without_a_score_is_no_result(tmp_path) -> None:
    lines = (run_directory(tmp_path / "run", test=False) / "rounds.jsonl").read_text().splitlines()

    assert list(RoundRecord.from_json(json.loads(lines[0])).results) == ["dev"]
