"""--read and --to: one small language, parsed in one place."""

from __future__ import annotations

import pytest

from seqmix.app.options import parse_read, parse_to
from seqmix.data.formats import Options
from seqmix.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "format", "options"),
    [
        ("", None, Options()),
        ("conll", "conll", Options()),
        ("conll:tag=3,token=1", "conll", Options(tag_column=3, token_column=1)),
        ("tag=-2", None, Options(tag_column=-2)),
        (":tag=-2", None, Options(tag_column=-2)),
        ("comment=::", None, Options(comment="::")),
        ("conllu:key=NER, misaligned=drop", "conllu", Options(key="NER", misaligned="drop")),
    ],
)
def test_either_half_of_read_may_be_left_out(text, format, options):
    reading = parse_read(text)

    assert (reading.format, reading.options) == (format, options)


def test_commands_add_keys_and_defaults():
    assert parse_read("csv:column=body", "column", "unit").column == "body"
    assert parse_read("unit=paragraph", "unit").unit == "paragraph"
    assert parse_read("", misaligned="drop").options.misaligned == "drop"
    assert parse_read("misaligned=expand", misaligned="drop").options.misaligned == "expand"


def test_what_is_written_is_read_options_with_changes():
    writing = parse_to("conll:scheme=BIOES,harden=yes", Options(key="NER"))

    assert writing.format == "conll"
    assert writing.options == Options(key="NER", scheme="BIOES", harden=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conl", "--read: there is no format 'conl'; did you mean conll? There are conll, conllu"),
        ("csv:column=text", "--read: there is no format 'csv'"),
        ("conll:tga=1", "--read: there is no key 'tga'; did you mean tag? There are tag, token"),
        ("conll:column=text", "--read: there is no key 'column'"),
        ("conll:tag", "--read must look like FORMAT:KEY=VALUE,KEY=VALUE; got 'conll:tag'"),
        ("tag=last", "--read: tag must be an integer; got 'last'"),
        ("misaligned=keep", "--read: misaligned must be error, expand or drop; got 'keep'"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_say(text, message):
    with pytest.raises(ConfigError) as refused:
        parse_read(text)

    assert str(refused.value).startswith(message)


def test_only_formats_that_are_written_are_offered():
    with pytest.raises(
        ConfigError, match="there is no format 'conl'; did you mean conll"
    ) as refused:
        parse_to("conl")

    assert "ace05" not in str(refused.value)
