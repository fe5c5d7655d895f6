"""Options that several commands share, and the small languages of --read, --to and --set."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Annotated, Any

import typer

from seqmix.data import formats
from seqmix.data.scheme import SCHEMES
from seqmix.data.tokenizers import TOKENIZERS
from seqmix.errors import ConfigError


@dataclass(frozen=True)
class Key:
    """A key of --read or --to."""

    help: str
    kind: type | tuple[str, ...] = str  # or the words there are
    option: str | None = None  # the field of `formats.Options` that takes it


READ_KEYS: dict[str, Key] = {
    "tag": Key("CoNLL: the column of the tags, from 0; -1 is the last", int, "tag_column"),
    "token": Key("CoNLL: the column of the tokens", int, "token_column"),
    "comment": Key("CoNLL: the start of comment lines", str, "comment"),
    "key": Key("CoNLL-U: UPOS, XPOS or a key of the MISC column", str, "key"),
    "misaligned": Key("a span that cuts a token", ("error", "expand", "drop"), "misaligned"),
    "tokens": Key("how raw text is split into tokens", tuple(TOKENIZERS), "tokenizer"),
}
EXTRA_READ_KEYS: dict[str, Key] = {
    "column": Key("CSV: the column of the text"),
    "unit": Key("raw text: what a sentence is", ("sentence", "line", "paragraph")),
    "ids": Key("keep the data's ids, or use a digest of the tokens", ("given", "content")),
}
WRITE_KEYS: dict[str, Key] = {
    "scheme": Key("of the tags; BIO by default", SCHEMES[:-1], "scheme"),
    "key": Key("CoNLL-U: UPOS, XPOS or a key of the MISC column", str, "key"),
    "harden": Key("write a distribution as its heaviest tag", ("no", "yes"), "harden"),
}


@dataclass(frozen=True)
class ReadOptions:
    """How input is read: what --read said."""

    format: str | None
    options: formats.Options
    column: str | None = None
    unit: str = "sentence"
    ids: str = "given"


@dataclass(frozen=True)
class WriteOptions:
    """How output is written: what --to said."""

    format: str | None
    options: formats.Options


def group(title: str) -> Callable[..., Any]:
    """Return `typer.Option` for options that appear together in --help."""
    return partial(typer.Option, rich_help_panel=title)


def read_option(*extra: str) -> Any:
    """Return the option --read, with more keys where a command has some."""
    names = [*formats.FORMATS, *(["csv"] if "column" in extra else [])]
    keys = READ_KEYS | {name: EXTRA_READ_KEYS[name] for name in extra}
    return typer.Option(
        metavar="FORMAT:KEY=VALUE,...",
        help="How to read the data when the guess is wrong, such as conll:tag=3,token=1 or "
        f"misaligned=drop. Formats: {', '.join(names)}. Keys: {_described(keys)}.",
        show_default=False,
    )


def to_option(more: str = "") -> Any:
    """Return the option --to, with what else a command can write."""
    return typer.Option(
        metavar="FORMAT:KEY=VALUE,...",
        help="The format to write, if the file's name does not show it, such as "
        "conll:scheme=BIOES. Formats: "
        f"{', '.join(name for name, format in formats.FORMATS.items() if format.write)}. "
        f"Keys: {_described(WRITE_KEYS)}.{more}",
        show_default=False,
    )


def _described(keys: Mapping[str, Key]) -> str:
    return "; ".join(
        f"{name} ({key.help}{': ' + ', '.join(key.kind) if isinstance(key.kind, tuple) else ''})"
        for name, key in keys.items()
    )


def _checked_seed(seed: int) -> int:
    if seed < 0:
        raise ConfigError(f"--seed must be 0 or more; got {seed}")
    return seed


Data = Annotated[
    str,
    typer.Argument(
        help="A file or folder in any format read, or a sample: "
        "gazette:train, gazette:dev, gazette:test."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Read = Annotated[str, read_option()]
To = Annotated[str, to_option()]
Device = Annotated[
    str | None, typer.Option(help="cpu or cuda; by default the best available.", show_default=False)
]
Seed = Annotated[
    int, typer.Option(help="Random seed: same seed, same bytes.", callback=_checked_seed)
]
Engine = Annotated[
    str,
    typer.Option(
        help="Where the work is done: local (processes on this machine, or one GPU), "
        "ray (a new Ray on this machine) or ray:ADDRESS (a cluster: auto or host:port)."
    ),
]


def parse_read(text: str, *extra: str, **defaults: Any) -> ReadOptions:
    """Parse --read: `conll:tag=-1,token=0` is a format and keys; either may be left out."""
    keys = READ_KEYS | {name: EXTRA_READ_KEYS[name] for name in extra}
    names = [*formats.FORMATS, *(["csv"] if "column" in extra else [])]
    format, values = _parse("--read", text, keys, names)
    rest = {name: value for name, value in values.items() if name in extra}
    return ReadOptions(format, formats.Options(**(defaults | _options(values, keys))), **rest)


def parse_to(text: str, base: formats.Options | None = None) -> WriteOptions:
    """Parse --to: `conll:scheme=BIOES`; what it leaves open is as in `base`."""
    names = [name for name, format in formats.FORMATS.items() if format.write]
    format, values = _parse("--to", text, WRITE_KEYS, names)
    if "harden" in values:
        values["harden"] = values["harden"] == "yes"
    return WriteOptions(format, replace(base or formats.Options(), **_options(values, WRITE_KEYS)))


def _options(values: Mapping[str, Any], keys: Mapping[str, Key]) -> dict[str, Any]:
    """Return the values that are fields of `formats.Options`, under the fields' names."""
    named = {keys[name].option: value for name, value in values.items()}
    return {name: value for name, value in named.items() if name is not None}


def _parse(
    option: str, text: str, keys: Mapping[str, Key], names: Collection[str]
) -> tuple[str | None, dict[str, Any]]:
    format, _, rest = text.partition(":")
    if "=" in format:
        format, rest = "", text
    if format and format not in (formats.FORMATS if option == "--to" else names):
        raise ConfigError(f"{option}: there is no format {_unknown(format, names)}")
    values: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ConfigError(
                f"{option} must look like FORMAT:KEY=VALUE,KEY=VALUE; got {text[:80]!r}"
            )
        if name not in keys:
            raise ConfigError(f"{option}: there is no key {_unknown(name, keys)}")
        values[name] = _value(option, name, value, keys[name].kind)
    return format or None, values


def _value(option: str, name: str, value: str, kind: type | tuple[str, ...]) -> Any:
    if isinstance(kind, tuple):
        if value not in kind:
            raise ConfigError(f"{option}: {name} must be {_either(kind)}; got {value!r}")
        return value
    try:
        return kind(value)
    except ValueError:
        raise ConfigError(f"{option}: {name} must be an integer; got {value!r}") from None


def _either(words: Collection[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last}"


def _unknown(name: str, names: Collection[str]) -> str:
    near = get_close_matches(name, names, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return f"{name[:80]!r}; {meant}There are {', '.join(names)}"


def settings_option(examples: str, panel: str | None = None) -> Any:
    """Return the option --set of a command, with examples of its keys."""
    return typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help=f"Any other setting, such as {examples}; repeatable.",
        rich_help_panel=panel,
    )
