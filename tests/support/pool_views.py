"""A pool in memory: arrays by id, made from a seed that hangs on the id.

So shuffling the pool changes no number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from zlib import crc32

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.query.spec import PolicySpec
from seqmix.query.uncertainty import least_confidence_sum, margin, token_entropy

MEASURES = {"entropy": token_entropy, "least": least_confidence_sum, "margin": margin}
TAGS = TagSet(("O", "B-LOC", "B-PER", "I-LOC", "I-PER"))


@dataclass
class FakeView:
    """What a test does not give is left out, and asking for it fails."""

    pool: list[Sentence]
    p: dict[str, np.ndarray] = field(default_factory=dict)
    path: dict[str, tuple[tuple[str, ...], float]] = field(default_factory=dict)
    vectors: dict[str, np.ndarray] = field(default_factory=dict)
    labeled: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    tags: Counter[str] = field(default_factory=Counter)
    vote: dict[str, np.ndarray] = field(default_factory=dict)
    masks: dict[str, np.ndarray] = field(default_factory=dict)
    past: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    tag_set: TagSet = TAGS
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    @property
    def ids(self) -> list[str]:
        return [sentence.id for sentence in self.pool]

    def sentences(self) -> Iterator[Sentence]:
        return iter(self.pool)

    def probs(self) -> Iterator[tuple[str, np.ndarray]]:
        return ((id, self.p[id]) for id in self.ids)

    def unsure(self, measure: str) -> Iterator[tuple[str, float]]:
        return ((id, MEASURES[measure](probs)) for id, probs in self.probs())

    def paths(self, legal: bool = True) -> Iterator[tuple[str, tuple[str, ...], float]]:
        return ((id, *self.path[id]) for id in self.ids)

    def embeddings(self) -> Iterator[tuple[str, np.ndarray]]:
        return ((id, self.vectors[id]) for id in self.ids)

    def labeled_embeddings(self) -> np.ndarray:
        return self.labeled

    def labeled_tags(self) -> Counter[str]:
        return self.tags

    def votes(self) -> Iterator[tuple[str, np.ndarray]]:
        return ((id, self.vote[id]) for id in self.ids)

    def dropped(self, passes: int) -> Iterator[tuple[str, np.ndarray]]:
        return ((id, self.masks[id][:passes]) for id in self.ids)

    def history(self) -> dict[str, list[tuple[str, ...]]]:
        return self.past

    def shuffled(self, seed: int) -> FakeView:
        order = np.random.default_rng(seed).permutation(len(self.pool))
        return replace(self, pool=[self.pool[i] for i in order])


def choose(policy, view, n: int, rng: np.random.Generator) -> dict[str, float]:
    """What a policy, or a score, chooses; the view shares its generator, as a learner does."""
    spec = policy if isinstance(policy, PolicySpec) else PolicySpec(policy)
    view.rng = rng
    return spec.choose(view, n, rng)


def distributions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.dirichlet(np.full(len(TAGS), 0.5), size=shape).astype(np.float32)


def make_view(n: int, seed: int = 0, rounds: int = 2, entity_free: float = 0.4) -> FakeView:
    """A whole pool of n sentences of 1 to 8 tokens."""
    view = FakeView(
        [],
        labeled=np.random.default_rng(seed).normal(size=(3, 6)).astype(np.float32),
        tags=Counter({"O": 80, "B-PER": 15, "B-LOC": 5}),
    )
    for i in range(n):
        id = f"s{i}"
        rng = np.random.default_rng([seed, crc32(id.encode())])
        length = int(rng.integers(1, 9))
        view.pool.append(Sentence(id, tuple(f"w{i}.{t}" for t in range(length))))
        view.p[id] = distributions(rng, length)
        free = rng.random() < entity_free
        view.path[id] = (
            tuple("O" if free else str(tag) for tag in rng.choice(TAGS.tags[1:], length)),
            float(rng.random()),
        )
        view.vectors[id] = rng.normal(size=6).astype(np.float32)
        view.vote[id] = rng.integers(len(TAGS), size=(3, length))
        view.masks[id] = distributions(rng, 10, length)
        view.past[id] = [
            tuple(str(tag) for tag in rng.choice(TAGS.tags, length)) for _ in range(rounds)
        ]
    if not rounds:
        view.past.clear()
    return view


def snapshot(view: FakeView) -> bytes:
    """All that a view holds, to see that nobody changed it."""
    parts = [repr((view.pool, view.path, view.past, view.tag_set)).encode(), view.labeled.tobytes()]
    for arrays in (view.p, view.vectors, view.vote, view.masks):
        parts += [id.encode() + array.tobytes() for id, array in arrays.items()]
    return b"".join(parts)
