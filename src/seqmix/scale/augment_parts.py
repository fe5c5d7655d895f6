"""Augment a large labeled set in parts, in several processes or on a cluster.

Sentences are dealt at random into parts of equal size; each part has its share of the output and
its own generator, so the result does not depend on who works on which part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from seqmix.data.augmented import Augmentation, Augmented
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, RunError
from seqmix.protocols import Augmenter
from seqmix.scale.local_executor import Executor, JobEvent

PART = 5000  # sentences


@dataclass(frozen=True)
class Share:
    """One part, and how many sentences are generated from it."""

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
    executor: Executor | None = None,
    workers: int = 1,
) -> Augmentation:
    """Generate up to n sentences, no two alike; without an executor, in this process.

    `build` returns a fresh augmenter and is sent to the workers.
    """
    if size < 2:
        raise ConfigError(f"--part-size must be at least 2, since a pair needs two; got {size}")
    todo = shares(sentences, n, rng, size)
    finished: dict[int, Augmentation] = {}

    def on_event(event: JobEvent[Share]) -> None:
        if event.kind == "failed":
            raise RunError(f"part {event.job.number + 1} of {len(todo)}: {event.value}")
        if event.kind == "done":
            finished[event.job.number] = event.value

    work = partial(augment_share, build)
    if executor is not None:
        executor(todo, work, min(workers, len(todo)), on_event)
    else:
        for share in todo:
            on_event(JobEvent("done", share, work(share)))
    return _merged([finished[number] for number in range(len(todo))], sentences, n)


def shares(
    sentences: Sequence[Sentence], n: int, rng: np.random.Generator, size: int
) -> list[Share]:
    """Deal sentences into parts of about `size`; a single part uses the generator itself."""
    parts = max(1, round(len(sentences) / size))
    if parts == 1:
        return [Share(0, tuple(sentences), n, rng)]
    dealt = np.array_split(rng.permutation(len(sentences)), parts)
    ends = np.rint(np.cumsum([0, *map(len, dealt)]) * n / len(sentences)).astype(int).tolist()
    return [
        Share(
            number,
            tuple(sentences[i] for i in sorted(places.tolist())),
            ends[number + 1] - ends[number],
            generator,
        )
        for number, (places, generator) in enumerate(zip(dealt, rng.spawn(parts), strict=True))
    ]


def augment_share(
    build: Callable[[], Augmenter], share: Share, emit: Callable[[object], None] | None = None
) -> Augmentation:
    """Generate the sentences of one part with a fresh augmenter, which has cached no scores."""
    return build().augment(share.sentences, share.n, share.rng)


def _merged(parts: Sequence[Augmentation], sentences: Sequence[Sentence], n: int) -> Augmentation:
    """Join the parts; a sentence that two of them generated is kept once."""
    seen = {sentence.tokens for sentence in sentences}
    outputs: list[Augmented] = []
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    repeated = 0
    for part in parts:
        counts.update(part.counts)
        reasons.update([part.reason] if part.reason is not None else [])
        for output in part:
            if output.sentence.tokens in seen and output.lineage.method != "duplicate":
                repeated += 1
                continue
            seen.add(output.sentence.tokens)
            outputs.append(output)
    why = [
        f"{times} parts: {reason}" if len(parts) > 1 else reason
        for reason, times in reasons.items()
    ]
    why += [f"{repeated} came out of two parts"] if repeated else []
    return Augmentation(
        tuple(outputs),
        n,
        "; ".join(why) if len(outputs) < n else None,
        tuple(candidate for part in parts for candidate in part.rejected),
        dict(counts),
    )
