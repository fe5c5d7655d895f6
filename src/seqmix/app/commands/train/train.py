"""`seqmix train`: a tagger from labeled data."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from seqmix.app.commands.train.evaluate import score_tagger
from seqmix.app.config import parse_changes
from seqmix.app.console import count, duration, emit, progress, say
from seqmix.app.options import (
    Data,
    Device,
    Read,
    ReadOptions,
    Seed,
    group,
    parse_read,
    settings_option,
)
from seqmix.app.reading.data import drawn, labeled_data, read_data
from seqmix.data.overwriting import refuse_source
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, prefixed
from seqmix.errors import DataError
from seqmix.tagger.training.plain import plain_settings

if TYPE_CHECKING:
    from seqmix.tagger import Tagger

_SHOWN = 40  # tags
_model, _training = group("The model"), group("The training")
Out = Annotated[Path, typer.Option(help="The folder the tagger is written to.")]
Dev = Annotated[str | None, typer.Option(help="Labeled data to score the finished tagger on.")]
Encoder = Annotated[str, _model(help="starter, a Hugging Face name, or a folder.")]
Head = Annotated[str, _model(help="linear or crf.")]
Steps = Annotated[
    int | None,
    _training(
        help="Optimizer steps; by default ten epochs and at least 300 steps "
        "(600 from 100 sentences on)."
    ),
]
Unlabeled = Annotated[
    str | None,
    _training(
        help="Unlabeled text to learn from as well, with the recipe few-labels: the encoder "
        "is adapted to it, and a student learns from it as three teachers tag it."
    ),
]
Quick = Annotated[bool, _training(help="Only ten epochs; with --unlabeled, no teachers.")]
Limit = Annotated[
    int | None, _training(help="Train on this many sentences, drawn at random with the seed.")
]
Change = Annotated[
    list[str] | None,
    settings_option(
        "epochs=20, lr=1e-3 (by default 3e-4 for the starter, 1e-4 from 200 sentences on, and "
        "5e-5 for other encoders), "
        "batch_size=16, max_pieces=256 or mixup=0.2",
        panel="The training",
    ),
]


def train(
    data: Data,
    out: Out,
    dev: Dev = None,
    encoder: Encoder = "starter",
    head: Head = "crf",
    unlabeled: Unlabeled = None,
    quick: Quick = False,
    steps: Steps = None,
    limit: Limit = None,
    seed: Seed = 0,
    change: Change = None,
    read: Read = "",
    device: Device = None,
) -> None:
    """Train a tagger on labeled data."""
    from seqmix.tagger import Settings, Tagger

    reading = parse_read(read)
    changes = parse_changes(change)
    tagger = Tagger(encoder, head, Settings(**{"steps": steps, **changes}), device)
    _check_place(out, data, dev, unlabeled, encoder)
    sentences = labeled_data(data, reading)
    guessed = ReadOptions(None, reading.options)
    dev_sentences = labeled_data(dev, guessed) if dev else []
    text = _text(unlabeled, guessed) if unlabeled else []
    rng = np.random.default_rng(seed)
    sentences = drawn(sentences, limit, rng)
    _say_tags(sentences, data)
    start = time.monotonic()
    if unlabeled:
        training = changes | ({} if steps is None else {"min_steps": steps})
        tagger_keys = {"encoder": encoder, "head": head, "device": device}
        values = {"tagger": tagger_keys, "training": training}
        tagger = _train_few_labels(values, sentences, text, quick, seed)
    else:
        _train_plain(tagger, sentences, quick, rng)
    tagger.save(out)
    say(f"written to {out} after {time.monotonic() - start:.0f} s")
    if dev_sentences:
        report = score_tagger(tagger, dev_sentences, dev or "").report()
        emit(f"scores on the dev data, {dev}\n{report}")


def _text(name: str, reading: ReadOptions) -> list[Sentence]:
    """Return the sentences of unlabeled text."""
    sentences = [sentence for sentence in read_data(name, reading) if len(sentence)]
    if not sentences:
        raise DataError("there is no sentence here; give text with at least one word in it", name)
    return sentences


def _train_plain(
    tagger: Tagger, sentences: Sequence[Sentence], quick: bool, rng: np.random.Generator
) -> None:
    """Train on labels alone, saying first what it does and how long it takes."""
    from seqmix.app.stages.expected import plain_seconds

    if quick:
        tagger.settings = replace(tagger.settings, lr=tagger.learning_rate)  # the folder tells it
    else:
        tagger.settings = plain_settings(tagger.settings, len(sentences), tagger.encoder)
    total = tagger.settings.total_steps(len(sentences))
    counts = f"{count(len(sentences), 'sentence')}, {count(total, 'step')}"
    say(f"training {tagger.encoder} with a {tagger.head} head on {counts} on {tagger.device}")
    if seconds := plain_seconds(tagger, sentences):
        say(f"about {duration(seconds)} here")
    with progress("training") as update:
        tagger.fit(sentences, rng, progress=update)


def _train_few_labels(
    values: dict[str, Any],
    sentences: Sequence[Sentence],
    text: Sequence[Sentence],
    quick: bool,
    seed: int,
) -> Tagger:
    """Train with the recipe few-labels, saying first what it does and how long it takes."""
    from seqmix.app.few_labels import describe, few_labels_config, train_few_labels
    from seqmix.app.stages.expected import few_labels_seconds

    config = few_labels_config(values, quick, seed)
    seconds = few_labels_seconds(config, sentences, text)
    say(f"about {duration(seconds)} here: {describe(config, len(sentences), len(text))}")
    with ExitStack() as stack:

        def watch(stage: str) -> Callable[..., None]:
            stack.close()
            return stack.enter_context(progress(stage))

        return train_few_labels(sentences, text, config, watch)


def _say_tags(sentences: Sequence[Sentence], name: str) -> None:
    """Print what is about to be learned; warn where another column seems to hold the tags."""
    counts = Counter(
        str(tag) for sentence in sentences for tag in sentence.hardened().tags if tag is not None
    )
    types = sorted({tag[2:] for tag in counts if prefixed(tag)})
    words = {token for sentence in sentences for token in sentence.tokens}
    many = len(counts) > 1000 or len(counts.keys() & words) * 2 > len(counts)
    doubt = ""
    if len(counts) == 1:
        doubt = f"every token has the tag {next(iter(counts))!r}"
    elif OUTSIDE not in counts and types:
        doubt = "no token has the tag O, which is for those outside every span"
    elif OUTSIDE not in counts and many:
        doubt = f"the {len(counts)} tags look like words"
    if doubt:
        say(
            f"warning: {name}: {doubt}; if another column holds the tags, "
            "name it with --read tag=COLUMN, counted from 0"
        )
    tags = types or list(counts)
    more = f" and {len(tags) - _SHOWN} more" if len(tags) > _SHOWN else ""
    say(f"{'types of span' if types else 'tags'}: {', '.join(tags[:_SHOWN])}{more}")


def _check_place(out: Path, *sources: str | None) -> None:
    """Fail before the training rather than after it when its result cannot be written."""
    from seqmix.tagger.model_folders import TAGGER

    refuse_source(out, *sources)
    TAGGER.refuse_other(out)
    nearest = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise DataError("cannot write here: expected a folder that is writable", nearest)
