"""Sentences of several requests are tagged together.

While the model works, requests wait; then it gets as many sentences as fit a batch, one of each
request in turn, so that a long request does not hold up the short ones.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple

from seqmix.data.sentence import Sentence
from seqmix.serve.predictor.model import ServedTagger, TokenPath

Input = str | Sequence[str]  # a text, or its tokens
_BATCH = 4096  # tokens, or characters of texts divided by what a token takes
_LETTERS = 5  # characters of a token, about
MOST = 2000  # sentences that may wait


class Tagged(NamedTuple):
    """A sentence with its best paths."""

    sentence: Sentence
    paths: Sequence[TokenPath]


class FullError(Exception):
    """Too many sentences wait; in `seconds` there should be room."""

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds


@dataclass
class _Request:
    model: ServedTagger  # of the moment when it came: one request, one model
    n: int
    inputs: Sequence[Input]
    done: asyncio.Future[list[Tagged]]
    started: int = 0
    outcomes: dict[int, Tagged] = field(default_factory=dict)

    def finish(self, at: int, outcome: Tagged | Exception) -> None:
        """Take the outcome of one sentence; the last one, or an error, ends the request."""
        if self.done.done():
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
            return
        self.outcomes[at] = outcome
        if len(self.outcomes) == len(self.inputs):
            self.done.set_result([self.outcomes[i] for i in range(len(self.inputs))])


Part = tuple[_Request, int]  # a request, and the place of one of its sentences


class Batcher:
    """Collects sentences and has them tagged in a thread; `observe` hears of each batch."""

    def __init__(self, observe: Callable[[int, float], None], most: int = MOST) -> None:
        self.waiting, self.most = 0, most  # sentences
        self._observe = observe
        self._requests: deque[_Request] = deque()
        self._arrived = asyncio.Event()
        self._pace = 0.01  # seconds a sentence takes, of late

    async def tag(self, model: ServedTagger, inputs: Sequence[Input], n: int) -> list[Tagged]:
        """Return the n best paths of each sentence."""
        if not inputs:
            return []
        if self.waiting + len(inputs) > self.most:
            raise FullError(max(1, math.ceil(self.waiting * self._pace)))
        request = _Request(model, n, inputs, asyncio.get_running_loop().create_future())
        self._requests.append(request)
        self.waiting += len(inputs)
        self._arrived.set()
        return await request.done

    async def run(self) -> None:
        """Tag what waits, batch after batch, until cancelled."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "tagger") as thread:  # tokenizers are for one thread
            while True:
                await self._arrived.wait()
                batch = self._next_batch()
                if not batch:
                    self._arrived.clear()
                    continue
                start = time.perf_counter()
                outcomes = await loop.run_in_executor(thread, _tag_batch, batch)
                seconds = time.perf_counter() - start
                self._pace = 0.8 * self._pace + 0.2 * seconds / len(batch)
                self._observe(len(batch), seconds)
                for (request, at), outcome in zip(batch, outcomes, strict=True):
                    request.finish(at, outcome)

    def _next_batch(self) -> list[Part]:
        batch: list[Part] = []
        tokens = 0
        while self._requests and tokens < _BATCH:
            request = self._requests.popleft()
            left = len(request.inputs) - request.started
            if request.done.done():  # one of its sentences failed, or the server is stopping
                self.waiting -= left
                continue
            text = request.inputs[request.started]
            tokens += 1 + (len(text) // _LETTERS if isinstance(text, str) else len(text))
            batch.append((request, request.started))
            request.started += 1
            self.waiting -= 1
            if left > 1:
                self._requests.append(request)
        return batch


def _tag_batch(batch: Sequence[Part]) -> list[Tagged | Exception]:
    """Tag the sentences of a batch, those with the same model and n at once."""
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for place, (request, _) in enumerate(batch):
        alike[id(request.model), request.n].append(place)
    outcomes: dict[int, Tagged | Exception] = {}
    for (_, n), places in alike.items():
        sentences = [_sentence(batch[place][0].inputs[batch[place][1]]) for place in places]
        model = batch[places[0]][0].model
        outcomes.update(zip(places, _tag(model, sentences, n), strict=True))
    return [outcomes[place] for place in range(len(batch))]


def _tag(model: ServedTagger, sentences: Sequence[Sentence], n: int) -> list[Tagged | Exception]:
    """Tag sentences; if that fails, one by one, so that only the one at fault gets the error."""
    try:
        paths = model.best_paths(sentences, n)
        return [Tagged(*pair) for pair in zip(sentences, paths, strict=True)]
    except Exception as error:
        if len(sentences) == 1:
            return [error]
        return [outcome for sentence in sentences for outcome in _tag(model, [sentence], n)]


def _sentence(text: Input) -> Sentence:
    return Sentence.from_text(text, "") if isinstance(text, str) else Sentence("", tuple(text))
