"""Label Studio's tasks, and JSON arrays that never sit in memory whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options, records
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError


def result(
    start: int, end: int, label: str, text: str | None = None, **more: object
) -> dict[str, object]:
    value = {
        "start": start,
        "end": end,
        "labels": [label],
        **({} if text is None else {"text": text}),
    }
    return {"from_name": "label", "to_name": "text", "type": "labels", "value": value, **more}


def task(text: str, *results: dict[str, object], **more: object) -> dict[str, object]:
    return {
        "id": 3,
        "data": {"text": text},
        "annotations": [{"result": list(results), "was_cancelled": False}],
        **more,
    }


def read(tmp_path: Path, *tasks: object, options: Options | None = None) -> list[Sentence]:
    (tmp_path / "a.json").write_text(json.dumps(tasks, indent=1), encoding="utf-8")
    return list(formats.read(tmp_path / "a.json", options=options))


def test_an_export_is_read(tmp_path: Path) -> None:
    (sentence,) = read(
        tmp_path,
        task(
            "Lena left",
            result(0, 4, "PER", "Lena"),
            {"type": "choices", "value": {"choices": ["x"]}},
        ),
    )

    assert (sentence.id, sentence.tokens, sentence.tags) == ("3", ("Lena", "left"), ("B-PER", "O"))


def test_tasks_may_stand_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        "\ufeff" + "\n".join(json.dumps(task(text)) for text in ("a", "b")), encoding="utf-8"
    )

    assert [s.tokens for s in formats.read(tmp_path / "a.jsonl")] == [("a",), ("b",)]


def test_the_last_annotation_that_was_not_cancelled_counts(tmp_path: Path) -> None:
    first, second = ({"result": [result(0, 1, label)]} for label in "AB")
    cancelled = {"result": [result(0, 1, "C")], "was_cancelled": True}
    data = {"text": "a"}
    both, none = read(
        tmp_path,
        {"data": data, "annotations": [first, second, cancelled]},
        {"data": data, "annotations": [cancelled]},
    )

    assert both.tags == ("B-B",)
    assert not none.labeled


def test_predictions_are_never_labels(tmp_path: Path) -> None:
    (sentence,) = read(
        tmp_path,
        {
            "data": {"text": "a"},
            "annotations": [],
            "predictions": [{"result": [result(0, 1, "A")]}],
        },
    )

    assert not sentence.labeled


def test_the_text_may_have_another_name(tmp_path: Path) -> None:
    one = {"data": {"id": "x", "body": "a", "n": 5}}
    two = {
        "data": {"body": "a", "title": "b"},
        "annotations": [{"result": [result(0, 1, "A", to_name="title")]}],
    }

    assert [(s.id, s.tokens) for s in read(tmp_path, one, two)] == [("x", ("a",)), ("a:9", ("b",))]


def test_offsets_in_utf16_units_are_mended_by_the_text_beside_them(tmp_path: Path) -> None:
    options = Options()
    (sentence,) = read(
        tmp_path, task("💩💩 Lena left", result(5, 9, "PER", "Lena")), options=options
    )

    assert sentence.tags == ("O", "O", "B-PER", "O")
    assert options.counts == {"UTF-16 offsets": 1}


def test_a_text_that_does_not_stand_there_follows_the_option(tmp_path: Path) -> None:
    off = task("Lena left", result(0, 4, "PER", "left"))

    with pytest.raises(TagError, match=r"expected 'left' at 0-4.*found 'Lena'"):
        read(tmp_path, off)
    assert read(tmp_path, off, options=Options(misaligned="expand"))[0].tags == ("B-PER", "O")
    assert read(tmp_path, off, options=Options(misaligned="drop"))[0].tags == ("O", "O")


def test_two_labels_on_one_span_overlap(tmp_path: Path) -> None:
    two = task("Lena", {**result(0, 4, "A"), "value": {"start": 0, "end": 4, "labels": ["A", "B"]}})

    with pytest.raises(TagError, match="two spans overlap"):
        read(tmp_path, two)
    assert read(tmp_path, two, options=Options(misaligned="drop"))[0].tags == ("B-A",)


@pytest.mark.parametrize(
    ("broken", "match"),
    [
        ({"text": "a"}, 'a task with "data"'),
        ({"data": {}}, 'data to have "text", or a single field'),
        ({"data": {"a": "x", "b": "y"}}, 'data to have "text", or a single field'),
        ({"data": {"text": "a"}, "annotations": 5}, '"annotations" to be a list'),
        ({"data": {"text": "a"}, "annotations": [5]}, '"annotations" to be objects'),
        ({"data": {"text": "a"}, "annotations": [{}]}, '"result" to be a list'),
        (
            {"data": {"text": "a"}, "annotations": [{"result": [5]}]},
            '"result" to be a list of objects',
        ),
        (task("a", {"type": "labels"}), 'a "value"'),
        (task("a", {"type": "labels", "value": {"start": 0, "end": 1}}), '"labels" to be a list'),
        (task("a", {"type": "hypertextlabels", "value": {}}), "labels on plain text"),
        (task("a", result(0, 5, "X")), "inside its text"),
        (5, "to be an object"),
    ],
)
def test_a_broken_task_is_named_with_its_line(broken: object, match: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f"[{json.dumps(task('a'))},\n\n{json.dumps(broken)}]")

    with pytest.raises(DataError, match=match) as caught:
        list(formats.read(tmp_path / "a.json"))
    assert caught.value.line == 3


def test_what_is_written_can_be_imported(tmp_path: Path) -> None:
    formats.write(
        [Sentence("x", ("New", "York"), ("B-LOC", "I-LOC")), Sentence("y", ("a",))],
        tmp_path / "a.json",
    )

    assert json.loads((tmp_path / "a.json").read_text()) == [
        {
            "data": {"id": "x", "text": "New York"},
            "annotations": [{"result": [{"id": "span1", **result(0, 8, "LOC", "New York")}]}],
        },
        {"data": {"id": "y", "text": "a"}},
    ]


def test_a_name_that_ends_in_jsonl_is_written_as_lines(tmp_path: Path) -> None:
    formats.write(
        [Sentence("x", ("a",)), Sentence("y", ("a",))], tmp_path / "a.jsonl", "labelstudio"
    )

    assert [
        json.loads(line)["data"]["id"] for line in (tmp_path / "a.jsonl").read_text().splitlines()
    ] == ["x", "y"]


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_an_array_is_the_same_whatever_the_pieces_it_is_read_in(
    chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "CHUNK", chunk)
    tasks = [{"a": "x" * n, "b": [n, None, True, -1.5e3, {"é\\u00e9": '"]'}]} for n in range(30)]
    (tmp_path / "a.json").write_text(" \n" + json.dumps(tasks, indent=2) + "\n\n", encoding="utf-8")

    actual = list(records.json_array(tmp_path / "a.json"))

    assert [record for _, record, _ in actual] == tasks
    assert [line for line, _, _ in actual][:3] == [3, 15, 27]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("{}", r"a JSON array, \[ first"),
        ("[{}", r"up to a closing \]"),
        ("[{},", r"up to a closing \]"),
        ("[{} {]", r"up to a closing \]"),
        ("[{}] x", r"nothing after the closing \]"),
        ("[[]]", "to be an object"),
        ('[{"a": ' + "[" * 100_000, "nested too deep"),
        ('[{"a": "\\ud800"}]', "half of a surrogate pair"),
    ],
)
def test_a_broken_array_says_what_was_expected(content: str, match: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)

    with pytest.raises(DataError, match=match):
        list(records.json_array(tmp_path / "a.json"))


@pytest.mark.parametrize(
    ("content", "line", "shown"),
    [
        ("\n{}", 2, "{}"),
        ("\n\n \n[\n5]", 5, "5]"),
        ("[{},\n{}\n]\n" + "x" * 100, 3, "x" * 80),
        ("\n[{},\n\n[]" + " " * 100 + "]", 4, "[]" + " " * 78),
    ],
)
def test_a_broken_array_is_named_with_its_line_and_the_start_of_what_stands_there(
    content: str, line: int, shown: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(content)

    with pytest.raises(DataError) as caught:
        list(records.json_array(tmp_path / "a.json"))
    assert (caught.value.line, caught.value.text) == (line, shown)


def test_a_broken_array_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "CHUNK", 100)
    (tmp_path / "a.json").write_text("[{broken}, " + '{"a": 1}, ' * 1000 + "]")
    sizes: list[int] = []
    monkeypatch.setattr(
        records,
        "_broken",
        lambda error, end, real=records._broken: sizes.append(end) or real(error, end),
    )

    with pytest.raises(DataError):
        list(records.json_array(tmp_path / "a.json"))
    assert max(sizes) <= 100
