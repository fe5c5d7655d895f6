"""The linear-chain CRF, exactly: partition, target score, marginals, best and n-best paths.

Shapes: emissions [batch, length, tags], lengths [batch]; see `Chain` for its own.
Everything is in log space; positions at or behind a sentence's length are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Finite, so that labels that contradict the scheme still leave a path, of probability 0.
IMPOSSIBLE = -1e4


@dataclass(frozen=True)
class Chain:
    """Scores of neighboring tags, and of tags at both ends of a sentence."""

    transitions: Tensor  # [tags, tags]: row = from, column = to
    start: Tensor  # [tags]
    end: Tensor  # [tags]

    def restricted(self, start: Tensor, moves: Tensor, end: Tensor) -> Chain:
        """Return the same chain with forbidden moves (False in the masks) made impossible."""
        pairs = ((self.transitions, moves), (self.start, start), (self.end, end))
        return Chain(*(scores.masked_fill(~allowed, IMPOSSIBLE) for scores, allowed in pairs))


def log_partition(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return the log of the summed exp-scores of all paths [batch]."""
    return torch.logsumexp(_forward(emissions, lengths, chain)[-1] + chain.end, dim=1)


def log_partition_by_halves(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return the same in log(length) steps: neighboring steps are matrices, multiplied in pairs.

    With a few tags this is more arithmetic in far fewer kernels, as a GPU prefers.
    Behind a sentence's end the matrices are the identity.
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
    """Return the score of the labels [batch], given as distributions `rows` [batch, length, tags].

    A labeled token counts with its expected score under its row, neighbors with their expected
    transition; hard rows give the score of their path.
    A missing token (a row of NaN) is summed out over all its tags.
    A caller may say with `complete` whether a token is missing; else the rows are searched.
    """
    labeled = ~torch.isnan(rows).any(dim=2)  # [batch, length]
    q = torch.nan_to_num(rows)
    inside = torch.arange(rows.shape[1], device=rows.device) < lengths[:, None]
    if complete if complete is not None else bool((labeled | ~inside).all()):
        return _expected_score(emissions, lengths, q * inside[:, :, None], chain)
    # A labeled token is a single pseudo-state whose emission and transitions are
    # expectations under its row. Its log-sum is one number, in `expected`; a missing token keeps a
    # number for each tag, in `all_tags`.
    all_tags = chain.start + emissions[:, 0]
    expected = (q[:, 0] * (chain.start + emissions[:, 0])).sum(1)
    total = torch.where(
        labeled[:, 0], expected + q[:, 0] @ chain.end, torch.logsumexp(all_tags + chain.end, 1)
    )
    for t in range(1, emissions.shape[1]):
        before, now = labeled[:, t - 1], labeled[:, t]
        into_all = torch.where(
            before[:, None],
            expected[:, None] + q[:, t - 1] @ chain.transitions,
            torch.logsumexp(all_tags[:, :, None] + chain.transitions, 1),
        )
        into_row = chain.transitions @ q[:, t, :, None]  # [batch, tags, 1]: from each tag
        into_expected = torch.where(
            before,
            expected + (q[:, t - 1, None] @ into_row)[:, 0, 0],
            torch.logsumexp(all_tags + into_row[:, :, 0], 1),
        )
        all_tags = into_all + emissions[:, t]
        expected = into_expected + (q[:, t] * emissions[:, t]).sum(1)
        ended = torch.where(
            now, expected + q[:, t] @ chain.end, torch.logsumexp(all_tags + chain.end, 1)
        )
        total = torch.where(t < lengths, ended, total)
    return total


def marginals(emissions: Tensor, lengths: Tensor, chain: Chain) -> Tensor:
    """Return p(tag at t | sentence) [batch, length, tags]; behind the end it is 0."""
    forward = _forward(emissions, lengths, chain)
    batch, length, _ = emissions.shape
    backward = torch.empty_like(emissions)
    beta = chain.end.expand(batch, -1)
    for t in range(length - 1, -1, -1):
        backward[:, t] = beta
        step = torch.logsumexp(chain.transitions + (emissions[:, t] + beta)[:, None, :], dim=2)
        beta = torch.where((t < lengths)[:, None], step, beta)
    inside = torch.arange(length, device=emissions.device) < lengths[:, None]
    # Divided by the sum of each row, since log Z has lost digits after hundreds of tokens.
    rows = torch.softmax(torch.stack(forward, dim=1) + backward, dim=2)
    return torch.where(inside[:, :, None], rows, 0)


def best_paths(
    emissions: Tensor, lengths: Tensor, chain: Chain, n: int = 1
) -> tuple[Tensor, Tensor]:
    """Return the n paths of highest score, best first: tags [batch, n, length], scores [batch, n].

    A score is -inf where there are fewer paths; behind a sentence's end its last tag repeats.
    A batch of one is as long as its sentence.
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
        best = best + emissions[:, t, None]
        if batch > 1:  # else no sentence has ended
            active = (t < lengths)[:, None, None]
            best, came = torch.where(active, best, scores), torch.where(active, came, same)
        scores, pointers[t - 1] = best, came
    # A state numbers rank and tag: rank * tags + tag.
    final, state = (scores + chain.end).view(batch, n * tags).topk(min(n, n * tags), dim=1)
    path = [state % tags]
    for came in pointers.flip(0):
        state = came.reshape(batch, n * tags).gather(1, state)
        path.append(state % tags)
    return torch.stack(path[::-1], dim=2), final


def _forward(emissions: Tensor, lengths: Tensor, chain: Chain) -> list[Tensor]:
    """Return the log of the summed exp-scores of all paths that end in each tag at t.

    Behind a sentence's end it is constant.
    """
    alphas = [chain.start + emissions[:, 0]]
    for t in range(1, emissions.shape[1]):
        step = torch.logsumexp(alphas[-1][:, :, None] + chain.transitions, dim=1) + emissions[:, t]
        alphas.append(torch.where((t < lengths)[:, None], step, alphas[-1]))
    return alphas


def _expected_score(emissions: Tensor, lengths: Tensor, q: Tensor, chain: Chain) -> Tensor:
    """Return the score when every token is labeled; rows behind the end are zero."""
    last = q[torch.arange(len(q), device=q.device), lengths - 1]
    moves = ((q[:, :-1] @ chain.transitions) * q[:, 1:]).sum((1, 2))
    return (q * emissions).sum((1, 2)) + moves + q[:, 0] @ chain.start + last @ chain.end
