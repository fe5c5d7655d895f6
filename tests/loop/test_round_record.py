"""A round as a value: the bytes of its line stay what they are."""

from __future__ import annotations

import json

from seqmix.loop.round_record import RoundRecord
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


def test_a_record_says_what_a_round_cost_and_gave() -> None:
    record = RoundRecord.from_json(json.loads(LINE))

    assert (record.number, record.labeled, record.names["arm"]) == (1, 30, "nte+sub")
    assert record.figures == "dev F1 50.00, test F1 25.00" and record.f1("test") == 0.25
    assert record.acceptance == 0.75 and record.forecast is not None
    assert record.forecast.high == 0.02


def test_a_split_without_a_score_is_no_result(tmp_path) -> None:
    lines = (run_directory(tmp_path / "run", test=False) / "rounds.jsonl").read_text().splitlines()

    assert list(RoundRecord.from_json(json.loads(lines[0])).results) == ["dev"]
