"""`seqmix predict`: sentences with the tags a tagger gives them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import tee
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import progress, say
from seqmix.app.options import Data, Device, Read, To, parse_read, parse_to
from seqmix.app.read_data import read_data
from seqmix.data import formats
from seqmix.data.files import replacing
from seqmix.data.formats.jsonl_tokens import to_record
from seqmix.data.latest_model import using_model
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError

Model = Annotated[
    Path, typer.Argument(help="A folder written by train, or a project: its newest model.")
]
Out = Annotated[Path, typer.Option(help="Where to write; the format follows the name.")]
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
    out: Out,
    confidence: Confidence = False,
    soft: Soft = False,
    to: To = "",
    read: Read = "",
    device: Device = None,
) -> None:
    """Tag sentences; labels they already have are ignored."""
    from seqmix.tagger import Tagger

    reading = parse_read(read)
    writing = parse_to(to, reading.options)
    if confidence and soft:
        raise ConfigError(
            "--confidence and --soft exclude each other; "
            "--soft holds the probability of every tag already"
        )
    jsonl = writing.format == "jsonl-tokens" if writing.format else out.suffix.lower() == ".jsonl"
    if confidence and not jsonl:
        raise ConfigError(f"--confidence needs --out FILE.jsonl (jsonl-tokens); got {out.name}")
    with using_model(model) as folder:
        tagger = Tagger.load(folder, device)
    sentences = (sentence.unlabeled() for sentence in read_data(data, reading))
    with progress("tagging", "sentences") as update:
        if confidence:
            _write_confident(tagger, _with_progress(sentences, update), out)
        else:
            tagged = _soft(tagger, sentences) if soft else tagger.predict(sentences)
            formats.write(_with_progress(tagged, update), out, writing.format, writing.options)
    say(f"written to {out}")


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
