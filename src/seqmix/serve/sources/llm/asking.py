"""Ask endpoints about the sentences that come next, within their limits and only where allowed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.errors import SeqMixError, StaleError, first_line
from seqmix.serve.sources.filling import trouble_note, version_of
from seqmix.serve.sources.llm.annotator import answer_part
from seqmix.serve.sources.llm.client import PATIENCE, EndpointError, ask
from seqmix.serve.sources.llm.endpoint import Endpoint
from seqmix.serve.sources.llm.parse_answer import NonsenseError, content_of, read_answer
from seqmix.serve.sources.llm.prompt import FORMATS, body
from seqmix.serve.sources.llm.replies import read_replies, request_key, write_reply
from seqmix.serve.sources.records import LLM, Source, list_sources, read_settings
from seqmix.serve.sources.stored import Suggestion, missing_ids, write_suggestions
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.store.store import Store

_PATIENT = 300.0  # seconds, the longest pause after an error
_NONSENSE = 10  # answers in a row that cannot be read, after which nothing is asked any more
# statuses after which an answer is asked for in a simpler form; llama-cpp-python says 500
_REFUSED = (400, 404, 422, 500)
_IDLE = 2.0  # seconds
_LOOKED_UP = 50  # sentences at a time, of which replies may be known


@dataclass
class _State:
    """What is known of a source that is asked."""

    next: float = 0.0  # when it may be asked again
    failures: int = 0  # in a row
    nonsense: int = 0  # in a row
    format: int = 0  # of FORMATS


@dataclass
class Asker:
    """Asks the endpoints of a project, one request at a time.

    `allowed` returns the origins that the project's settings say yes to, read before each request.
    """

    store: Store
    allowed: Callable[[], Collection[str]]
    guidelines: Callable[[], str] = lambda: ""
    write: Callable[[Callable[[], None]], None] = lambda job: job()
    clock: Callable[[], float] = time.monotonic
    patience: float = PATIENCE
    _states: dict[tuple[int, float], _State] = field(default_factory=dict, init=False)
    _ended: threading.Event = field(default_factory=threading.Event, init=False)

    def start(self) -> None:
        """Ask in a thread until `stop`."""
        threading.Thread(target=self._run, daemon=True).start()

    def stop(self) -> None:
        """Ask no more; a request that is under way may still end."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            asked = False
            with suppress(SeqMixError):  # such as a store that does not answer for a while
                asked = self.step()
            self._ended.wait(0.05 if asked else _IDLE)

    def step(self) -> bool:
        """Ask one endpoint about one sentence; return whether one could be asked."""
        sources = [s for s in list_sources(self.store) if s.enabled and s.kind == LLM]
        return any(self._ask_next(source) for source in sources)

    def _ask_next(self, source: Source) -> bool:
        state = self._states.setdefault((source.id, source.at), _State())
        if self.clock() < state.next or state.nonsense >= _NONSENSE:
            return False
        settings = read_settings(self.store, source)
        endpoint = Endpoint.from_json(settings)
        tags, guidelines = self.store.read_tags(), self.guidelines()
        version = version_of({**settings, **_asked(endpoint, tags, guidelines)})
        if endpoint.answers:
            self.write(lambda: self._answer_part(source, version, endpoint.answers))
        ids = missing_ids(self.store, source, version, _LOOKED_UP)
        if not ids or self._ended.is_set():
            return False
        asking = list(read_sentences(self.store, ids))
        keys = [request_key(endpoint, sentence, tags, guidelines) for sentence in asking]
        if self._recall(source, version, dict(zip(keys, asking, strict=True))):
            return True
        if endpoint.origin not in self.allowed():
            self._say(source, f"needs your permission to send text to {endpoint.origin}")
            return False
        if read_usage(self.store, source)["tokens"] >= endpoint.most_tokens:
            self._say(source, f"has used its {endpoint.most_tokens:,} tokens; raise the limit")
            return False
        state.next = self.clock() + 60 / endpoint.per_minute
        sentence, key = asking[0], keys[0]
        try:
            row = self._answer(source, endpoint, sentence, tags, guidelines, state)
            self.write(lambda: write_reply(self.store, key, row))
        except EndpointError as error:
            if error.status != 200:
                self._failed(source, state, error)
                return True
            row = Suggestion(sentence.id, (), str(error))
        state.failures = 0
        self.write(lambda: write_suggestions(self.store, source, version, [(sentence, row)]))
        state.nonsense = state.nonsense + 1 if row.problem else 0
        stopped = state.nonsense >= _NONSENSE
        last = f"gave {_NONSENSE} answers in a row that cannot be used: {row.problem}"
        self._say(source, last if stopped else None)
        return True

    def _answer(
        self,
        source: Source,
        endpoint: Endpoint,
        sentence: Sentence,
        tags: tuple[str, ...],
        guidelines: str,
        state: _State,
    ) -> Suggestion:
        request = body(endpoint, sentence, tags, guidelines, FORMATS[state.format])
        estimate = len(request["messages"][0]["content"]) // 3  # tokens
        self._count(source, requests=1)
        try:
            response = ask(endpoint, request, self.patience)
        except EndpointError as error:
            if error.status in (0, 200):  # it may have worked, and want to be paid
                self._count(source, tokens=estimate + request["max_tokens"])
            raise
        self._count(source, tokens=response.tokens or estimate + request["max_tokens"])
        try:
            marks = read_answer(content_of(response.value), sentence, tags)
            return Suggestion(sentence.id, marks)
        except NonsenseError as error:
            return Suggestion(sentence.id, (), str(error))

    def _recall(self, source: Source, version: str, asking: Mapping[str, Sentence]) -> bool:
        """Suggest what was replied to the same requests before; return whether there was any."""
        known = read_replies(self.store, asking.keys())
        rows = [(asking[key], replace(r, sentence_id=asking[key].id)) for key, r in known.items()]
        if rows:
            self.write(lambda: write_suggestions(self.store, source, version, rows))
        return bool(rows)

    def _failed(self, source: Source, state: _State, error: EndpointError) -> None:
        """Wait longer after each failure; ask for a simpler form where the endpoint refuses one."""
        if error.status in _REFUSED and state.format + 1 < len(FORMATS):
            state.format += 1
            return
        state.failures += 1
        pause = max(error.wait, 2.0**state.failures)
        state.next = max(state.next, self.clock() + min(_PATIENT, pause))
        self._say(source, first_line(error, 300))

    def _answer_part(self, source: Source, version: str, share: float) -> None:
        with suppress(StaleError):  # somebody has just opened one of them
            answer_part(self.store, source, version, share)

    def _say(self, source: Source, trouble: str | None) -> None:
        name = trouble_note(source)
        if self.store.read_note(name) != trouble:
            self.write(lambda: self.store.write_note(name, trouble))

    def _count(self, source: Source, **more: int) -> None:
        used = read_usage(self.store, source)
        total = {name: n + more.get(name, 0) for name, n in used.items()}
        self.write(lambda: self.store.write_note(_usage_note(source), total))


def _asked(endpoint: Endpoint, tags: tuple[str, ...], guidelines: str) -> dict[str, Any]:
    """Return what an answer depends on; limits and prices are not part of it."""
    ignored = dict.fromkeys(("per_minute", "most_tokens", "price", "answers"))
    used = guidelines if "{guidelines}" in endpoint.prompt else ""
    return {**ignored, "tags": tags, "guidelines": used}


def read_usage(store: Store, source: Source) -> dict[str, int]:
    """Return how many requests a source has had, and how many tokens they took."""
    used = store.read_note(_usage_note(source)) or {}
    return {name: int(used.get(name, 0)) for name in ("requests", "tokens")}


def _usage_note(source: Source) -> str:
    return f"source_usage {source.id}"
