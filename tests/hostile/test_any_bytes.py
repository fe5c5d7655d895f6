"""A reader reads whatever stands in a file, or says in one line what is wrong with it.

It is one contract over every format.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.target import attack
from fuzz.targets import TARGETS
from seqmix.data.formats import FORMATS

SLOW = ("hf",)  # a folder of three files, opened by another package: fewer examples
READERS = [*FORMATS, "guess", "table"]
many = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
few = settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])

any_text = st.text(alphabet=st.characters(codec=None), max_size=60)  # halves of surrogate pairs too
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda own: st.lists(own, max_size=4) | st.dictionaries(any_text, own, max_size=4),
    max_leaves=12,
)
KEYS = (
    "id", "text", "tokens", "ner_tags", "tags", "spans", "label", "labels", "entities",
    "start", "end", "answer", "data", "annotations", "result", "value", "type", "fields",
    "responses", "suggestions", "offsets", "from_name", "to_name",
    "token_start", "token_end", "was_cancelled",
)  # fmt: skip
records = st.recursive(
    json_values,
    lambda own: st.lists(own, max_size=3) | st.dictionaries(st.sampled_from(KEYS), own, max_size=5),
    max_leaves=25,
)


@pytest.mark.parametrize("name", READERS)
def test_any_bytes_are_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    @(few if name in SLOW else many)
    @given(st.binary(max_size=300))
    def holds(data: bytes) -> None:
        attack(TARGETS[name], data, tmp_path)

    holds()


@pytest.mark.parametrize("name", READERS)
def test_any_text_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    @(few if name in SLOW else many)
    @given(
        st.integers(0, 255),
        st.lists(st.lists(any_text, max_size=4), max_size=8),
        st.sampled_from("\t \n,"),
    )
    def holds(first: int, rows: list[list[str]], between: str) -> None:
        text = "\n".join(between.join(row) for row in rows)
        attack(TARGETS[name], bytes([first]) + text.encode("utf-8", "surrogatepass"), tmp_path)

    holds()


@pytest.mark.parametrize(
    "name", ["jsonl-tokens", "jsonl-spans", "doccano", "prodigy", "argilla", "labelstudio", "guess"]
)
def test_any_json_is_read_or_refused_in_one_line(name: str, tmp_path: Path) -> None:
    @many
    @given(st.integers(0, 255), st.lists(records, max_size=3), st.booleans(), st.booleans())
    def holds(first: int, values: list[Any], array: bool, escaped: bool) -> None:
        spelled = [json.dumps(value, ensure_ascii=escaped) for value in values]
        text = f"[{', '.join(spelled)}]" if array else "\n".join(spelled)
        attack(TARGETS[name], bytes([first]) + text.encode("utf-8", "surrogatepass"), tmp_path)

    holds()


@pytest.mark.parametrize("name", ["config", "set", "sweep", "seeds", "project", "results", "run"])
def test_any_settings_and_run_files_are_read_or_refused_in_one_line(
    name: str, tmp_path: Path
) -> None:
    @many
    @given(
        st.lists(
            any_text | st.sampled_from(["seed", "=", "[", "]", ".", '"', "1", "query", "size"]),
            max_size=12,
        )
    )
    def holds(words: list[str]) -> None:
        attack(TARGETS[name], "".join(words).encode("utf-8", "surrogatepass"), tmp_path)

    holds()
