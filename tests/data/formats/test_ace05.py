"""ACE 2005 triggers, on a document made up in the published layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, TagError

SGM = """<DOC>
<DOCID> MADE_UP_20030101.0001 </DOCID>
<DOCTYPE SOURCE="newswire"> NEWS STORY </DOCTYPE>
<DATETIME> 2003-01-01 </DATETIME>
<BODY>
<HEADLINE>
Harbor bought
</HEADLINE>
<TEXT>
Brandt &amp; Sons bought the harbor of Nyby on
Monday. Mr. Brandt said "Nobody was hurt." The old crew
was laid off and will sue.

Protesters marched & sang
</TEXT>
</BODY>
</DOC>
"""
PLAIN = "\n MADE_UP_20030101.0001 \n NEWS STORY \n 2003-01-01 \n\n\nHarbor bought\n\n"


def plain() -> str:
    """The text as ACE counts it, made by hand: each tag gone, everything else as it stands."""
    body = SGM.split("<TEXT>")[1].split("</TEXT>")[0]
    return PLAIN + body


def mention(
    word: str, type: str, subtype: str, shown: str | None = None, start: int | None = None
) -> str:
    start = plain().index(word) if start is None else start
    return f"""<event ID="E" TYPE="{type}" SUBTYPE="{subtype}" MODALITY="Asserted">
<event_argument REFID="X" ROLE="Agent"/>
<event_mention ID="EV"><extent><charseq START="0" END="9">whatever</charseq></extent>
<ldc_scope><charseq START="0" END="9">whatever</charseq></ldc_scope>
<anchor><charseq START="{start}" END="{start + len(word) - 1}">{shown or word}</charseq></anchor>
<event_mention_argument REFID="X" ROLE="Agent">\
<extent><charseq START="0" END="3">what</charseq></extent></event_mention_argument>
</event_mention></event>
"""


def event(attributes: str, start: int | str, end: int, shown: str) -> str:
    anchor = f'<anchor><charseq START="{start}" END="{end}">{shown}</charseq></anchor>'
    return f"<event {attributes}><event_mention>{anchor}</event_mention></event>"


def apf(*events: str, doctype: str = '<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd">') -> str:
    head = f'<?xml version="1.0"?>\n{doctype}\n<source_file URI="x.sgm"><document DOCID="x">\n'
    return f"{head}{''.join(events)}</document></source_file>\n"


MARCHED = mention("marched", "Conflict", "Demonstrate")
GOOD = (
    mention("bought", "Transaction", "Transfer-Ownership", start=plain().rindex("bought")),
    mention("laid off", "Personnel", "End-Position"),
    MARCHED,
    MARCHED,  # two mentions may share an anchor
    mention("hurt", "Life", "Injure"),
)


def put(tmp_path: Path, xml: str | None, sgm: str = SGM, name: str = "doc") -> Path:
    (tmp_path / f"{name}.sgm").write_text(sgm)
    if xml is not None:
        (tmp_path / f"{name}.apf.xml").write_text(xml)
    return tmp_path


def tagged(sentences: list[Sentence]) -> list[tuple[str, str]]:
    return [
        (token, str(tag))
        for s in sentences
        for token, tag in zip(s.tokens, s.tags, strict=True)
        if tag != "O"
    ]


@pytest.mark.parametrize("name", ["", "doc.sgm", "doc.apf.xml"])
def test_triggers_are_read_as_bio_over_subtypes(name: str, tmp_path: Path) -> None:
    sentences = list(formats.read(put(tmp_path, apf(*GOOD)) / name))

    assert tagged(sentences) == [
        ("bought", "B-Transfer-Ownership"),
        ("hurt", "B-Injure"),
        ("laid", "B-End-Position"),
        ("off", "I-End-Position"),
        ("marched", "B-Demonstrate"),
    ]


def test_sentences_end_at_punctuation_before_a_capital_and_at_empty_lines(tmp_path: Path) -> None:
    sentences = list(formats.read(put(tmp_path, apf(*GOOD))))

    assert [(s.id, s.text) for s in sentences] == [
        ("doc:1", "Brandt & Sons bought the harbor of Nyby on\nMonday."),
        ("doc:2", 'Mr. Brandt said "Nobody was hurt."'),
        ("doc:3", "The old crew\nwas laid off and will sue."),
        ("doc:4", "Protesters marched & sang"),
    ]


def test_the_key_type_gives_event_types(tmp_path: Path) -> None:
    sentences = list(formats.read(put(tmp_path, apf(MARCHED)), options=Options(key="TYPE")))

    assert tagged(sentences) == [("marched", "B-Conflict")]


def test_a_sentence_never_ends_inside_a_trigger(tmp_path: Path) -> None:
    sgm = "<DOC><TEXT>\nThey said stop. Now it is over.\n</TEXT></DOC>"
    xml = apf(event('TYPE="A" SUBTYPE="B"', 11, 19, "stop. Now"))
    (sentence,) = formats.read(put(tmp_path, xml, sgm))

    assert tagged([sentence]) == [("stop", "B-B"), (".", "I-B"), ("Now", "I-B")]


def test_an_entity_in_a_trigger_counts_as_it_is_written(tmp_path: Path) -> None:
    sgm = "<DOC><TEXT>A&amp;B M&amp;A now</TEXT></DOC>"
    xml = apf(event('TYPE="A" SUBTYPE="B"', 8, 14, "M&amp;A"))
    (sentence,) = formats.read(put(tmp_path, xml, sgm))

    assert sentence.text == "A&B M&A now"
    assert tagged([sentence]) == [("M", "B-B"), ("&", "I-B"), ("A", "I-B")]


def test_without_text_the_body_is_read_and_without_annotations_nothing_is_labeled(
    tmp_path: Path,
) -> None:
    (sentence,) = formats.read(put(tmp_path, None, "<DOC><BODY>Just this.</BODY></DOC>"), "ace05")

    assert sentence.tokens == ("Just", "this", ".")
    assert not sentence.labeled


def test_the_same_document_twice_is_refused(tmp_path: Path) -> None:
    for folder in ("adj", "timex2norm"):
        (tmp_path / folder).mkdir()
        put(tmp_path / folder, apf())

    with pytest.raises(DataError, match=r"is also in .*adj; name the folder of one annotation"):
        list(formats.read(tmp_path))
    assert len(list(formats.read(tmp_path / "timex2norm"))) == 4


def test_a_trigger_of_two_subtypes_follows_the_option(tmp_path: Path) -> None:
    put(tmp_path, apf(MARCHED, mention("marched", "Movement", "Transport")))

    with pytest.raises(TagError, match="two spans overlap"):
        list(formats.read(tmp_path))
    assert tagged(list(formats.read(tmp_path, options=Options(misaligned="drop")))) == [
        ("marched", "B-Demonstrate")
    ]


def test_a_trigger_outside_the_text_follows_the_option(tmp_path: Path) -> None:
    put(tmp_path, apf(mention("bought", "T", "S")))
    options = Options(misaligned="drop")

    with pytest.raises(TagError, match="inside TEXT") as caught:
        list(formats.read(tmp_path))
    assert (caught.value.path, caught.value.line) == (tmp_path / "doc.apf.xml", 8)
    assert tagged(list(formats.read(tmp_path, options=options))) == []
    assert options.counts == {"outside TEXT": 1}


@pytest.mark.parametrize(
    ("xml", "match"),
    [
        (apf(mention("marched", "Conflict", "Demonstrate", "walked")), "expected 'walked' at"),
        (apf(event('TYPE="A" SUBTYPE="B"', "x", 3, "a")), "START and END"),
        (apf(event('TYPE="A"', 1, 3, "a")), "TYPE and SUBTYPE"),
        (apf("<event>"), "expected XML"),
        ("", "expected XML"),
        (apf("&undeclared;"), "entity declarations"),
    ],
)
def test_a_broken_annotation_is_named(xml: str, match: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=match) as caught:
        list(formats.read(put(tmp_path, xml)))
    assert caught.value.path == tmp_path / "doc.apf.xml"
    assert caught.value.line


@pytest.mark.parametrize(
    "declaration",
    [
        '<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">',
        '<!ENTITY secret SYSTEM "file:///etc/passwd">',
        '<!ENTITY % remote SYSTEM "http://127.0.0.1:9/x.dtd"> %remote;',
    ],
)
def test_entities_are_refused_and_never_fetched(declaration: str, tmp_path: Path) -> None:
    xml = apf(doctype=f'<!DOCTYPE source_file SYSTEM "apf.v5.1.1.dtd" [{declaration}]>')

    with pytest.raises(
        DataError, match=r"doc\.apf\.xml:2: expected a file without entity declarations"
    ):
        list(formats.read(put(tmp_path, xml)))


def test_half_a_pair_or_a_document_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="with <TEXT> or <BODY>") as caught:
        list(formats.read(put(tmp_path, apf(), "just text " * 20)))
    assert caught.value.line == 1 and caught.value.text == ("just text " * 20)[:80]
    (tmp_path / "doc.sgm").unlink()
    with pytest.raises(DataError, match=r"expected the text doc\.sgm beside"):
        list(formats.read(tmp_path))


def test_it_can_only_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="can be read only"):
        formats.write([], tmp_path / "x", "ace05")
