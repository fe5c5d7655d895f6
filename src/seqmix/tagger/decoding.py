"""From scores to tags: the probability of each token's tag, and the best paths of a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from seqmix.data.scheme import legal_moves
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.tagger.crf import IMPOSSIBLE, Chain, best_paths, log_partition, marginals
from seqmix.tagger.inference import Tensors
from seqmix.tagger.network import padded
from seqmix.tagger.paths import Path, paths_of

# Which tags may start, follow each other and end: [n_tags], [from, to], [n_tags].
Legal = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@lru_cache(maxsize=16)
def legal_rules(tag_set: TagSet, device: torch.device) -> Legal:
    """Return the rules of legal paths on the device."""
    start, moves, end = (torch.from_numpy(mask).to(device) for mask in legal_moves(tag_set))
    return start, moves, end


def by_token(
    scores: torch.Tensor, sentences: Sequence[Sentence], ends: torch.Tensor, chain: Chain | None
) -> torch.Tensor:
    """Return p(tag | token), flat [n_words, n_tags]; for a CRF these are the marginals."""
    if chain is None:
        return torch.softmax(scores, dim=1)
    lengths = tuple(len(sentence) for sentence in sentences)
    full = marginals(padded(scores, lengths), ends, chain)
    return torch.cat([rows[:length] for rows, length in zip(full, lengths, strict=True)])


def search(
    scores: torch.Tensor,
    sentences: Sequence[Sentence],
    ends: torch.Tensor,
    chain: Chain | None,
    tag_set: TagSet,
    n: int,
    legal: Legal | None,
    keep: bool,
) -> Tensors:
    """Return the n best paths of each sentence, their probabilities, and which of them exist.

    `legal` restricts the paths; `keep` admits only those that agree with a sentence's labels.
    """
    lengths = tuple(len(sentence) for sentence in sentences)
    if chain is None:
        scores = torch.log_softmax(scores, dim=1)
        log_z = torch.zeros(len(lengths), device=scores.device)
        zeros, k = scores.new_zeros, len(tag_set)
        chain = Chain(zeros(k, k), zeros(k), zeros(k))
    else:
        log_z = log_partition(padded(scores, lengths), ends, chain)
    if legal is not None:
        chain = chain.restricted(*legal)
    if keep:
        rows = np.concatenate([tag_set.rows(sentence) for sentence in sentences])
        scores = scores.masked_fill(torch.from_numpy(rows == 0).to(scores.device), IMPOSSIBLE)
    paths, best = best_paths(padded(scores, lengths), ends, chain, n)
    # In float64, since the best path of a long sentence may be too improbable for float32.
    probabilities = (best - log_z[:, None]).double().exp()
    # The best path always exists; others only if they break no more rules than it.
    exists = best > best[:, :1] + IMPOSSIBLE / 2
    return paths, probabilities, exists


def to_paths(tensors: Tensors, sentences: Sequence[Sentence], tag_set: TagSet) -> list[list[Path]]:
    """Return the paths of `search`, best first; a fourth tensor holds the rows of `by_token`."""
    best, probabilities, exists, *rows = (tensor.numpy() for tensor in tensors)
    return paths_of(best, probabilities, exists, sentences, tag_set, *rows)


def with_dropout(
    states: Iterable[NDArray[np.float32]],
    head: nn.Linear,
    dropout: float,
    passes: int,
    rng: np.random.Generator,
) -> Iterator[NDArray[np.float32]]:
    """Yield p(tag | token) [passes, n_tokens, n_tags] of hidden states under dropout masks."""
    weight, bias = (tensor.detach().cpu().numpy() for tensor in (head.weight, head.bias))
    keep = 1 - dropout
    masks = (rng.random((passes, weight.shape[1])) < keep).astype(np.float32) / keep
    for rows in states:
        scores = np.einsum("th,ph,kh->ptk", rows, masks, weight, optimize=True) + bias
        scores -= scores.max(axis=2, keepdims=True)
        odds = np.exp(scores)
        yield odds / odds.sum(axis=2, keepdims=True)
