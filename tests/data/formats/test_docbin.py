"""spaCy's DocBin."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

spacy = pytest.importorskip("spacy", reason="the format docbin needs spaCy")


def saved(path: Path, *docs: object) -> Path:
    from spacy.tokens import DocBin

    DocBin(docs=docs).to_disk(path)
    return path


def test_entities_set_by_spacy_are_read_and_white_space_tokens_are_not(tmp_path: Path) -> None:
    from spacy.tokens import Span

    doc = spacy.blank("en")("  New  York fell.\n")
    doc.set_ents([Span(doc, 1, 4, "LOC")])
    (sentence,) = formats.read(saved(tmp_path / "a.spacy", doc))

    assert sentence == Sentence(
        "a:1",
        ("New", "York", "fell", "."),
        ("B-LOC", "I-LOC", "O", "O"),
        "  New  York fell.\n",
        ((2, 5), (7, 11), (12, 16), (16, 17)),
    )


def test_a_doc_nobody_has_labeled_is_unlabeled_and_one_without_entities_is_not(
    tmp_path: Path,
) -> None:
    nlp = spacy.blank("en")
    none = nlp("nothing here")
    none.set_ents([])

    assert [s.labeled for s in formats.read(saved(tmp_path / "a.spacy", nlp("unseen"), none))] == [
        False,
        True,
    ]


def test_what_is_written_has_entities_for_spacy(tmp_path: Path) -> None:
    from spacy.tokens import DocBin

    text = " New  York fell "
    sentence = Sentence(
        "x", ("New", "York", "fell"), ("B-LOC", "I-LOC", "O"), text, ((1, 4), (6, 10), (11, 15))
    )
    formats.write([sentence, Sentence("y", ("a", "b"), ("B-X", "B-X"))], tmp_path / "a.spacy")
    first, second = DocBin().from_disk(tmp_path / "a.spacy").get_docs(spacy.blank("en").vocab)

    assert first.text == text
    assert [(ent.text, ent.label_) for ent in first.ents] == [("New  York", "LOC")]
    assert first.user_data["id"] == "x"
    assert [(ent.text, ent.label_) for ent in second.ents] == [("a", "X"), ("b", "X")]
    assert list(formats.read(tmp_path / "a.spacy")) == [
        sentence,
        Sentence("y", ("a", "b"), ("B-X", "B-X")),
    ]


def test_text_between_the_tokens_gives_way_to_the_tokens(tmp_path: Path) -> None:
    formats.write(
        [Sentence("x", ("a", "b"), ("O", "O"), "a -- b", ((0, 1), (5, 6)))], tmp_path / "a.spacy"
    )

    assert list(formats.read(tmp_path / "a.spacy")) == [Sentence("x", ("a", "b"), ("O", "O"))]


def test_a_token_of_white_space_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="only white space"):
        formats.write([Sentence("x", ("a", "\u2003"), ("O", "O"))], tmp_path / "a.spacy")


def test_a_broken_block_leaves_the_garbage_collector_on(tmp_path: Path) -> None:
    import gc
    import zlib

    (tmp_path / "a.spacy").write_bytes(zlib.compress(b"\xc1\xc1"))
    with pytest.raises(DataError, match="expected a spaCy DocBin"):
        list(formats.read(tmp_path / "a.spacy", options=Options()))
    assert gc.isenabled()
