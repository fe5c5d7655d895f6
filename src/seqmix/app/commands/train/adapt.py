"""`seqmix adapt`: an encoder that has read your text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.config import parse_changes
from seqmix.app.console import count, emit, progress, say
from seqmix.app.options import Device, Read, Seed, parse_read, settings_option
from seqmix.app.reading.data import read_data
from seqmix.data.overwriting import refuse_source
from seqmix.errors import DataError

Texts = Annotated[
    list[str],
    typer.Argument(
        metavar="TEXT...",
        help="Files or folders in any format read, raw text (one sentence per line), or samples; "
        "labels are ignored.",
    ),
]
Out = Annotated[Path, typer.Option(help="The folder the encoder is written to; it must be new.")]
Encoder = Annotated[str, typer.Option(help="starter, a Hugging Face name, or a folder.")]
Change = Annotated[
    list[str] | None,
    settings_option(
        "epochs=3 (6 by default), steps=500 (instead of epochs), "
        "lr=1e-4 (3e-4 for the starter and 5e-5 for other encoders "
        "by default) or batch_tokens=2048"
    ),
]


def adapt(
    text: Texts,
    out: Out,
    encoder: Encoder = "starter",
    seed: Seed = 0,
    change: Change = None,
    read: Read = "",
    device: Device = None,
) -> None:
    """Adapt an encoder to unlabeled text before a tagger is trained on it."""
    from seqmix.tagger.adaptation.adapt import adapt as adapt_encoder  # here, since it loads torch
    from seqmix.tagger.settings import AdaptSettings

    settings = AdaptSettings(**{"seed": seed, **parse_changes(change)})
    reading = parse_read(read, misaligned="drop")
    refuse_source(out, *text, encoder)
    sentences = [
        sentence.tokens for name in text for sentence in read_data(name, reading) if len(sentence)
    ]
    if not sentences:
        raise DataError(
            "there is no sentence here; give text with at least one word in it", " ".join(text)
        )
    length = count(settings.steps, "step") if settings.steps else count(settings.epochs, "epoch")
    say(f"adapting {encoder} to {count(len(sentences), 'sentence')}, {length}")
    start = time.monotonic()
    with progress("adapting") as update:
        result = adapt_encoder(encoder, sentences, settings, out, device=device, progress=update)
    say(f"written to {out} after {time.monotonic() - start:.0f} s")
    if result.before is None or result.after is None:
        emit("held-out loss: none, the text is too small to hold sentences out")
    else:
        emit(
            f"held-out loss: {result.before:.3f} before, {result.after:.3f} after "
            f"(nats per hidden piece, {result.held_out} sentences)"
        )
