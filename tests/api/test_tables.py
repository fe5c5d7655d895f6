"""Sentences from datasets and pandas tables, and back without a loss."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqmix
from seqmix.data.sentence import Sentence

datasets = pytest.importorskip("datasets", reason="needs the extra hf")
pandas = pytest.importorskip("pandas", reason="needs the extra hf")

FEW = [
    Sentence("1", ("Lena", "left", "NA"), ("B-PER", "O", "B-LOC")),
    Sentence("2", ("Bo", "7"), (None, "O")),
    Sentence("3", ("nobody", "looked")),
    Sentence.from_text("Ada  left Rome.", "4", entities=[(10, 14, "LOC")]),
    Sentence.from_text("Rome", "5"),
]
SOFT = Sentence("6", ("Oslo", "x"), ({"B-LOC": 0.75, "B-ORG": 0.25}, None))

words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4)
tags = st.sampled_from(["O", "B-PER", "B-LOC", None])
soft = st.just({"B-PER": 0.25, "O": 0.75})


def sentences(rows):
    pairs = st.lists(st.tuples(words.filter(str.strip), rows), min_size=1, max_size=4)
    return st.lists(pairs, max_size=4).map(
        lambda drawn: [Sentence(str(n), *zip(*pairs, strict=True)) for n, pairs in enumerate(drawn)]
    )


# There and back


@given(sentences(tags))
@settings(max_examples=15)
def test_a_dataset_gives_back_what_it_was_made_of(drawn):
    assert list(seqmix.read(seqmix.to_dataset(drawn))) == drawn


@pytest.mark.parametrize("rows", ["sentences", "tokens"])
@given(sentences(tags | soft))
@settings(max_examples=25)
def test_a_table_gives_back_what_it_was_made_of(rows, drawn):
    assert list(seqmix.read(seqmix.to_pandas(drawn, rows=rows))) == drawn


def test_text_offsets_and_partial_labels_survive():
    assert list(seqmix.read(seqmix.to_dataset(FEW))) == FEW
    for rows in ("sentences", "tokens"):
        assert list(seqmix.read(seqmix.to_pandas([*FEW, SOFT], rows=rows))) == [*FEW, SOFT]
    gazette = seqmix.sample("gazette:dev")
    assert list(seqmix.read(seqmix.to_dataset(gazette).to_pandas().drop(columns="ner_tags")))
    assert list(seqmix.read(seqmix.to_pandas(gazette, rows="tokens"))) == gazette


def test_what_they_look_like():
    dataset, frame = seqmix.to_dataset(FEW), seqmix.to_pandas(FEW, rows="tokens")

    assert dataset.column_names == ["id", "tokens", "ner_tags", "text", "offsets"]
    assert dataset.features["ner_tags"].feature.names == ["O", "B-LOC", "B-PER"]
    assert dataset["ner_tags"][0] == [2, 0, 1]
    assert list(frame.columns) == ["sentence_id", "token", "tag", "start", "end", "text"]
    assert frame.iloc[0].tolist()[:3] == ["1", "Lena", "B-PER"]
    assert seqmix.to_pandas(FEW).tokens[1] == ["Bo", "7"]


def test_several_by_name_are_read_by_name():
    splits = datasets.DatasetDict(
        {"train": seqmix.to_dataset(FEW[:2]), "test": seqmix.to_dataset(FEW[2:])}
    )

    assert seqmix.read(splits) == {"train": FEW[:2], "test": FEW[2:]}


def test_a_stream_of_rows_is_read_too():
    assert list(seqmix.read(seqmix.to_dataset(FEW).to_iterable_dataset())) == FEW


# Tables of others


def test_tags_that_are_strings_and_other_schemes_are_read():
    data = {"tokens": [["Lena", "Okafor"], ["x"]], "ner_tags": [["B-PER", "E-PER"], ["O"]]}

    for table in (datasets.Dataset.from_dict(data), pandas.DataFrame(data)):
        assert [s.tags for s in seqmix.read(table)] == [("B-PER", "I-PER"), ("O",)]


def test_a_file_with_a_row_per_token_is_read_as_pandas_reads_it():
    text = "Sentence #,Word,POS,Tag\nSentence: 1,NA,NNP,B-LOC\n,left,VB,O\nSentence: 2,7,CD,\n"
    frame = pandas.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)

    assert list(seqmix.read(frame)) == [
        Sentence("Sentence: 1", ("NA", "left"), ("B-LOC", "O")),
        Sentence("Sentence: 2", ("7",)),
    ]
    with pytest.raises(seqmix.SeqMixError, match="keep_default_na=False"):
        list(seqmix.read(pandas.read_csv(io.StringIO(text))))


def test_a_column_of_texts_is_cut():
    frame = pandas.DataFrame({"text": ["Lena left.", None, "Bo stayed."], "id": [1, 2, 3]})

    assert list(seqmix.read(frame)) == [
        Sentence.from_text("Lena left.", "1"),
        Sentence.from_text("Bo stayed.", "3"),
    ]


# What does not fit


def test_what_does_not_fit_is_refused_with_the_names_of_the_columns():
    frame, dataset = pandas.DataFrame, datasets.Dataset.from_dict
    tokens, ids = {"tokens": [["a"]]}, {"sentence_id": [1, 2, 1], "token": ["a", "b", "c"]}
    calls = {
        "the columns are 'wort', 'label'; frame.rename": frame({"wort": ["a"], "label": ["O"]}),
        "expected a column \"tokens\"; found 'wort'": dataset({"wort": ["a"]}),
        "rows of a sentence must be together; found '1'": frame(ids),
        "row 1: expected a tag to be a string": frame({**tokens, "ner_tags": [[3]]}),
        "the dataset's ClassLabel names": dataset({**tokens, "ner_tags": [[3]]}),
        "must hold names of tags such as B-PER; got 1": frame({**ids, "tag": [1, 1, 1]}),
        "one tag row per token; got 1 tokens and 2": frame({**tokens, "ner_tags": [["O", "O"]]}),
        "row 1 must say which sentence": frame({"sentence_id": [None], "token": ["a"]}),
        "a dataset or a pandas table, as a path; got 7": 7,
        "got a list: Sentence.from_text(text)": ["Lena left."],
    }  # fmt: skip
    for message, source in calls.items():
        with pytest.raises(seqmix.SeqMixError) as raised:
            list(seqmix.read(source))
        assert message in str(raised.value), str(raised.value)
    with pytest.raises(seqmix.SeqMixError, match=r"sentence.hardened\(\) keeps"):
        seqmix.to_dataset([SOFT])
    with pytest.raises(seqmix.SeqMixError, match="has no token"):
        seqmix.to_pandas([Sentence("x", ())], rows="tokens")
    with pytest.raises(seqmix.SeqMixError, match="rows must be sentences or tokens"):
        seqmix.to_pandas(FEW, rows="token")


def test_a_tagger_says_what_to_do_with_a_table(trained):
    for table in (seqmix.to_pandas(FEW), seqmix.to_dataset(FEW)):
        for call in (trained, trained.predict, trained.fit):
            with pytest.raises(seqmix.SeqMixError, match=r"seqmix.read\(table\) turns it into"):
                call(table)
        assert len(trained(seqmix.read(table))) == len(FEW)
    texts = pandas.Series(["Lena lives in Oslo."])
    assert trained(texts) == [trained("Lena lives in Oslo.")]


def test_without_the_packages_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    for call in (seqmix.to_dataset, seqmix.to_pandas):
        with pytest.raises(seqmix.SeqMixError, match=r"seqmix\[hf\]"):
            call(FEW)
