"""From a network's scores to tags: the probability of each token's tag, and the most probable ways to tag a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.tagger.crf import IMPOSSIBLE, Chain, best_paths, log_partition, marginals
from seqmix.tagger.inference import Parts
from seqmix.tagger.network import padded

Legal = tuple[
    torch.Tensor, torch.Tensor, torch.Tensor
]  # start [n_tags], moves [from, to], end [n_tags]


@dataclass(frozen=True)
class Path:
    """One way to tag a sentence, and how probable the tagger finds it."""

    tags: tuple[str, ...]
    probability: float
    by_token: tuple[float, ...] = ()  # the probability of each token's tag, when asked for


def by_token(
    scores: torch.Tensor, own: Sequence[Sentence], ends: torch.Tensor, chain: Chain | None
) -> torch.Tensor:
    """p(tag | token), flat [n_words, n_tags]; with a CRF's chain the marginals."""
    if chain is None:
        return torch.softmax(scores, dim=1)
    lengths = tuple(len(s) for s in own)
    full = marginals(padded(scores, lengths), ends, chain)
    return torch.cat([rows[:length] for rows, length in zip(full, lengths, strict=True)])


def search(
    scores: torch.Tensor,
    own: Sequence[Sentence],
    ends: torch.Tensor,
    chain: Chain | None,
    known: TagSet,
    n: int,
    legal: Legal | None,
    keep: bool,
) -> Parts:
    """The n best paths of each sentence, how probable they are, and which of them there are: a short sentence may have fewer.

    `legal`: which tags may begin, follow and end, if not all; `keep`: only paths that agree with the labels the sentences have.
    """
    lengths = tuple(len(s) for s in own)
    if chain is None:
        scores = torch.log_softmax(scores, dim=1)
        log_z = torch.zeros(len(lengths), device=scores.device)
        zeros = scores.new_zeros
        chain = Chain(zeros(len(known), len(known)), zeros(len(known)), zeros(len(known)))
    else:
        log_z = log_partition(padded(scores, lengths), ends, chain)
    if legal is not None:
        chain = chain.restricted(*legal)
    if keep:
        rows = np.concatenate([known.rows(s) for s in own])
        scores = scores.masked_fill(torch.from_numpy(rows == 0).to(scores.device), IMPOSSIBLE)
    paths, best = best_paths(padded(scores, lengths), ends, chain, n)
    chances = (
        (best - log_z[:, None]).double().exp()
    )  # a long sentence's best path may be no float32
    there = (
        best > best[:, :1] + IMPOSSIBLE / 2
    )  # the best always; others only if they break no more rules than it
    return paths, chances, there


def told(found: Parts, own: Sequence[Sentence], known: TagSet) -> list[list[Path]]:
    """What `search` found in words, best first; with the flat rows of `by_token` behind, these are told too."""
    paths, chances, there, *sure = found
    by_word = (
        [rows.tolist() for rows in sure[0].split([len(s) for s in own])]
        if sure
        else [[] for _ in own]
    )
    return [
        [
            Path(
                tuple(known.tags[i] for i in path[: len(sentence)]),
                chance,
                tuple(
                    row[i] for row, i in zip(rows, path, strict=False)
                ),  # behind its end a path goes on
            )
            for path, chance, real in zip(ways, likely, kept, strict=True)
            if real
        ]
        for sentence, rows, ways, likely, kept in zip(
            own, by_word, *(t.tolist() for t in (paths, chances, there)), strict=True
        )
    ]
