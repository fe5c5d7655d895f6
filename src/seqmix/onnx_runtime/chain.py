"""The linear-chain CRF of `seqmix.tagger.crf` in numpy: partition, marginals, n best paths.

Shapes: emissions [batch, length, tags], lengths [batch]; see `Chain` for its own.
Positions at or behind a sentence's length are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqmix.data.scheme import legal_moves
from seqmix.data.tagset import TagSet

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
IMPOSSIBLE = -1e4  # finite, so that labels that contradict the scheme still leave a path


@dataclass(frozen=True)
class Chain:
    """Scores of neighboring tags, and of tags at both ends of a sentence."""

    transitions: Floats  # [from, to]
    start: Floats  # [tags]
    end: Floats  # [tags]

    def restricted(self, tag_set: TagSet) -> Chain:
        """Return the same chain with the moves that the tag scheme forbids made impossible."""
        start, moves, end = legal_moves(tag_set)
        pairs = ((self.transitions, moves), (self.start, start), (self.end, end))
        return Chain(*(np.where(allowed, scores, IMPOSSIBLE) for scores, allowed in pairs))


def free_chain(tags: int) -> Chain:
    """Return the chain of a linear head: every move scores zero."""
    return Chain(np.zeros((tags, tags)), np.zeros(tags), np.zeros(tags))


def log_sum(scores: Floats, axis: int) -> Floats:
    """Return log Σ exp along an axis."""
    highest = scores.max(axis=axis, keepdims=True)
    total: Floats = np.log(np.exp(scores - highest).sum(axis=axis)) + highest.squeeze(axis)
    return total


def log_partition(emissions: Floats, lengths: Ints, chain: Chain) -> Floats:
    """Return the log of the summed exp-scores of all paths [batch]."""
    return log_sum(_forward(emissions, lengths, chain)[:, -1] + chain.end, axis=1)


def marginals(emissions: Floats, lengths: Ints, chain: Chain) -> Floats:
    """Return p(tag at t | sentence) [batch, length, tags]; behind the end it is meaningless."""
    forward = _forward(emissions, lengths, chain)
    backward = np.empty_like(emissions)
    beta = np.broadcast_to(chain.end, emissions[:, 0].shape)
    for t in range(emissions.shape[1] - 1, -1, -1):
        backward[:, t] = beta
        step = log_sum(chain.transitions + (emissions[:, t] + beta)[:, None, :], axis=2)
        beta = np.where((t < lengths)[:, None], step, beta)
    # Divided by the sum of each row, since log Z has lost digits after hundreds of tokens.
    return softmax(forward + backward)


def softmax(scores: Floats) -> Floats:
    """Return exp-scores that sum to 1 along the last axis."""
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares: Floats = odds / odds.sum(axis=-1, keepdims=True)
    return shares


def best_paths(emissions: Floats, lengths: Ints, chain: Chain, n: int = 1) -> tuple[Ints, Floats]:
    """Return the n paths of highest score, best first: tags [batch, n, length], scores [batch, n].

    A score is -inf where there are fewer paths; behind a sentence's end its last tag repeats.
    """
    batch, length, tags = emissions.shape
    scores = np.full((batch, n, tags), -np.inf)
    scores[:, 0] = chain.start + emissions[:, 0]
    pointers = np.empty((max(0, length - 1), batch, n, tags), dtype=np.int64)
    same = np.arange(n * tags).reshape(n, tags)
    for t in range(1, length):
        moved = (scores[..., None] + chain.transitions).reshape(batch, n * tags, tags)
        best, came = _top(moved, n)
        active = (t < lengths)[:, None, None]
        scores = np.where(active, best + emissions[:, None, t], scores)
        pointers[t - 1] = np.where(active, came, same)
    # A state numbers rank and tag: rank * tags + tag.
    final, state = _top((scores + chain.end).reshape(batch, n * tags), min(n, n * tags))
    path = [state % tags]
    rows = np.arange(batch)[:, None]
    for came in pointers[::-1].reshape(length - 1, batch, n * tags):
        state = came[rows, state]
        path.append(state % tags)
    return np.stack(path[::-1], axis=2), final


def _top(scores: Floats, n: int) -> tuple[Floats, Ints]:
    """Return the n highest scores along axis 1, highest first, and where they are."""
    if n == 1:  # of a short sentence alone, take_along_axis would take longer than all the rest
        return scores.max(axis=1, keepdims=True), scores.argmax(axis=1, keepdims=True)
    at = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    return np.take_along_axis(scores, at, axis=1), at


def _forward(emissions: Floats, lengths: Ints, chain: Chain) -> Floats:
    """Return the log of the summed exp-scores of all paths that end in each tag at t.

    Behind a sentence's end it is constant.
    """
    alphas = np.empty_like(emissions)
    alpha = alphas[:, 0] = chain.start + emissions[:, 0]
    for t in range(1, emissions.shape[1]):
        step = log_sum(alpha[:, :, None] + chain.transitions, axis=1) + emissions[:, t]
        alpha = alphas[:, t] = np.where((t < lengths)[:, None], step, alpha)
    return alphas
