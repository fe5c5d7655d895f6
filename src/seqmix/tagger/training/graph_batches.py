"""Batches of one fixed shape, as a captured CUDA graph needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqmix.tagger.batches import pack
from seqmix.tagger.training.schedule import Step, TrainingSet

Arrays = dict[str, NDArray[Any]]  # by name, one row per step


@dataclass(frozen=True)
class Shape:
    """What a graph is captured for."""

    rows: int
    width: int
    sentences: int
    length: int  # words of the longest sentence, for a CRF; 0 for a linear head
    mixup: int | None  # the layer before which words are mixed
    complete: bool  # whether no word lacks a label, for a CRF
    weighted: bool = False  # whether words have weights, for a linear head


def lay_out(
    data: TrainingSet,
    steps: Sequence[Step],
    width: int,
    sentences: int,
    length: int,
    complete: bool,
    first_position: int,
) -> tuple[Shape, Arrays]:
    """Return the pieces of each step's batch in rows, and the targets where the head reads them."""
    packed = [pack([data.windows[i] for i in step.chosen], first_position, width) for step in steps]
    rows = -(-max(len(batch.ids) for batch in packed) // 4) * 4
    weighted = data.weights is not None and not length
    pairs = steps[0].mixup
    mixup = None if pairs is None else pairs.layer
    shape = Shape(rows, width, sentences, length, mixup, complete, weighted)
    arrays = _empty(shape, len(steps), data.rows[0].shape[1], first_position)
    arrays["rates"] = np.array([step.rate for step in steps], dtype=np.float32)
    for i, (step, batch) in enumerate(zip(steps, packed, strict=True)):
        used, n = len(batch.ids), len(step.chosen)
        for name in ("ids", "positions", "segments"):
            arrays[name][i, :used] = getattr(batch, name).numpy()
        words = batch.words.numpy()
        arrays["lengths"][i, :n] = batch.lengths
        chosen = list(step.chosen)
        arrays["present"][i, :n] = 1 if data.weights is None else data.weights[chosen]
        places = _box_places(batch.lengths, length) if length else words
        arrays["targets"][i, places] = np.concatenate([data.rows[s] for s in step.chosen])
        if length:
            arrays["words"][i, places] = words
        if shape.weighted and data.weights is not None:
            arrays["word_weights"][i, places] = data.weights[chosen].repeat(batch.lengths)
        if step.mixup is not None:
            arrays["partners"][i, words] = words[step.mixup.partners]
            arrays["weights"][i, words] = step.mixup.weights
    return shape, arrays


def _empty(shape: Shape, steps: int, n_tags: int, first_position: int) -> Arrays:
    """Return the arrays of batches without sentences."""
    box = (steps, shape.rows, shape.width)
    pieces = shape.rows * shape.width
    places = shape.sentences * shape.length or pieces
    words = np.zeros(places, dtype=np.int64) if shape.length else np.arange(pieces)
    arrays: Arrays = {
        "ids": np.zeros(box, dtype=np.int64),
        "positions": np.full(box, first_position),
        "segments": np.zeros(box, dtype=np.int64),
        "targets": np.full((steps, places, n_tags), np.nan, dtype=np.float32),
        "words": np.tile(words, (steps, 1)),
        "lengths": np.ones((steps, shape.sentences), dtype=np.int64),
        "present": np.zeros((steps, shape.sentences), dtype=np.float32),
    }
    if shape.weighted:
        arrays["word_weights"] = np.zeros((steps, places), dtype=np.float32)
    if shape.mixup is not None:
        arrays["partners"] = np.tile(np.arange(pieces), (steps, 1))
        arrays["weights"] = np.ones((steps, pieces), dtype=np.float32)
    return arrays


def _box_places(lengths: Sequence[int], longest: int) -> NDArray[Any]:
    """Return the place of each word when every sentence has `longest` places."""
    return np.concatenate([np.arange(length) + s * longest for s, length in enumerate(lengths)])
