"""Baselines without embeddings or language model (Dai and Adel, 2020), with SeqMix's contract.

- mention: a span is replaced by another mention of its type; the tags follow its length.
- token: each token is replaced, with probability p, by one that has the same tag somewhere.
- shuffle: the tokens of each segment (a span or a run of O) are shuffled with probability p.
- duplicate: the sentences unchanged, which shows what more training on the same data gains.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from seqmix.augment.settings import METHODS, Method
from seqmix.data.augmented import Augmentation, Augmented, Lineage
from seqmix.data.scheme import tag
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, Span, prefixed, spans
from seqmix.errors import ConfigError

_PATIENCE = 200  # tries per sentence in a row that may give nothing new

Change = Callable[[int, np.random.Generator], tuple[Sentence, Lineage] | None]


@dataclass(frozen=True)
class Replacement:
    """A baseline without a language model: `Replacement("mention").augment(sentences, n, rng)`.

    Args:
        method: `mention`, `token`, `shuffle` or `duplicate`.
        probability: That of replacing a token (`token`) or shuffling a segment (`shuffle`).
    """

    method: Method = "mention"
    probability: float = 0.3

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ConfigError(f"there is no method {self.method!r}; there are {', '.join(METHODS)}")
        if not 0 < self.probability <= 1:
            raise ConfigError(
                f"probability is {self.probability:g}; it must lie above 0 and be at most 1"
            )

    def augment(
        self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
    ) -> Augmentation:
        """Generate up to n sentences with hard labels from parents in random order.

        A parent is used again only after all others.

        Args:
            sentences: The parents; those with missing labels are not used.
            n: How many to generate; the result says why there are fewer, if there are.
            rng: The source of all randomness.
        """
        whole = [
            sentence.hardened()
            for sentence in sentences
            if sentence.labeled and None not in sentence.tags
        ]
        if n < 1 or not whole:
            return Augmentation((), n, "there is no fully labeled sentence" if n > 0 else None)
        if self.method == "duplicate":
            return Augmentation(tuple(_duplicates(whole, n, rng)), n)
        methods = {"mention": _mentions, "token": _tokens, "shuffle": _shuffles}
        change = methods[self.method](whole, self.probability)
        seen = {sentence.tokens for sentence in whole}
        outputs: list[Augmented] = []
        idle = 0
        while len(outputs) < n and idle < _PATIENCE * len(whole):
            for at in rng.permutation(len(whole)):
                changed = change(int(at), rng)
                if changed is None or changed[0].tokens in seen:
                    idle += 1
                    continue
                idle = 0
                sentence, lineage = changed
                seen.add(sentence.tokens)
                id = f"{self.method}({whole[at].id})#{len(outputs) + 1}"
                outputs.append(Augmented(replace(sentence, id=id), lineage))
                if len(outputs) == n:
                    break
        reason = f"{self.method} finds no other new sentence" if len(outputs) < n else None
        return Augmentation(tuple(outputs), n, reason)


def _duplicates(sentences: Sequence[Sentence], n: int, rng: np.random.Generator) -> list[Augmented]:
    order: list[int] = []
    while len(order) < n:
        order += rng.permutation(len(sentences)).tolist()
    return [
        Augmented(
            Sentence(
                f"duplicate({sentences[at].id})#{number}", sentences[at].tokens, sentences[at].tags
            ),
            Lineage("duplicate", (sentences[at].id,), ((0, len(sentences[at])),)),
        )
        for number, at in enumerate(order[:n], 1)
    ]


def _mentions(sentences: Sequence[Sentence], probability: float) -> Change:
    mentions = [
        spans([str(row) for row in sentence.tags])
        if any(prefixed(str(r)) for r in sentence.tags)
        else []
        for sentence in sentences
    ]
    by_type: dict[str, list[tuple[int, Span]]] = defaultdict(list)
    for at, in_sentence in enumerate(mentions):
        for span in in_sentence:
            by_type[span.type].append((at, span))

    def change(at: int, rng: np.random.Generator) -> tuple[Sentence, Lineage] | None:
        if not mentions[at]:
            return None
        span = mentions[at][int(rng.integers(len(mentions[at])))]
        donor, source = by_type[span.type][int(rng.integers(len(by_type[span.type])))]
        sentence, words = sentences[at], sentences[donor].tokens[source.start : source.end]
        tokens = (*sentence.tokens[: span.start], *words, *sentence.tokens[span.end :])
        shift = len(words) - (span.end - span.start)
        moved = [
            s if s.end <= span.start else Span(s.start + shift, s.end + shift, s.type)
            for s in mentions[at]
            if s != span
        ]
        tags = tag([*moved, Span(span.start, span.start + len(words), span.type)], len(tokens))
        lineage = Lineage(
            "mention",
            (sentence.id, sentences[donor].id),
            ((span.start, span.end), (source.start, source.end)),
        )
        return Sentence(sentence.id, tokens, tuple(tags)), lineage

    return change


def _tokens(sentences: Sequence[Sentence], probability: float) -> Change:
    by_tag: dict[str, list[str]] = defaultdict(list)
    for sentence in sentences:
        for token, row in zip(sentence.tokens, sentence.tags, strict=True):
            by_tag[str(row)].append(token)

    def change(at: int, rng: np.random.Generator) -> tuple[Sentence, Lineage]:
        sentence = sentences[at]
        hit = rng.random(len(sentence)) < probability
        tokens = tuple(
            by_tag[str(row)][int(rng.integers(len(by_tag[str(row)])))] if changed else token
            for token, row, changed in zip(sentence.tokens, sentence.tags, hit, strict=True)
        )
        return Sentence(sentence.id, tokens, sentence.tags), Lineage(
            "token", (sentence.id,), ((0, len(sentence)),)
        )

    return change


def _shuffles(sentences: Sequence[Sentence], probability: float) -> Change:
    def change(at: int, rng: np.random.Generator) -> tuple[Sentence, Lineage]:
        sentence = sentences[at]
        tokens = list(sentence.tokens)
        for start, end in _segments([str(row) for row in sentence.tags]):
            if rng.random() < probability:
                tokens[start:end] = [tokens[i] for i in start + rng.permutation(end - start)]
        return Sentence(sentence.id, tuple(tokens), sentence.tags), Lineage(
            "shuffle", (sentence.id,), ((0, len(sentence)),)
        )

    return change


def _segments(tags: Sequence[str]) -> list[tuple[int, int]]:
    """Return the bounds of spans and of the runs of O between them."""
    inside = spans(tags) if any(prefixed(name) or name == OUTSIDE for name in tags) else []
    edges = [0, *(edge for span in inside for edge in (span.start, span.end)), len(tags)]
    return [(a, b) for a, b in pairwise(edges) if b > a]
