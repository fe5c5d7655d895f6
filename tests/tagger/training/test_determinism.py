"""The fixed order of a GPU: torch stays as it was, and bytes repeat while others use the GPU."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import torch

from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.training import loop
from seqmix.tagger.training.determinism import repeatable


@pytest.mark.parametrize(
    ("workspace", "inside"), [(None, ":4096:8"), (":16:8", ":16:8"), (":0:0", ":4096:8")]
)
def test_torch_is_left_as_it_was_after_the_fixed_order_of_a_gpu(monkeypatch, workspace, inside):
    name = "CUBLAS_WORKSPACE_CONFIG"
    monkeypatch.delenv(name, raising=False)
    if workspace:
        monkeypatch.setenv(name, workspace)
    with repeatable(torch.device("cuda"), True):
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert os.environ[name] == inside

    assert not torch.are_deterministic_algorithms_enabled()
    assert os.environ.get(name) == workspace


def test_on_a_cpu_nothing_is_changed():
    with repeatable(torch.device("cpu"), True):
        assert not torch.are_deterministic_algorithms_enabled()


def test_a_training_is_done_in_a_fixed_order(bert, monkeypatch):
    seen = []
    monkeypatch.setattr(
        loop,
        "repeatable",
        lambda device, known: seen.append((device.type, known)) or repeatable(device, known),
    )
    Tagger(bert, settings=Settings(steps=1), device="cpu").fit(long(2), np.random.default_rng(0))

    assert seen == [("cpu", True)]


def long(n: int) -> list[Sentence]:
    """Sentences that take several blocks of attention."""
    words = ("the", "Lena", "of", "Oslo", "works", "at", "Acme", "in", "Rome", "and")
    tags = ("O", "B-PER", "O", "B-LOC", "O", "O", "B-ORG", "O", "B-LOC", "O")
    return [Sentence(f"s{i}", (*words * 20, str(i)), (*tags * 20, "O")) for i in range(n)]


@pytest.mark.gpu
@pytest.mark.parametrize("head", ["linear", "crf"])
def test_beside_other_work_on_the_gpu_the_same_seed_gives_the_same_bytes(head):
    def weights() -> dict[str, torch.Tensor]:
        tagger = Tagger("starter", head, Settings(steps=150), "cuda").fit(
            long(256), np.random.default_rng(0)
        )
        return {name: value.clone() for name, value in tagger.network.state_dict().items()}

    alone, stop = weights(), threading.Event()

    def busy() -> None:
        stream, matrix = torch.cuda.Stream(), torch.rand(2048, 2048, device="cuda")
        while not stop.is_set():
            with torch.cuda.stream(stream):
                for _ in range(20):
                    matrix @ matrix
            stream.synchronize()

    others = [threading.Thread(target=busy) for _ in range(3)]
    try:
        for other in others:
            other.start()
        beside = [weights() for _ in range(2)]
    finally:
        stop.set()
        for other in others:
            other.join()

    for again in beside:
        assert all(torch.equal(value, again[name]) for name, value in alone.items())
