"""Memory does not grow with the file."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.sentence import Sentence

MEGABYTE = 1 << 20
# few and long tokens: memory is measured, and every allocation then takes its time
LONG = "long" * 100
CONLL = f"{LONG}\tNN\tB-PER\n{LONG}\tVB\tO\n" * 20 + "\n"
RECORDS = {
    "jsonl-tokens": {"tokens": [LONG] * 40, "ner_tags": ["O"] * 40},
    "jsonl-spans": {
        "text": LONG * 40,
        "tokens": [[0, 400]],
        "spans": [{"start": 0, "end": 400, "label": "X"}],
    },
    "labelstudio": {
        "data": {"text": LONG * 40, "tokens": [[0, 400]]},
        "annotations": [{"result": []}],
    },
}


@contextmanager
def peak_below(limit: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def fill(path: Path, piece: str, size: int) -> int:
    """The piece again and again up to a size; how often."""
    times = size // len(piece) + 1
    with path.open("w", encoding="utf-8") as file:
        for _ in range(times):
            file.write(piece)
    return times


def test_a_large_conll_file_streams(tmp_path: Path) -> None:
    times = fill(tmp_path / "a.conll", CONLL, 60 * MEGABYTE)

    with peak_below(5 * MEGABYTE):
        assert sum(1 for _ in formats.read(tmp_path / "a.conll")) == times


@pytest.mark.parametrize("name", ["jsonl-tokens", "jsonl-spans"])
def test_a_large_jsonl_file_streams(name: str, tmp_path: Path) -> None:
    times = fill(tmp_path / "a.jsonl", json.dumps(RECORDS[name]) + "\n", 60 * MEGABYTE)

    with peak_below(5 * MEGABYTE):
        assert sum(1 for _ in formats.read(tmp_path / "a.jsonl")) == times


def test_a_large_array_on_one_line_streams(tmp_path: Path) -> None:
    piece = json.dumps(RECORDS["labelstudio"]) + ","
    times = fill(tmp_path / "a.json", piece, 60 * MEGABYTE)
    (tmp_path / "b.json").write_bytes(b"[" + (tmp_path / "a.json").read_bytes().rstrip(b",") + b"]")

    # a megabyte of text that is not all ASCII is four in memory, and is copied when refilled
    with peak_below(10 * MEGABYTE):
        assert sum(1 for _ in formats.read(tmp_path / "b.json")) == times


@pytest.mark.parametrize(
    "name",
    ["conll", "conllu", "jsonl-tokens", "jsonl-spans", "doccano", "prodigy", "labelstudio", "brat"],
)
def test_writing_streams(name: str, tmp_path: Path) -> None:
    many = (
        Sentence(f"d{i // 10}:{i}", tuple(f"{LONG}{i}" for _ in range(50)), ("B-X",) * 50)
        for i in range(100)
    )

    with peak_below(MEGABYTE):  # of about two
        formats.write(many, tmp_path / "out", name)
    assert sum(1 for _ in formats.read(tmp_path / "out", name)) == 100
