"""`seqmix predict`: sentences with the tags a tagger gives them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import emit, progress, say
from seqmix.app.options import Data, Device, Read, To, parse_read, parse_to
from seqmix.app.reading.data import read_data
from seqmix.app.taggers import load_tagger, misfits
from seqmix.data import formats
from seqmix.data.files import replacing
from seqmix.data.formats.jsonl_tokens import to_record
from seqmix.data.overwriting import refuse_source
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError

Model = Annotated[
    Path, typer.Argument(help="A folder written by train, or a project: its newest model.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Where to write; the format follows the name. Without it, the entities are printed."
    ),
]
Confidence = Annotated[
    bool,
    typer.Option(
        help="Add the probability of each sentence's tags and of each token's "
        "(JSONL of tokens only)."
    ),
]
Soft = Annotated[
    bool,
    typer.Option(
        help="Write the tag distributions instead of the best tags (JSONL of tokens only)."
    ),
]


def predict(
    model: Model,
    data: Data,
    out: Out = None,
    confidence: Confidence = False,
    soft: Soft = False,
    to: To = "",
    read: Read = "",
    device: Device = None,
) -> None:
    """Tag sentences; labels they already have are ignored."""
    reading = parse_read(read)
    writing = parse_to(to, reading.options)
    if confidence and soft:
        raise ConfigError(
            "--confidence and --soft cannot be combined; "
            "--soft already has the probability of every tag"
        )
    if out is None:
        if confidence or soft or to:
            raise ConfigError("--confidence, --soft and --to need --out FILE")
        _print(load_tagger(model, device), read_data(data, reading))
        return
    refuse_source(out, data)
    jsonl = writing.format == "jsonl-tokens" if writing.format else out.suffix.lower() == ".jsonl"
    if confidence and not jsonl:
        raise ConfigError(f"--confidence needs --out FILE.jsonl (jsonl-tokens); got {out.name}")
    tagger = load_tagger(model, device)
    sentences = (sentence.unlabeled() for sentence in read_data(data, reading))
    with progress("tagging", "sentences") as update:
        if confidence:
            formats.refuse_other_file(out, formats.FORMATS["jsonl-tokens"])
            _write_confident(tagger, _with_progress(sentences, update), out)
        else:
            tagged = _soft(tagger, sentences) if soft else tagger.predict(sentences)
            formats.write(_with_progress(tagged, update), out, writing.format, writing.options)
    say("; ".join([f"written to {out}", *misfits(tagger)]))


def _print(tagger: Any, sentences: Iterable[Sentence]) -> None:
    for sentence in tagger.predict(sentence.unlabeled() for sentence in sentences):
        emit(bracketed(sentence))
    if notes := misfits(tagger):
        say("; ".join(notes))


def bracketed(sentence: Sentence) -> str:
    """Return the text with its entities in brackets.

    >>> bracketed(Sentence("s1", ("Lena", "left"), ("B-PER", "O")))
    '[PER Lena] left'
    """
    text, at, parts = sentence.located()[0], 0, list[str]()
    for entity in sentence.entities():
        parts += [text[at : entity.start], f"[{entity.label} {entity.text}]"]
        at = entity.end
    return "".join([*parts, text[at:]])


def _with_progress(
    sentences: Iterable[Sentence], update: Callable[..., None]
) -> Iterator[Sentence]:
    for number, sentence in enumerate(sentences, 1):
        yield sentence
        if number % 256 == 0:
            update(number)


def _soft(tagger: Any, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    ahead, behind = tee(sentences)
    for sentence, probs in zip(behind, tagger.probabilities(ahead), strict=True):
        yield sentence.with_tags([tagger.tag_set.row(row) for row in probs])


def _write_confident(tagger: Any, sentences: Iterable[Sentence], out: Path) -> None:
    ahead, behind = tee(sentences)
    with replacing(out) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for sentence, paths in zip(behind, tagger.best_paths(ahead, by_token=True), strict=True):
            best = paths[0]
            record = {
                **to_record(sentence.with_tags(best.tags)),
                "probability": best.probability,
                "token_probabilities": best.by_token,
            }
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
