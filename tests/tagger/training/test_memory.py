"""Training that runs out of memory goes on in parts; one that runs out of numbers stops.

Then its batch is named, and the tagger is as it was.
"""

from __future__ import annotations

import logging
from copy import deepcopy

import numpy as np
import pytest
import torch

from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.network import Network
from seqmix.tagger.training import cuda_graphs, loop, memory, schedule
from tests.support import tiny

heads = pytest.mark.parametrize("head", ["linear", "crf"])
SOFT = [
    Sentence(
        s.id,
        s.tokens,
        tuple(
            None if i == 1 else {tag: 0.7, "O": 0.3} if tag != "O" else tag
            for i, tag in enumerate(s.tags)
        ),
    )
    for s in tiny.toy(24)
]


@pytest.fixture(autouse=True)
def nothing_said_yet():
    memory.warn_once.cache_clear()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def fitted(encoder: str, head: str, **settings) -> Tagger:
    return Tagger(
        encoder,
        head,
        Settings(**{"epochs": 2, "batch_size": 8, "lr": 1e-3, "dropout": 0.0, **settings}),
        "cpu",
    ).fit(SOFT, rng())


@pytest.fixture
def small(monkeypatch):
    """A memory for so many words, with errors of real allocators; `small.refuse(words, error)`."""
    real = Network.loss

    def refuse(words: int, error: Exception) -> None:
        def loss(self, scores, rows, lengths, weights=None):
            if sum(lengths) > words:
                (scores.sum() * 0 + 1e6).backward(
                    retain_graph=True
                )  # subtle: it may run out when some gradients are there already
                raise error
            return real(self, scores, rows, lengths, weights)

        monkeypatch.setattr(Network, "loss", loss)

    return refuse


@heads
@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:118] err == 0. "
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9"
        ),
        MemoryError(),
    ],
    ids=["cuda", "cpu", "python"],
)
def test_a_batch_that_does_not_fit_is_trained_in_parts_and_gives_the_same_weights(
    still_bert, head, error, small, caplog
):
    whole = fitted(still_bert, head)
    small(20, error)

    with caplog.at_level(logging.WARNING):
        parted = fitted(still_bert, head)

    for (name, a), (_, b) in zip(
        whole.network.named_parameters(), parted.network.named_parameters(), strict=True
    ):
        if not name.endswith("key.bias"):  # its gradient is 0 but for rounding, which Adam blows up
            assert torch.allclose(a, b, atol=1e-4), name
    fitted(still_bert, head)
    said = (
        "memory ran out: batches are trained in parts of at most 2 sentences, "
        "which add up to the same step"
    )
    assert [record.message for record in caplog.records] == [said], "said once"


def test_a_sentence_that_does_not_fit_alone_is_named(still_bert, small):
    small(3, MemoryError())

    with pytest.raises(
        ModelError,
        match=r"one sentence alone does not fit in memory: 'toy:\d+'; lower training\.max_pieces",
    ):
        fitted(still_bert, "linear")


def test_mixup_cannot_be_parted_and_says_so(still_bert, small):
    small(20, MemoryError())

    with pytest.raises(ModelError, match=r"mixup pairs its sentences; lower training\.batch_size"):
        fitted(still_bert, "linear", mixup=8.0)


def test_an_error_that_is_not_about_memory_is_not_hidden(still_bert, small):
    small(20, RuntimeError("shapes cannot be multiplied"))

    with pytest.raises(RuntimeError, match="shapes"):
        fitted(still_bert, "linear")


def test_a_real_allocator_that_says_no_is_understood():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60, dtype=torch.uint8)
    assert memory.ran_out(caught.value)
    try:
        try:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        finally:
            raise RuntimeError(
                "CUDA error: operation failed due to a previous error during capture"
            )
    except RuntimeError as error:
        assert memory.ran_out(error)


def test_replayed_steps_that_do_not_fit_are_done_one_by_one(still_bert, monkeypatch, caplog):
    expected = fitted(still_bert, "linear")

    def run(self, *given):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(cuda_graphs.Stage, "run", run)
    monkeypatch.setattr(loop, "runner_for", lambda *_: loop.replay_steps)
    with caplog.at_level(logging.WARNING):
        actual = fitted(still_bert, "linear")

    assert all(
        torch.equal(a, b)
        for a, b in zip(expected.network.parameters(), actual.network.parameters(), strict=True)
    )
    assert "step by step" in caplog.text and not cuda_graphs.stages


def poisoned(monkeypatch, step: int) -> None:
    """The loss of one step is no number."""
    real, count = Network.word_loss, 0

    def loss(self, scores, rows, weights=None):
        nonlocal count
        count += 1
        return real(self, scores, rows, weights) * (float("nan") if count == step else 1.0)

    monkeypatch.setattr(Network, "word_loss", loss)


@pytest.mark.parametrize("runner", [loop.run_steps, loop.replay_steps])
def test_a_loss_that_is_no_number_names_the_step_and_its_sentences(still_bert, monkeypatch, runner):
    sentences = tiny.toy(24)
    chosen = next(batch for i, batch in enumerate(_drawn(still_bert, sentences)) if i == 4)
    poisoned(monkeypatch, 5)
    monkeypatch.setattr(loop, "runner_for", lambda *_: runner)

    with pytest.raises(ModelError) as caught:
        Tagger(still_bert, "linear", Settings(epochs=2, batch_size=8, dropout=0.0), "cpu").fit(
            sentences, rng()
        )

    named = ", ".join(sentences[i].id for i in chosen)
    assert str(caught.value).startswith(
        f"the loss became nan at step 5 of 6, whose sentences are {named}; lower the learning rate"
    )


def _drawn(encoder: str, sentences: list[Sentence]) -> list[list[int]]:
    """The batches that a training with this seed draws."""
    drawn: list[list[int]] = []
    real = schedule.draw_batches

    def batches(*given):
        for batch in real(*given):
            drawn.append(batch)
            yield batch

    schedule.draw_batches = batches
    try:
        Tagger(encoder, "linear", Settings(epochs=2, batch_size=8, dropout=0.0), "cpu").fit(
            sentences, rng()
        )
    finally:
        schedule.draw_batches = real
    return drawn


def test_weights_spoiled_by_the_last_step_are_noticed(still_bert, monkeypatch):
    def clip(parameters, *_, **__):
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.fill_(float("nan"))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)

    with pytest.raises(ModelError, match="some weights became NaN or infinite at step 1 of 1"):
        Tagger(still_bert, "linear", Settings(steps=1), "cpu").fit(tiny.toy(8), rng())


@pytest.mark.parametrize("warm", [False, True])
def test_a_training_that_is_lost_leaves_the_last_good_tagger(still_bert, monkeypatch, warm):
    tagger = Tagger(still_bert, "linear", Settings(steps=3), "cpu").fit(tiny.toy(8), rng())
    before = deepcopy(tagger.network.state_dict())
    poisoned(monkeypatch, 2)

    with pytest.raises(ModelError, match="nan at step 2"):
        tagger.fit(tiny.toy(8), rng(1), warm=warm)

    after = tagger.network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert not tagger.network.training


@pytest.mark.gpu
@heads
def test_a_gpu_that_is_too_small_still_trains(head, caplog):
    """A real allocator with a limit: first on replaying, then on whole batches."""
    words = (
        "the",
        "Lena",
        "of",
        "Oslo",
        "works",
        "at",
        "Acme",
        "in",
        "Rome",
        "and",
        "left",
        "New",
        "York",
        "with",
        "Mary",
        "Smith",
    )
    long = [
        Sentence(f"s{i}", (*words * 6, str(i)), ("O",) * (6 * len(words) + 1)) for i in range(256)
    ]
    long[0] = Sentence("s0", long[0].tokens, ("O", "B-PER", *long[0].tags[2:]))
    settings = Settings(steps=3, batch_size=256)
    torch.cuda.reset_peak_memory_stats()
    Tagger("starter", head, settings, "cuda").fit(long, rng())
    limit = 0.35 * torch.cuda.max_memory_allocated()
    cuda_graphs.forget_stages()
    memory.release()
    try:
        torch.cuda.set_per_process_memory_fraction(
            limit / torch.cuda.get_device_properties(0).total_memory
        )
        with caplog.at_level(logging.WARNING):
            tagger = Tagger("starter", head, settings, "cuda").fit(long, rng())
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)

    assert "step by step" in caplog.text and "in parts of at most" in caplog.text
    assert all(np.isfinite(probs).all() for probs in tagger.probabilities(long[:4]))


def test_an_endless_sentence_is_trained_on_in_its_labeled_stretches():
    sentence = Sentence(
        "s", ("Lena", "left", "for", "Rome", "today"), ("B-PER", "O", None, None, "O")
    )

    assert [(s.id, s.tokens, s.tags) for s in memory.stretches(sentence, longest=2)] == [
        ("s+0", ("Lena", "left"), ("B-PER", "O")),
        ("s+4", ("today",), ("O",)),
    ]
