"""The linear-chain CRF, exactly: partition, target score, marginals, best and n-best paths.

Shapes: emissions [batch, length, tags], lengths [batch]; `Chain` holds transitions [tags, tags] (from, to), start [tags], end [tags].
Everything is in log space; positions at or behind a sentence's length are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

IMPOSSIBLE = (
    -1e4
)  # subtle: finite, so that labels that contradict the scheme still leave a path, of probability 0


@dataclass(frozen=True)
class Chain:
    """Scores of tags beside each other and at both ends of a sentence."""

    transitions: Tensor  # [tags, tags]: row = from, column = to
    start: Tensor  # [tags]
    end: Tensor  # [tags]

    def restricted(self, start: Tensor, moves: Tensor, end: Tensor) -> Chain:
        """The same chain with forbidden moves (False in the masks) made impossible."""
        pairs = ((self.transitions, moves), (self.start, start), (self.end, end))
        return Chain(*(scores.masked_fill(~allowed, IMPOSSIBLE) for scores, allowed in pairs))


def log_partition(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """log of the summed exp-score of every path [batch]."""
    return torch.logsumexp(_forward(emissions, lengths, chain)[-1] + chain.end, dim=1)


def log_partition_by_halves(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """The same in log(length) steps instead of length: neighboring steps are matrices [tags, tags], multiplied in pairs.

    More arithmetic in far fewer kernels, which is what a GPU wants of a few tags; behind a sentence's end stands the identity.
    """
    batch, length, tags = emissions.shape
    moves = chain.transitions + emissions[:, 1:, None, :]  # [batch, length - 1, from, to]
    same = torch.full_like(chain.transitions, IMPOSSIBLE).fill_diagonal_(0)
    inside = torch.arange(1, length, device=emissions.device) < lengths[:, None]
    moves = torch.where(inside[:, :, None, None], moves, same)
    while moves.shape[1] > 1:
        if moves.shape[1] % 2:
            moves = torch.cat([moves, same.expand(batch, 1, tags, tags)], dim=1)
        moves = torch.logsumexp(moves[:, ::2, :, :, None] + moves[:, 1::2, None, :, :], dim=3)
    first = chain.start + emissions[:, 0]
    last = torch.logsumexp(first[:, :, None] + moves[:, 0], dim=1) if length > 1 else first
    return torch.logsumexp(last + chain.end, dim=1)


def target_score(
    emissions: Tensor, lengths: Tensor, rows: Tensor, chain: Chain, complete: bool | None = None
) -> Tensor:
    """The score of the labels [batch]: rows [batch, length, tags] are distributions, a row of NaN is missing.

    A labeled token counts with its expected score under its row, neighbors with their expected transition; a hard row is the special
    case that gives the score of the path. A missing token is summed out over all its tags, so labels in part cost no guess.
    `complete` says that no token is missing, for callers who know; else the rows are looked at.
    """
    known = ~torch.isnan(rows).any(dim=2)  # [batch, length]
    q = torch.nan_to_num(rows)
    inside = torch.arange(rows.shape[1], device=rows.device) < lengths[:, None]
    if complete if complete is not None else bool((known | ~inside).all()):
        return _expected_score(emissions, lengths, q * inside[:, :, None], chain)
    # subtle: a labeled token is one pseudo-state whose emission and transitions are expectations under its row; its log-sum is
    # kept as a single number in `one`, while a missing token keeps one number a tag in `all`.
    all_tags, one = (
        chain.start + emissions[:, 0],
        (q[:, 0] * (chain.start + emissions[:, 0])).sum(1),
    )
    total = torch.where(
        known[:, 0], one + q[:, 0] @ chain.end, torch.logsumexp(all_tags + chain.end, 1)
    )
    for t in range(1, emissions.shape[1]):
        was, now = known[:, t - 1], known[:, t]
        into_all = torch.where(
            was[:, None],
            one[:, None] + q[:, t - 1] @ chain.transitions,
            torch.logsumexp(all_tags[:, :, None] + chain.transitions, 1),
        )
        expected = (
            chain.transitions @ q[:, t, :, None]
        )  # [batch, tags, 1]: from each tag into the row
        into_one = torch.where(
            was,
            one + (q[:, t - 1, None] @ expected)[:, 0, 0],
            torch.logsumexp(all_tags + expected[:, :, 0], 1),
        )
        all_tags = into_all + emissions[:, t]
        one = into_one + (q[:, t] * emissions[:, t]).sum(1)
        ended = torch.where(
            now, one + q[:, t] @ chain.end, torch.logsumexp(all_tags + chain.end, 1)
        )
        total = torch.where(t < lengths, ended, total)
    return total


def marginals(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """p(tag at t | sentence) [batch, length, tags]; behind the end it is 0."""
    forward = _forward(emissions, lengths, chain)
    batch, length, _ = emissions.shape
    backward = torch.empty_like(emissions)
    beta = chain.end.expand(batch, -1)
    for t in range(length - 1, -1, -1):
        backward[:, t] = beta
        step = torch.logsumexp(chain.transitions + (emissions[:, t] + beta)[:, None, :], dim=2)
        beta = torch.where((t < lengths)[:, None], step, beta)
    inside = torch.arange(length, device=emissions.device) < lengths[:, None]
    # subtle: divided by each row's own sum; log Z, the same number, has lost digits after hundreds of tokens in float32
    rows = torch.softmax(torch.stack(forward, dim=1) + backward, dim=2)
    return torch.where(inside[:, :, None], rows, 0)


def best_paths(
    emissions: Tensor, lengths: Tensor, chain: Chain, n: int = 1
) -> tuple[Tensor, Tensor]:
    """The n paths of highest score: tags [batch, n, length] and scores [batch, n], best first; -inf where there are fewer.

    Behind a sentence's end the tags repeat its last one.
    """
    batch, length, tags = emissions.shape
    scores = torch.full(
        (batch, n, tags), -torch.inf, dtype=emissions.dtype, device=emissions.device
    )
    scores[:, 0] = chain.start + emissions[:, 0]
    pointers = torch.empty(
        (max(0, length - 1), batch, n, tags), dtype=torch.long, device=emissions.device
    )
    same = torch.arange(n * tags, device=emissions.device).view(n, tags).expand(batch, -1, -1)
    for t in range(1, length):
        moved = scores.view(batch, n, tags, 1) + chain.transitions  # [batch, n, from, to]
        best, came = moved.reshape(batch, n * tags, tags).topk(n, dim=1)
        active = (t < lengths)[:, None, None]
        scores = torch.where(active, best + emissions[:, t, None], scores)
        pointers[t - 1] = torch.where(active, came, same)
    final, state = (
        (scores + chain.end).view(batch, n * tags).topk(min(n, n * tags), dim=1)
    )  # state = rank * tags + tag
    path = [state % tags]
    for came in pointers.flip(0):
        state = came.reshape(batch, n * tags).gather(1, state)
        path.append(state % tags)
    return torch.stack(path[::-1], dim=2), final


def _forward(emissions: Tensor, lengths: Tensor, chain: Chain) -> list[Tensor]:
    """log of the summed exp-score of every path that ends in each tag at t; frozen behind the sentence's end."""
    alphas = [chain.start + emissions[:, 0]]
    for t in range(1, emissions.shape[1]):
        step = torch.logsumexp(alphas[-1][:, :, None] + chain.transitions, dim=1) + emissions[:, t]
        alphas.append(torch.where((t < lengths)[:, None], step, alphas[-1]))
    return alphas


def _expected_score(emissions: Tensor, lengths: Tensor, q: Tensor, chain: Chain) -> Tensor:
    """Every token labeled: no recursion needed. Rows behind the end are zero."""
    last = q[torch.arange(len(q), device=q.device), lengths - 1]
    moves = ((q[:, :-1] @ chain.transitions) * q[:, 1:]).sum((1, 2))
    return (q * emissions).sum((1, 2)) + moves + q[:, 0] @ chain.start + last @ chain.end
