"""The queue in front of the model: what is tagged together, in which order; what fails alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from seqmix.app.commands.train.serve import load_model
from seqmix.data.sentence import Sentence
from seqmix.serve.predictor.batching import Batcher, FullError
from seqmix.serve.predictor.model import ServedTagger, TokenPath


class Gate:
    """A tagger that works when it is let, and writes down what it is given."""

    def __init__(self, model: ServedTagger) -> None:
        self.open, self.batches, self._model = threading.Event(), list[list[str]](), model

    def best_paths(self, sentences: Sequence[Sentence], n: int) -> Iterable[Sequence[TokenPath]]:
        assert self.open.wait(60)
        self.batches.append([sentence.tokens[0] for sentence in sentences])
        if any("poison" in sentence.tokens for sentence in sentences):
            raise RuntimeError("no such word")
        return self._model.best_paths(sentences, n)

    def model(self, version: str = "gated") -> ServedTagger:
        return ServedTagger(version, self._model.tags, self.best_paths)


@pytest.fixture
def gate(tagger_folder: Path) -> Gate:
    return Gate(load_model(tagger_folder))


def run(
    scene: Callable[[Batcher], Coroutine[Any, Any, None]], most: int = 1000
) -> list[tuple[int, float]]:
    batches: list[tuple[int, float]] = []

    async def main() -> None:
        batcher = Batcher(lambda *batch: batches.append(batch), most)
        worker = asyncio.create_task(batcher.run())
        await asyncio.wait_for(scene(batcher), 60)
        assert batcher.waiting == 0
        worker.cancel()

    asyncio.run(main())
    return batches


async def ask(batcher: Batcher, model: ServedTagger, *requests: list[str], n: int = 1) -> list[Any]:
    """Put requests into the queue in this order; the first is with the model before the others."""
    tasks = []
    for texts in requests:
        tasks.append(asyncio.create_task(batcher.tag(model, texts, n)))
        await asyncio.sleep(0.01)
    return tasks


def test_what_arrives_while_the_model_works_is_tagged_together(gate: Gate) -> None:
    async def scene(batcher: Batcher) -> None:
        tasks = await ask(batcher, gate.model(), *[[f"Lena left {i}"] for i in range(10)])
        gate.open.set()
        for at, (tagged,) in enumerate(await asyncio.gather(*tasks)):
            assert tagged.sentence.tokens == ("Lena", "left", str(at))
            assert tagged.paths[0].tags[0] == "B-PER"

    assert [size for size, _ in run(scene)] == [1, 9]


def test_a_long_request_does_not_hold_up_a_short_one(gate: Gate) -> None:
    async def scene(batcher: Batcher) -> None:
        words = " ".join(["the"] * 400)
        long, short = await ask(batcher, gate.model(), [f"{i} {words}" for i in range(40)], ["Bo"])
        gate.open.set()
        await short
        assert not long.done()
        assert [tagged.sentence.tokens[0] for tagged in await long] == [str(i) for i in range(40)]

    run(scene)
    assert "Bo" in gate.batches[1] and len(gate.batches) >= 4


def test_only_the_request_with_the_sentence_at_fault_fails(gate: Gate) -> None:
    async def scene(batcher: Batcher) -> None:
        requests = ["the"], ["Lena", "poison"], ["Ada", "Oslo"]
        tasks = await ask(batcher, gate.model(), *requests)
        gate.open.set()
        _, poisoned, good = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(poisoned, RuntimeError)
        assert [tagged.paths[0].tags for tagged in good] == [("B-PER",), ("B-LOC",)]

    run(scene)


def test_a_full_queue_refuses_and_what_was_accepted_is_answered(gate: Gate) -> None:
    async def scene(batcher: Batcher) -> None:
        tasks = await ask(batcher, gate.model(), ["Ada"], ["Bo"] * 3)
        with pytest.raises(FullError) as full:
            await batcher.tag(gate.model(), ["Lena"], 1)
        assert full.value.seconds >= 1
        gate.open.set()
        assert [len(tagged) for tagged in await asyncio.gather(*tasks)] == [1, 3]
        assert len(await batcher.tag(gate.model(), ["Lena"] * 3, 1)) == 3

    run(scene, most=3)


def test_requests_with_another_n_or_model_share_a_batch_and_get_their_own(gate: Gate) -> None:
    async def scene(batcher: Batcher) -> None:
        old, new = gate.model("old"), gate.model("new")
        tasks = [
            *await ask(batcher, old, ["the"], ["Lena left"]),
            *await ask(batcher, old, ["Lena left"], n=3),
            *await ask(batcher, new, ["Ada left"]),
        ]
        gate.open.set()
        answers = [tagged for (tagged,) in await asyncio.gather(*tasks)]
        assert [len(tagged.paths) for tagged in answers] == [1, 1, 3, 1]
        assert answers[1].paths[0].tags == answers[2].paths[0].tags

    assert [size for size, _ in run(scene)] == [1, 3]
    assert gate.batches == [["the"], ["Lena"], ["Lena"], ["Ada"]]


def test_a_request_that_was_given_up_is_not_tagged(gate: Gate) -> None:
    async def scene(batcher: Batcher) -> None:
        first, lost = await ask(batcher, gate.model(), ["the"], ["Bo"] * 500)
        lost.cancel()
        gate.open.set()
        await first
        await batcher.tag(gate.model(), ["Ada"], 1)

    run(scene)
    assert gate.batches == [["the"], ["Ada"]]
