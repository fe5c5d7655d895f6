"""What several processes train in the tests, and one, to compare: `accelerate launch -m tests.support.together STILL_ENCODER ENCODER OUT`."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqmix.data.sentence import Sentence
from seqmix.errors import SeqMixError
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.training.processes import ALONE, Processes, joined
from tests.support import tiny


@dataclass(frozen=True)
class Case:
    """A training without dropout in the head; also none in the encoder unless `dropping`."""

    head: str
    sentences: Callable[[], list[Sentence]]
    batch_size: int
    steps: int = 8
    dropping: bool = False


def half_labeled() -> list[Sentence]:
    """Soft rows and missing ones, in some sentences more than in others: a share's part of the words is not its part of the labels."""

    def soft(tag: str) -> str | dict[str, float]:
        return {tag: 0.7, "O": 0.3} if tag != "O" else tag

    return [
        s.with_tags([None if 0 < i < n % 5 else soft(tag) for i, tag in enumerate(s.tags)])
        for n, s in enumerate(tiny.toy(15))
    ]


def with_single_words() -> list[Sentence]:
    """Sentences of one word have no neighbors, and say nothing about a CRF's transitions."""
    return [
        s
        for n, own in enumerate(tiny.toy(6))
        for s in (own, Sentence(f"one:{n}", own.tokens[:1], own.tags[:1]))
    ]


CASES = {
    "linear": Case("linear", tiny.toy, 8),
    "crf": Case("crf", tiny.toy, 8),
    "odd batches": Case("linear", lambda: tiny.toy(13), 5),
    "a last batch of one": Case("crf", lambda: tiny.toy(9), 4),
    "batches of one": Case("linear", lambda: tiny.toy(5), 1),
    "labels in part": Case("linear", half_labeled, 6),
    "labels in part, crf": Case("crf", half_labeled, 6),
    "single words, crf": Case("crf", with_single_words, 2),
    "dropout": Case("linear", lambda: tiny.toy(12), 6, dropping=True),
    "dropout again": Case("linear", lambda: tiny.toy(12), 6, dropping=True),
}


def train(
    case: Case, encoders: dict[bool, str], processes: Processes = ALONE
) -> tuple[Tagger, dict[str, Any]]:
    """The tagger, and what was seen on the way."""
    losses: list[float] = []
    seeds: list[int] = []

    def seen(done: int, total: int, loss: float) -> None:
        losses.append(loss)
        seeds.append(torch.initial_seed())

    # epsilon: with Adam's own, a gradient that is 0 but for rounding moves its weight as far as any other, and CPUs round differently
    settings = Settings(
        steps=case.steps, batch_size=case.batch_size, lr=1e-3, dropout=0.0, epsilon=1e-4
    )
    tagger = Tagger(encoders[case.dropping], case.head, settings, "cpu")
    tagger.fit(case.sentences(), np.random.default_rng(4), progress=seen, processes=processes)
    digest = hashlib.sha256()
    for weight in tagger._network.state_dict().values():
        digest.update(weight.numpy().tobytes())
    return tagger, {"losses": losses, "seeds": sorted(set(seeds)), "weights": digest.hexdigest()}


def main(still: str, dropping: str, out: Path) -> None:
    told = {}
    with joined("cpu") as processes:
        for name, case in CASES.items():
            tagger, told[name] = train(case, {False: still, True: dropping}, processes)
            if processes.first:
                tagger.save(out / name)
        different = Case("linear", lambda: tiny.toy(8 + processes.index), 4)
        try:
            train(different, {False: still}, processes)
        except SeqMixError as error:
            told["different data"] = {"error": str(error)}
    (out / f"{processes.index} of {processes.count}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
