"""`seqmix adapt`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from seqmix.app.console import count, emit, progress, say
from seqmix.app.read_data import Comment, FormatName, TokenColumn, format_options, read_data
from seqmix.errors import DataError

Text = Annotated[
    list[str],
    typer.Argument(
        help="Files or folders in any format read, raw text (a sentence a line), or samples."
    ),
]


def adapt(
    text: Text,
    out: Annotated[
        Path, typer.Option(help="The folder the encoder is written to; it must not be there yet.")
    ],
    encoder: Annotated[
        str, typer.Option(help="starter, a Hugging Face name, or a folder.")
    ] = "starter",
    epochs: Annotated[int, typer.Option(help="Passes over the text.")] = 6,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps instead of epochs.")] = None,
    lr: Annotated[
        float | None,
        typer.Option(help="Learning rate; 3e-4 for the starter and 5e-5 for others by default."),
    ] = None,
    batch_tokens: Annotated[int, typer.Option(help="Pieces a step.")] = 4096,
    seed: Annotated[int, typer.Option(help="Same seed, same bytes.")] = 0,
    device: Annotated[
        str | None, typer.Option(help="cpu or cuda; the best there is by default.")
    ] = None,
    format: FormatName = None,
    token_column: TokenColumn = 0,
    comment: Comment = "",
) -> None:
    """Adapt an encoder to unlabeled text before a tagger is trained on it."""
    from seqmix.tagger.adaptation.adapt import AdaptSettings  # here, since it loads torch
    from seqmix.tagger.adaptation.adapt import adapt as adapt_encoder

    settings = AdaptSettings(
        epochs=epochs, steps=steps, lr=lr, batch_tokens=batch_tokens, seed=seed
    )
    options = format_options(token_column=token_column, comment=comment, misaligned="drop")
    sentences = [
        sentence.tokens
        for name in text
        for sentence in read_data(name, format, options)
        if len(sentence)
    ]
    if not sentences:
        raise DataError(
            "there is no sentence here; give text with at least one word in it", " ".join(text)
        )
    say(
        f"adapting {encoder} to {count(len(sentences), 'sentence')}, "
        + (count(steps, "step") if steps else count(epochs, "epoch"))
    )
    start = time.monotonic()
    with progress("adapting") as update:
        done = adapt_encoder(encoder, sentences, settings, out, device=device, progress=update)
    say(f"written to {out} after {time.monotonic() - start:.0f} s")
    if done.before is None or done.after is None:
        emit("held-out loss: none, the text is too small to hold sentences out")
    else:
        emit(
            f"held-out loss: {done.before:.3f} before, {done.after:.3f} after (nats a hidden piece, {done.held_out} sentences)"
        )
