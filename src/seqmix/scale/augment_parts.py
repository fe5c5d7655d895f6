"""Augment a large labeled set in parts, each by itself: in several processes, or on a cluster.

Sentences are dealt out at random into parts of about the same size, and each part is asked for its share, with a generator of its own.
What a pair can be made of stays random, and how often a parent may serve stays what it was, since a part has fewer parents and a smaller
share. Parts do not hang on who works on them, so neither does the outcome.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from seqmix.data.augmented import Augmentation, Augmented
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, RunError
from seqmix.protocols import Augmenter
from seqmix.scale.local_executor import Crew, Event

PART = 5000  # sentences


@dataclass(frozen=True)
class Share:
    """One part, and how many sentences it is asked for."""

    number: int
    sentences: tuple[Sentence, ...]
    n: int
    rng: np.random.Generator


def augment_in_parts(
    build: Callable[[], Augmenter],
    sentences: Sequence[Sentence],
    n: int,
    rng: np.random.Generator,
    size: int = PART,
    crew: Crew | None = None,
    workers: int = 1,
) -> Augmentation:
    """Up to n new sentences, no two alike. `build` gives a fresh augmenter and is sent to workers; without a crew, all is done here."""
    if size < 2:
        raise ConfigError(f"--part-size is {size}; a pair needs two sentences ({PART} is usual)")
    todo = shares(sentences, n, rng, size)
    made: dict[int, Augmentation] = {}

    def hear(event: Event[Share]) -> None:
        if event.kind == "failed":
            raise RunError(f"part {event.job.number + 1} of {len(todo)}: {event.value}")
        if event.kind == "done":
            made[event.job.number] = event.value

    if crew is not None:
        crew(todo, partial(augment_share, build), min(workers, len(todo)), hear)
    else:
        for share in todo:
            hear(Event("done", share, augment_share(build, share, lambda news: None)))
    return _together([made[number] for number in range(len(todo))], sentences, n)


def shares(
    sentences: Sequence[Sentence], n: int, rng: np.random.Generator, size: int
) -> list[Share]:
    """Parts of about `size` sentences; one that is no larger is augmented as it would be by itself."""
    parts = max(1, round(len(sentences) / size))
    if parts == 1:
        return [Share(0, tuple(sentences), n, rng)]
    dealt = np.array_split(rng.permutation(len(sentences)), parts)
    ends = np.rint(np.cumsum([0, *map(len, dealt)]) * n / len(sentences)).astype(int).tolist()
    return [
        Share(
            number,
            tuple(sentences[i] for i in sorted(own.tolist())),
            ends[number + 1] - ends[number],
            generator,
        )
        for number, (own, generator) in enumerate(zip(dealt, rng.spawn(parts), strict=True))
    ]


def augment_share(
    build: Callable[[], Augmenter], share: Share, tell: Callable[[object], None]
) -> Augmentation:
    """What a worker does. subtle: a fresh augmenter and one thread, since known scores are kept, and threads change their last bits."""
    with _one_thread():
        return build().augment(share.sentences, share.n, share.rng)


def _together(made: Sequence[Augmentation], sentences: Sequence[Sentence], n: int) -> Augmentation:
    """One after the other; what another part made as well, or had, comes once."""
    seen = {sentence.tokens for sentence in sentences}
    outputs: list[Augmented] = []
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    twice = 0
    for part in made:
        counts.update(part.counts)
        reasons.update([part.reason] if part.reason is not None else [])
        for one in part:
            if one.sentence.tokens in seen and one.lineage.method != "duplicate":
                twice += 1
                continue
            seen.add(one.sentence.tokens)
            outputs.append(one)
    told = [
        f"{times} parts: {reason}" if len(made) > 1 else reason for reason, times in reasons.items()
    ]
    told += [f"{twice} came out of two parts"] if twice else []
    why = "; ".join(told) if len(outputs) < n else None
    return Augmentation(
        tuple(outputs), n, why, tuple(one for part in made for one in part.rejected), dict(counts)
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
