"""The CRF against brute force: every path of a short sentence, one by one, in float64."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from seqmix.tagger.crf import (
    IMPOSSIBLE,
    Chain,
    best_paths,
    log_partition,
    log_partition_by_halves,
    marginals,
    target_score,
)


def random_problem(seed: int, lengths: tuple[int, ...], tags: int) -> tuple[Tensor, Tensor, Chain]:
    """Emissions with rubbish behind each sentence's end, lengths and a chain."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * 1.5

    return (
        draw(len(lengths), max(lengths), tags),
        torch.tensor(lengths),
        Chain(draw(tags, tags), draw(tags), draw(tags)),
    )


def path_score(emissions: Tensor, path: tuple[int, ...], chain: Chain) -> Tensor:
    """One sentence's own emissions [length, tags]."""
    total = chain.start[path[0]] + chain.end[path[-1]]
    for t, tag in enumerate(path):
        total = total + emissions[t, tag]
    for a, b in pairwise(path):
        total = total + chain.transitions[a, b]
    return total


def every_path(emissions: Tensor, chain: Chain) -> dict[tuple[int, ...], Tensor]:
    length, tags = emissions.shape
    return {
        path: path_score(emissions, path, chain) for path in product(range(tags), repeat=length)
    }


problems = st.builds(
    random_problem,
    seed=st.integers(0, 2**32),
    lengths=st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
    tags=st.sampled_from((2, 3, 4, 1)),
)


@pytest.mark.parametrize("partition", [log_partition, log_partition_by_halves])
@given(problem=problems)
def test_the_partition_sums_every_path(partition, problem):
    emissions, lengths, chain = problem
    actual = partition(emissions, lengths, chain)

    for own, length, value in zip(emissions, lengths, actual, strict=True):
        expected = torch.logsumexp(torch.stack(list(every_path(own[:length], chain).values())), 0)
        assert value.item() == pytest.approx(expected.item(), abs=1e-9)


@given(problems)
def test_a_marginal_sums_the_paths_through_its_tag(problem):
    emissions, lengths, chain = problem
    actual = marginals(emissions, lengths, chain)

    for own, length, rows in zip(emissions, lengths.tolist(), actual, strict=True):
        paths = every_path(own[:length], chain)
        weights = torch.softmax(torch.stack(list(paths.values())), 0)
        expected = torch.zeros_like(rows)
        for path, weight in zip(paths, weights, strict=True):
            for t, tag in enumerate(path):
                expected[t, tag] += weight
        torch.testing.assert_close(rows, expected, atol=1e-9, rtol=0)  # 0 behind the end


@given(problems)
def test_viterbi_finds_the_best_path(problem):
    emissions, lengths, chain = problem
    actual, scores = best_paths(emissions, lengths, chain)

    for own, length, path, value in zip(
        emissions, lengths.tolist(), actual[:, 0].tolist(), scores[:, 0].tolist(), strict=True
    ):
        best = max(every_path(own[:length], chain).items(), key=lambda item: item[1].item())
        assert tuple(path[:length]) == best[0]
        assert value == pytest.approx(best[1].item(), abs=1e-9)


@given(problems, st.integers(1, 300))
def test_n_best_is_the_head_of_the_sorted_list_of_all_paths(problem, n):
    emissions, lengths, chain = problem
    actual, scores = best_paths(emissions, lengths, chain, n)

    assert actual.shape == (len(lengths), n, emissions.shape[1])
    for own, length, paths, values in zip(
        emissions, lengths.tolist(), actual.tolist(), scores.tolist(), strict=True
    ):
        ranked = sorted(every_path(own[:length], chain).items(), key=lambda item: -item[1].item())
        head = ranked[:n]
        assert [tuple(path[:length]) for path in paths[: len(head)]] == [path for path, _ in head]
        assert values[: len(head)] == pytest.approx([score.item() for _, score in head], abs=1e-9)
        assert all(
            value == -torch.inf for value in values[len(head) :]
        )  # there are no more paths than that


@given(problems, st.integers(0, 2**32))
def test_a_restricted_chain_leaves_only_paths_of_allowed_moves(problem, seed):
    emissions, lengths, chain = problem
    tags = emissions.shape[2]
    generator = torch.Generator().manual_seed(seed)
    start, moves, end = (
        torch.rand(*shape, generator=generator) < 0.7 for shape in ((tags,), (tags, tags), (tags,))
    )
    tight = chain.restricted(start, moves, end)
    actual, _ = best_paths(emissions, lengths, tight, 4)
    partition = log_partition(emissions, lengths, tight)

    for own, length, paths, log_z in zip(
        emissions, lengths.tolist(), actual.tolist(), partition.tolist(), strict=True
    ):
        allowed = {
            path: score.item()
            for path, score in every_path(own[:length], chain).items()
            if start[path[0]] and end[path[-1]] and all(moves[a, b] for a, b in pairwise(path))
        }
        ranked = sorted(allowed, key=lambda path: -allowed[path])[:4]
        assert [tuple(path[:length]) for path in paths[: len(ranked)]] == ranked
        if allowed:
            assert log_z == pytest.approx(
                torch.logsumexp(
                    torch.tensor(list(allowed.values()), dtype=torch.float64), 0
                ).item(),
                abs=1e-9,
            )
        else:
            assert log_z < IMPOSSIBLE / 2  # finite all the same


def test_what_stands_behind_the_end_changes_nothing():
    emissions, lengths, chain = random_problem(3, (2, 5, 1), 3)
    other = emissions.clone()
    for row, length in zip(other, lengths.tolist(), strict=True):
        row[length:] = 1e3

    for function in (log_partition, marginals, lambda *given: best_paths(*given, 3)[1]):
        torch.testing.assert_close(
            function(emissions, lengths, chain), function(other, lengths, chain)
        )


def hard(path: tuple[int, ...], tags: int, length: int) -> Tensor:
    rows = torch.zeros(length, tags, dtype=torch.float64)
    rows[torch.arange(len(path)), torch.tensor(path)] = 1
    return rows


@given(problems, st.integers(0, 2**32))
def test_the_score_of_hard_rows_is_the_score_of_their_path(problem, seed):
    emissions, lengths, chain = problem
    batch, longest, tags = emissions.shape
    drawn = torch.randint(
        tags, (batch, longest), generator=torch.Generator().manual_seed(seed)
    ).tolist()
    paths = [tuple(own[:length]) for own, length in zip(drawn, lengths.tolist(), strict=True)]
    actual = target_score(
        emissions, lengths, torch.stack([hard(path, tags, longest) for path in paths]), chain
    )

    assert actual.tolist() == pytest.approx(
        [path_score(e, path, chain).item() for e, path in zip(emissions, paths, strict=True)],
        abs=1e-9,
    )


@given(problems, st.integers(0, 2**32))
def test_the_score_of_soft_rows_is_the_expected_score_of_independent_draws(problem, seed):
    emissions, lengths, chain = problem
    rows = (
        torch.rand(
            emissions.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        + 0.01
    )
    rows = rows / rows.sum(2, keepdim=True)
    actual = target_score(emissions, lengths, rows, chain)

    for own, q, length, value in zip(
        emissions, rows, lengths.tolist(), actual.tolist(), strict=True
    ):
        expected = sum(
            score.item() * torch.stack([q[t, tag] for t, tag in enumerate(path)]).prod().item()
            for path, score in every_path(own[:length], chain).items()
        )
        assert value == pytest.approx(expected, abs=1e-9)


@given(problems, st.integers(0, 2**32))
def test_missing_rows_among_hard_ones_are_summed_over_every_completion(problem, seed):
    emissions, lengths, chain = problem
    batch, longest, tags = emissions.shape
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(tags, (batch, longest), generator=generator)
    missing = torch.rand(batch, longest, generator=generator) < 0.5
    rows = torch.nn.functional.one_hot(drawn, tags).double()
    rows[missing] = torch.nan
    actual = target_score(emissions, lengths, rows, chain)

    for own, path, gone, length, value in zip(
        emissions, drawn.tolist(), missing.tolist(), lengths.tolist(), actual.tolist(), strict=True
    ):
        fitting = [
            score
            for other, score in every_path(own[:length], chain).items()
            if all(gone[t] or other[t] == path[t] for t in range(length))
        ]
        assert value == pytest.approx(torch.logsumexp(torch.stack(fitting), 0).item(), abs=1e-9)


@given(problems)
def test_nothing_labeled_scores_the_partition(problem):
    emissions, lengths, chain = problem

    actual = target_score(emissions, lengths, torch.full_like(emissions, torch.nan), chain)

    torch.testing.assert_close(actual, log_partition(emissions, lengths, chain), atol=1e-9, rtol=0)


@given(problems, st.integers(0, 2**32))
def test_the_recursion_and_the_closed_form_agree_on_soft_rows(problem, seed):
    """A missing row sends the whole batch through the recursion; the others must not notice."""
    emissions, lengths, chain = problem
    rows = (
        torch.rand(
            emissions.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
        + 0.01
    )
    rows = rows / rows.sum(2, keepdim=True)
    plain = target_score(emissions, lengths, rows, chain)
    more = torch.cat([rows, torch.full_like(rows[:1], torch.nan)])
    actual = target_score(
        torch.cat([emissions, emissions[:1]]), torch.cat([lengths, lengths[:1]]), more, chain
    )

    torch.testing.assert_close(actual[:-1], plain, atol=1e-9, rtol=0)


def test_soft_and_missing_rows_side_by_side_have_a_finite_score_and_gradient():
    emissions, lengths, chain = random_problem(11, (5, 3, 1, 4), 3)
    tensors = (emissions, chain.transitions, chain.start, chain.end)
    for tensor in tensors:
        tensor.requires_grad_()
    rows = torch.softmax(random_problem(12, (5, 3, 1, 4), 3)[0], 2)
    rows[0, 1] = rows[0, 2] = rows[1, 0] = rows[1, 2] = rows[2, 0] = torch.nan

    gap = log_partition(emissions, lengths, chain) - target_score(emissions, lengths, rows, chain)
    gap.sum().backward()

    assert torch.isfinite(gap).all()
    assert gap[2].item() == pytest.approx(0, abs=1e-12)  # nothing labeled, nothing to lose
    for tensor in tensors:
        assert torch.isfinite(tensor.grad).all()
        assert tensor.grad.abs().max() > 1e-3
    assert emissions.grad[1, 3:].abs().max() == 0  # behind the end
