"""`seqmix train`."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from seqmix.app.commands.train.evaluate import score_tagger
from seqmix.app.console import count, emit, progress, say
from seqmix.app.options import group
from seqmix.app.read_data import (
    Comment,
    Data,
    FormatName,
    Key,
    Misaligned,
    TagColumn,
    TokenColumn,
    drawn,
    format_options,
    labeled_data,
)
from seqmix.data.scheme import prefixed
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.errors import ConfigError, DataError

_model, _training = group("The model"), group("The training")


def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="The folder the tagger is written to.")],
    dev: Annotated[
        str | None, typer.Option(help="Labeled data to score the tagger on when it is done.")
    ] = None,
    encoder: Annotated[str, _model(help="starter, a Hugging Face name, or a folder.")] = "starter",
    head: Annotated[str, _model(help="linear or crf.")] = "linear",
    epochs: Annotated[int, _training(help="Passes over the data.")] = 10,
    steps: Annotated[int | None, _training(help="Optimizer steps instead of epochs.")] = None,
    lr: Annotated[
        float | None,
        _training(help="Learning rate; 3e-4 for the starter and 5e-5 for others by default."),
    ] = None,
    batch_size: Annotated[int, _training(help="Sentences a step.")] = 32,
    limit: Annotated[
        int | None, _training(help="Train on this many sentences, drawn at random with the seed.")
    ] = None,
    seed: Annotated[int, _training(help="Same seed, same bytes.")] = 0,
    device: Annotated[str | None, _model(help="cpu or cuda; the best there is by default.")] = None,
    format: FormatName = None,
    tag_column: TagColumn = -1,
    token_column: TokenColumn = 0,
    comment: Comment = "",
    key: Key = "UPOS",
    misaligned: Misaligned = "error",
) -> None:
    """Train a tagger on labeled data."""
    from seqmix.tagger import Settings, Tagger

    options = format_options(
        tag_column=tag_column,
        token_column=token_column,
        comment=comment,
        key=key,
        misaligned=misaligned,
    )
    settings = Settings(epochs=epochs, steps=steps, lr=lr, batch_size=batch_size)
    tagger = Tagger(encoder, head, settings, device)
    if seed < 0:
        raise ConfigError(f"--seed is {seed}; it must be 0 or more")
    _check_place(out)
    sentences = labeled_data(data, format, options)
    held_out = labeled_data(dev, None, options) if dev else []
    rng = np.random.default_rng(seed)
    sentences = drawn(sentences, limit, rng)
    total = settings.total_steps(len(sentences))
    counts = f"{count(len(sentences), 'sentence')}, {count(total, 'step')}"
    _say_tags(sentences, data)
    say(f"training {encoder} with a {head} head on {counts} on {tagger.device}")
    start = time.monotonic()
    with progress("training") as update:
        tagger.fit(sentences, rng, progress=update)
    tagger.save(out)
    say(f"written to {out} after {time.monotonic() - start:.0f} s")
    if held_out:
        emit(f"scores on the dev data, {dev}\n{score_tagger(tagger, held_out, dev or '').report()}")


def _say_tags(sentences: Sequence[Sentence], name: str) -> None:
    """What is about to be learned; a warning where it looks as if another column held the tags."""
    counts = Counter(
        str(tag) for sentence in sentences for tag in sentence.hardened().tags if tag is not None
    )
    types = sorted({tag[2:] for tag in counts if prefixed(tag)})
    words = {token for sentence in sentences for token in sentence.tokens}
    doubt = ""
    if len(counts) == 1:
        doubt = f"every token has the tag {next(iter(counts))!r}"
    elif OUTSIDE not in counts and types:
        doubt = "no token has the tag O, which is for those outside every span"
    elif OUTSIDE not in counts and (
        len(counts) > 1000 or len(counts.keys() & words) * 2 > len(counts)
    ):
        doubt = f"the {len(counts)} tags look like words"
    if doubt:
        say(
            f"warning: {name}: {doubt}; if another column holds the tags, say so with --tag-column, counted from 0"
        )
    shown = types or list(counts)
    kind = "types of span" if types else "tags"
    say(
        f"{kind}: {', '.join(shown[:40])}"
        + (f" and {len(shown) - 40} more" if len(shown) > 40 else "")
    )


def _check_place(out: Path) -> None:
    """Fail before the training rather than after it when its result has no place."""
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise DataError("cannot write here: expected a folder that is writable", nearest)
