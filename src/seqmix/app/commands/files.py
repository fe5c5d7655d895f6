"""`seqmix convert` and `info`."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix import __version__
from seqmix.app.console import count, emit, say
from seqmix.app.read_data import (
    Comment,
    Data,
    FormatName,
    Key,
    Misaligned,
    Quiet,
    TagColumn,
    TokenColumn,
    format_options,
    read_data,
)
from seqmix.data import formats
from seqmix.data.latest_model import newest_model
from seqmix.data.scheme import SCHEMES, detect, prefixed, spans
from seqmix.data.sentence import Sentence


def convert(
    data: Data,
    out: Annotated[Path, typer.Argument(help="Where to write; the format follows the name.")],
    format: FormatName = None,
    to: Annotated[
        str | None, typer.Option(help="The format to write, when the name does not tell.")
    ] = None,
    scheme: Annotated[
        str | None,
        typer.Option(help="The scheme to write: " + ", ".join(SCHEMES[:-1]) + ". BIO by default."),
    ] = None,
    harden: Annotated[
        bool,
        typer.Option(
            help="Write soft labels as their heaviest tag where the format holds no soft ones."
        ),
    ] = False,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    key: Key = "UPOS",
    misaligned: Misaligned = "error",
) -> None:
    """Turn labeled data from one format into another."""
    options = format_options(
        tag_column=tag_column,
        token_column=token_column,
        comment=comment,
        key=key,
        misaligned=misaligned,
        scheme=scheme,
        harden=harden,
    )
    total = 0

    def counted() -> Iterator[Sentence]:
        nonlocal total
        for sentence in read_data(data, format, options):
            total += 1
            yield sentence

    formats.write(counted(), out, to, options)
    say(
        f"{count(total, 'sentence')} written to {out}"
        + "".join(f"; {n} {what}" for what, n in sorted(options.counts.items()))
    )


def info(
    what: Annotated[
        str,
        typer.Argument(
            help="A tagger, project, file, folder of data, or sample; nothing for the installation."
        ),
    ] = "",
    json_out: Quiet = False,
    format: FormatName = None,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    key: Key = "UPOS",
    misaligned: Misaligned = "drop",
) -> None:
    """Say what a tagger, a corpus or this installation is."""
    options = format_options(
        tag_column=tag_column,
        token_column=token_column,
        comment=comment,
        key=key,
        misaligned=misaligned,
    )
    if not what:
        facts = _installation()
    elif ((folder := newest_model(Path(what))) / "tagger.json").exists():
        from seqmix.tagger.model_folders import describe

        facts = describe(folder)
    else:
        facts = _corpus_facts(what, format, options)
    emit(
        json.dumps(facts, ensure_ascii=False)
        if json_out
        else "\n".join(f"{key}: {_plain(value)}" for key, value in facts.items())
    )


def _installation() -> dict[str, Any]:
    import torch
    import transformers

    return {
        "seqmix": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "formats": list(formats.FORMATS),
    }


def _corpus_facts(name: str, format: str | None, options: formats.Options) -> dict[str, Any]:
    sentences = tokens = labeled = soft = longest = 0
    tags: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for sentence in read_data(name, format, options):
        sentences, tokens = sentences + 1, tokens + len(sentence)
        labeled += sentence.labeled
        soft += any(isinstance(row, Mapping) for row in sentence.tags)
        longest = max(longest, len(sentence))
        own = [str(tag) for tag in sentence.hardened().tags if tag is not None]
        tags.update(own)
        if any(prefixed(tag) for tag in own):
            types.update(span.type for span in spans(own))
    return {
        "sentences": sentences,
        "labeled": labeled,
        "with soft labels": soft,
        "tokens": tokens,
        "longest": longest,
        "scheme": detect(tags) if tags else None,
        "spans": sum(types.values()),
        "spans by type": dict(sorted(types.items())),
        "tags": dict(tags.most_common()),
        **options.counts,
    }


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "none"
    return ", ".join(str(v) for v in value) if isinstance(value, list) else str(value)
