"""The loss of hard, soft and missing rows; its gradient against finite differences in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from seqmix.tagger.crf import Chain
from seqmix.tagger.network import Network
from seqmix.tagger.settings import HEADS

LENGTHS = (4, 1, 3)
WORDS, TAGS = sum(LENGTHS), 3
heads = pytest.mark.parametrize("head", HEADS)


@pytest.fixture(params=HEADS)
def network(request) -> Network:
    return make(request.param)


def make(head: str) -> Network:
    """A network in float64 whose encoder is of no interest; the chain is not zero."""
    config = BertConfig(
        vocab_size=8, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4
    )
    network = Network(
        BertModel(config, add_pooling_layer=False),
        TAGS,
        head,
        0.0,
        torch.Generator().manual_seed(0),
    ).double()
    if network.chain is not None:
        for number, parameter in enumerate(network.chain.parameters()):
            parameter.data = draw(20 + number, *parameter.shape)
    return network


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def soft_rows() -> Tensor:
    return torch.softmax(draw(2, WORDS, TAGS), dim=1)


def mixed_rows() -> Tensor:
    """Soft, hard and missing rows in one stream."""
    rows = soft_rows()
    rows[0] = torch.tensor([0.0, 1.0, 0.0])
    rows[[2, 3, 6]] = torch.nan
    return rows


@pytest.mark.parametrize("rows", [soft_rows(), mixed_rows()], ids=["soft", "mixed"])
def test_the_gradient_equals_finite_differences(network, rows):
    scores = draw(1, WORDS, TAGS).requires_grad_()

    assert torch.autograd.gradcheck(lambda s: network.loss(s, rows, LENGTHS), (scores,))


@pytest.mark.parametrize("rows", [soft_rows(), mixed_rows()], ids=["soft", "mixed"])
def test_the_gradient_equals_a_central_difference_written_out(network, rows):
    scores, step = draw(1, WORDS, TAGS).requires_grad_(), 1e-6
    network.loss(scores, rows, LENGTHS).backward()

    expected = torch.zeros_like(scores)
    for place in range(scores.numel()):
        shift = torch.zeros(scores.numel(), dtype=torch.float64)
        shift[place] = step
        shift = shift.view_as(scores)
        with torch.no_grad():
            above, below = (
                network.loss(scores + shift, rows, LENGTHS),
                network.loss(scores - shift, rows, LENGTHS),
            )
        expected.view(-1)[place] = (above - below) / (2 * step)
    torch.testing.assert_close(scores.grad, expected, atol=1e-8, rtol=1e-5)
    assert scores.grad[1].abs().max() > 1e-3  # a soft row does pull


@pytest.mark.parametrize("rows", [soft_rows(), mixed_rows()], ids=["soft", "mixed"])
def test_the_gradient_of_the_chain_equals_finite_differences(rows):
    network, scores = make("crf"), draw(1, WORDS, TAGS)
    values = [
        parameter.detach().clone().requires_grad_() for parameter in network.chain.parameters()
    ]
    del network.chain  # a module may not be replaced by a function in place

    def loss(*given: Tensor) -> Tensor:
        network.chain = lambda: Chain(*given)
        return network.loss(scores, rows, LENGTHS)

    assert torch.autograd.gradcheck(loss, values)


def test_a_one_hot_row_costs_what_torch_says_a_hard_label_costs():
    tags = torch.randint(TAGS, (WORDS,), generator=torch.Generator().manual_seed(3))
    scores = draw(1, WORDS, TAGS)

    actual = make("linear").loss(scores, torch.nn.functional.one_hot(tags, TAGS).double(), LENGTHS)

    assert actual.item() == pytest.approx(
        torch.nn.functional.cross_entropy(scores, tags).item(), abs=1e-6
    )


def test_a_soft_row_costs_what_torch_says_class_probabilities_cost():
    scores, rows = draw(1, WORDS, TAGS), soft_rows()

    assert make("linear").loss(scores, rows, LENGTHS).item() == pytest.approx(
        torch.nn.functional.cross_entropy(scores, rows).item(), abs=1e-6
    )


def test_a_crf_without_chain_scores_costs_what_the_linear_head_costs():
    network, scores, rows = make("crf"), draw(1, WORDS, TAGS), soft_rows()
    for parameter in network.chain.parameters():
        parameter.data.zero_()

    assert network.loss(scores, rows, LENGTHS).item() == pytest.approx(
        make("linear").loss(scores, rows, LENGTHS).item(), abs=1e-12
    )


@heads
def test_a_nearly_hard_row_costs_nearly_the_hard_loss(head):
    network, scores = make(head), draw(1, WORDS, TAGS)
    hard = torch.nn.functional.one_hot(torch.arange(WORDS) % TAGS, TAGS).double()

    nearly = network.loss(scores, hard * (1 - 1e-9) + 1e-9 / TAGS, LENGTHS)

    assert nearly.item() == pytest.approx(network.loss(scores, hard, LENGTHS).item(), abs=1e-6)


def test_missing_rows_pull_at_nothing_in_the_linear_head():
    scores, rows = draw(1, WORDS, TAGS).requires_grad_(), mixed_rows()
    make("linear").loss(scores, rows, LENGTHS).backward()

    missing = torch.isnan(rows[:, 0])
    assert (scores.grad[missing] == 0).all()
    assert (scores.grad[~missing].abs().sum(1) > 0).all()


def test_missing_rows_count_in_neither_the_sum_nor_the_mean_of_the_linear_head():
    network, scores, rows = make("linear"), draw(1, WORDS, TAGS), mixed_rows()
    known = ~torch.isnan(rows[:, 0])

    alone = network.loss(scores[known], rows[known], (int(known.sum()),))

    assert network.loss(scores, rows, LENGTHS).item() == pytest.approx(alone.item(), abs=1e-12)


def test_a_batch_without_any_label_costs_nothing_and_pulls_at_nothing(network):
    scores = draw(1, WORDS, TAGS).requires_grad_()

    loss = network.loss(scores, torch.full((WORDS, TAGS), torch.nan, dtype=torch.float64), LENGTHS)
    loss.backward()

    assert loss.item() == pytest.approx(0, abs=1e-12)
    assert scores.grad.abs().max() < 1e-12


def test_the_crf_loss_is_the_negative_log_likelihood_a_word():
    network, scores = make("crf"), draw(1, WORDS, TAGS)
    paths = [(0, 1, 2, 2), (1,), (2, 0, 1)]
    rows = torch.nn.functional.one_hot(
        torch.tensor([tag for path in paths for tag in path]), TAGS
    ).double()
    transitions, start, end = (p.detach() for p in network.chain.parameters())

    total = 0.0
    for own, path in zip(scores.split(list(LENGTHS)), paths, strict=True):
        every = torch.cartesian_prod(*[torch.arange(TAGS)] * len(path)).view(-1, len(path))
        value = start[every[:, 0]] + end[every[:, -1]] + own[torch.arange(len(path)), every].sum(1)
        value = value + transitions[every[:, :-1], every[:, 1:]].sum(1)
        at = (every == torch.tensor(path)).all(1).nonzero().item()
        total -= torch.log_softmax(value, 0)[at].item()

    assert network.loss(scores, rows, LENGTHS).item() == pytest.approx(total / WORDS, abs=1e-9)


def test_a_sentence_counts_as_much_as_its_weight(network):
    rows, scores = mixed_rows(), draw(1, WORDS, TAGS)
    weights = torch.tensor([1.0, 0.5, 0.25], dtype=torch.float64)

    parts = [
        (network.loss(s, r, (len(s),)).item(), int((~torch.isnan(r[:, 0])).sum()))
        for s, r in zip(scores.split(LENGTHS), rows.split(LENGTHS), strict=True)
    ]

    total = sum(w * count for w, (_, count) in zip(weights.tolist(), parts, strict=True))
    expected = (
        sum(w * loss * n for w, (loss, n) in zip(weights.tolist(), parts, strict=True)) / total
    )
    actual = network.loss(scores, rows, LENGTHS, weights).item()
    assert actual == pytest.approx(expected, abs=1e-12)


def test_weights_of_one_change_nothing(network):
    rows, scores = mixed_rows(), draw(1, WORDS, TAGS)

    weighted = network.loss(scores, rows, LENGTHS, torch.ones(3, dtype=torch.float64))

    assert weighted.item() == network.loss(scores, rows, LENGTHS).item()
