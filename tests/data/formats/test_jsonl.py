"""JSON lines of tokens, and of spans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options, records
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError


def read(
    tmp_path: Path, format: str, *records: object, options: Options | None = None
) -> list[Sentence]:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records), encoding="utf-8")
    return list(formats.read(path, format, options))


def written(tmp_path: Path, format: str, *sentences: Sentence) -> list[dict[str, object]]:
    formats.write(sentences, tmp_path / "out.jsonl", format)
    return [
        json.loads(line)
        for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n")
        if line
    ]


@pytest.mark.parametrize("key", ["ner_tags", "tags", "pos_tags"])
def test_tokens_with_tags_under_any_of_their_names(key: str, tmp_path: Path) -> None:
    (sentence,) = read(
        tmp_path,
        "jsonl-tokens",
        {"tokens": ["Lena", "left"], key: ["B-PER", {"O": 0.5, "B-X": 0.5}]},
    )

    assert sentence == Sentence("a:1", ("Lena", "left"), ("B-PER", {"O": 0.5, "B-X": 0.5}))


@pytest.mark.parametrize("alone", [{"text": "Lena left"}, {"offsets": [[0, 4], [5, 9]]}])
def test_a_text_without_offsets_and_offsets_without_a_text_are_passed_over(
    alone: dict[str, object], tmp_path: Path
) -> None:
    assert read(tmp_path, "jsonl-tokens", {"tokens": ["Lena", "left"], **alone}) == [
        Sentence("a:1", ("Lena", "left"))
    ]


def test_raw_text_is_a_sentence_for_each_line_that_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Lena left.\n \n\nShe slept.\n")

    actual = list(formats.read(tmp_path / "a.txt", "text"))

    assert [(s.id, s.text, s.labeled) for s in actual] == [
        ("a:1", "Lena left.", False),
        ("a:4", "She slept.", False),
    ]
    assert [s.tokens for s in actual] == [("Lena", "left", "."), ("She", "slept", ".")]


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ([], "one JSON object per line"),
        ({"tokens": "ab"}, '"tokens" to be a list of strings'),
        ({"tokens": ["a"], "ner_tags": "O"}, '"ner_tags" to be a list'),
        ({"tokens": ["a"], "ner_tags": [3]}, "integer tags need their names"),
        ({"tokens": ["a"], "ner_tags": [""]}, "empty string"),
        ({"tokens": ["a"], "ner_tags": [{"O": "x"}]}, "a string, null or an object of weights"),
        ({"tokens": ["a"], "ner_tags": [{"O": 0.5}]}, "sum to 1"),
        ({"tokens": ["a"], "ner_tags": [{"O": 10**400}]}, "sum to 1"),
        ({"tokens": ["a"], "ner_tags": [{"O": float("nan")}]}, "sum to 1"),
        ({"tokens": ["a"], "ner_tags": ["O", "O"]}, "1 tokens and 2 tag rows"),
        ({"tokens": ["a"], "text": 5, "offsets": [[0, 1]]}, '"text" to be a string'),
        ({"tokens": ["a"], "text": "a", "offsets": [[0, 2]]}, "inside the text of 1"),
        ({"tokens": ["a"], "text": "a", "offsets": []}, "one offset per token"),
    ],
)
def test_a_broken_record_of_tokens_says_what_was_expected(
    record: object, match: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path, "jsonl-tokens", {"tokens": ["a"]}, record)
    assert caught.value.line == 2
    assert caught.value.text


def test_an_empty_token_becomes_visible_and_is_counted(tmp_path: Path) -> None:
    options = Options()

    assert read(tmp_path, "jsonl-tokens", {"tokens": ["a", ""]}, options=options)[0].tokens == (
        "a",
        "\ufffd",
    )
    assert options.counts == {"empty token": 1}


def test_half_a_character_is_refused_but_an_escaped_pair_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ["\\ud83d\\ude00"]}\n{"tokens": ["\\ud83d"]}\n')
    actual = formats.read(tmp_path / "a.jsonl", "jsonl-tokens")

    assert next(actual).tokens == ("😀",)
    with pytest.raises(DataError, match=r"a\.jsonl:2: expected whole characters"):
        next(actual)


def test_json_nested_too_deep_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"tokens": ' + "[" * 100_000)

    with pytest.raises(DataError, match="nested too deep"):
        list(formats.read(tmp_path / "a.jsonl", "jsonl-tokens"))


@pytest.mark.parametrize("depth", [101, 900, *range(940, 1000, 3), 5000])
@pytest.mark.parametrize("array", [False, True])
def test_json_that_can_just_be_read_is_refused_before_it_is_written_or_shown(
    tmp_path: Path, depth: int, array: bool
) -> None:
    record = r'{"tokens": ["\ud83d\ude00"], "more": ' + "[" * depth + "]" * depth + "}"
    (tmp_path / "a.json").write_text(f"[{record}]" if array else record)

    with pytest.raises(DataError, match="nested too deep"):
        list(records.json_records(tmp_path / "a.json"))


def test_json_of_many_levels_and_many_brackets_is_read(tmp_path: Path) -> None:
    wide = json.dumps({"tokens": ["a"], "more": [[]] * 300})
    (tmp_path / "a.jsonl").write_text(
        wide + '\n{"tokens": ["b"], "more": ' + "[" * 98 + "]" * 98 + "}\n"
    )

    assert [
        sentence.tokens[0] for sentence in formats.read(tmp_path / "a.jsonl", "jsonl-tokens")
    ] == ["a", "b"]


def test_bioes_around_soft_rows_becomes_bio_by_its_prefixes(tmp_path: Path) -> None:
    (sentence,) = read(
        tmp_path,
        "jsonl-tokens",
        {"tokens": ["a", "b", "c"], "tags": ["S-X", {"E-X": 0.5, "I-X": 0.25, "O": 0.25}, None]},
    )

    assert sentence.tags == ("B-X", {"I-X": 0.75, "O": 0.25}, None)


def test_spans_fall_on_the_tokens_given_or_on_our_own(tmp_path: Path) -> None:
    spans = [{"start": 0, "end": 4, "label": "LOC"}]
    record = {"text": "U.S. won", "spans": spans}
    own, given = read(tmp_path, "jsonl-spans", record, {**record, "tokens": [[0, 4], [5, 8]]})

    assert (own.tokens, own.tags) == (
        ("U", ".", "S", ".", "won"),
        ("B-LOC", "I-LOC", "I-LOC", "I-LOC", "O"),
    )
    assert (given.tokens, given.tags) == (("U.S.", "won"), ("B-LOC", "O"))


def test_empty_spans_are_a_label_and_absent_ones_are_not(tmp_path: Path) -> None:
    empty, absent, null = read(
        tmp_path,
        "jsonl-spans",
        {"text": "a b", "spans": []},
        {"text": "a b"},
        {"text": "a b", "spans": None},
    )

    assert empty.tags == ("O", "O")
    assert not absent.labeled
    assert not null.labeled


def test_spans_are_written_plainly_and_other_rows_as_tags(tmp_path: Path) -> None:
    hard = Sentence.from_text("Lena left", "h").with_tags(["B-PER", "O"])
    soft = Sentence.from_text("Lena left", "s").with_tags([{"B-PER": 0.5, "O": 0.5}, None])
    pos = Sentence.from_text("Lena left", "p").with_tags(["NOUN", "VERB"])
    tokens = [[0, 4], [5, 9]]

    assert written(tmp_path, "jsonl-spans", hard, soft, pos, hard.unlabeled()) == [
        {
            "id": "h",
            "text": "Lena left",
            "tokens": tokens,
            "spans": [{"start": 0, "end": 4, "label": "PER"}],
        },
        {
            "id": "s",
            "text": "Lena left",
            "tokens": tokens,
            "tags": [{"B-PER": 0.5, "O": 0.5}, None],
        },
        {"id": "p", "text": "Lena left", "tokens": tokens, "tags": ["NOUN", "VERB"]},
        {"id": "h", "text": "Lena left", "tokens": tokens},
    ]
    assert list(formats.read(tmp_path / "out.jsonl")) == [hard, soft, pos, hard.unlabeled()]


@pytest.mark.parametrize(
    ("record", "match"),
    [
        ({"spans": []}, '"text" to be a string'),
        ({"text": "ab", "spans": {}}, '"spans" to be a list'),
        ({"text": "ab", "spans": ["x"]}, "a span to be an object"),
        ({"text": "ab", "spans": [{"start": "0", "end": 1, "label": "X"}]}, "whole numbers"),
        ({"text": "ab", "spans": [{"start": 0, "end": 2}]}, "label of a span to be a string"),
        ({"text": "ab", "spans": [{"start": 0, "end": 2, "label": ""}]}, "not empty"),
        (
            {"text": "ab", "spans": [{"start": 0, "end": 1, "label": "X"}]},
            "must start and end where tokens do",
        ),
        ({"text": "ab", "spans": [{"start": 0, "end": 3, "label": "X"}]}, "inside its text of 2"),
        ({"text": "ab", "tokens": [[0, 3]], "spans": []}, "inside the text of 2"),
        ({"text": "ab", "tags": ["O", "O"]}, "1 tokens and 2 tag rows"),
        ({"text": "ab", "label": [[0, 2, "X"]]}, "the format doccano reads records"),
    ],
)
def test_a_broken_record_of_spans_says_what_was_expected(
    record: object, match: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=match) as caught:
        read(tmp_path, "jsonl-spans", {"text": "a"}, record)
    assert caught.value.line == 2
    assert caught.value.path == tmp_path / "a.jsonl"


def test_misaligned_spans_follow_the_option(tmp_path: Path) -> None:
    record = {"text": "New York", "spans": [{"start": 0, "end": 6, "label": "LOC"}]}
    options = Options(misaligned="expand")

    assert read(tmp_path, "jsonl-spans", record, options=options)[0].tags == ("B-LOC", "I-LOC")
    assert options.counts == {"misaligned": 1}
    assert read(tmp_path, "jsonl-spans", record, options=Options(misaligned="drop"))[0].tags == (
        "O",
        "O",
    )
    with pytest.raises(TagError):
        read(tmp_path, "jsonl-spans", record)
