"""The order and the suggestions of a project, as predictions for Label Studio's tasks.

A prediction's score says how soon its task should be labeled: (place + ½) / number of tasks. Label
Studio asks in ascending order of scores, so that is the order in which the project would ask. The
order is fixed when a generation of the trainer is first seen, and each has a version of its own.
"""

from __future__ import annotations

import secrets
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import select

from seqmix.data.sentence import Sentence
from seqmix.errors import SeqMixError
from seqmix.serve.labelstudio.external import NEW, SKIPPED, read_value
from seqmix.serve.labelstudio.labeling import Labeling
from seqmix.serve.labelstudio.mirror import Mirror
from seqmix.serve.labelstudio.tasks import Json, results, sentence_of
from seqmix.serve.store.queue import in_order
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.store.records import Generation, Mark, loads
from seqmix.serve.store.schema import events, queue
from seqmix.serve.store.sentences import paged
from seqmix.serve.trainer.suggestions import Guess, suggestion

Suggest = Callable[[Sequence[Sentence]], Iterator[Guess]]
_PAGE = 200
_MIDDLE, _LAST = 0.5, 1.0  # the scores of a task nothing is known of, and of one without tokens


@dataclass(frozen=True)
class TaskPrediction:
    """What a task is predicted to be, and how soon it should be labeled."""

    task: int
    score: float  # the lower, the sooner
    result: list[Json]


@dataclass(frozen=True)
class Current:
    """The newest generation: its tagger and the order of the tasks that were there."""

    version: str
    generation: Generation | None = None
    suggest: Suggest | None = None  # none while nothing is learned and no tagger was given
    places: dict[int, float] | None = None  # by task
    confidences: tuple[float, ...] = ()  # of the ranked sentences, lowest first

    def place(self, confidence: float) -> float:
        """Return the score of a later task: before all suggestions the tagger is surer of."""
        if not self.confidences or not self.places:
            return confidence
        return (bisect_left(self.confidences, confidence) + 0.25) / (len(self.places) + 0.5)


class TaskPredictions:
    """The predictions of one project; `load` returns what the tagger in a folder suggests."""

    def __init__(self, mirror: Mirror, load: Callable[[Path | str], Suggest]) -> None:
        self.mirror, self._load = mirror, load
        self.error = ""
        # a tokenizer must not be used by two threads at once
        self._loading, self._suggesting = threading.Lock(), threading.Lock()
        start = mirror.project.start
        self._start = None if start is None else load(start)
        self._current = Current(self._version(None), None, self._start)

    def refresh(self) -> Current:
        """Return the newest generation, with its tagger loaded if it is new."""
        with self._loading:
            last = next(iter(read_generations(self.mirror.store, 1)), None)
            if last is not None and not _is_same(last, self._current.generation):
                suggest = self._start if last.number == 0 else None
                if last.model is not None:
                    try:
                        suggest, self.error = (
                            self._load(self.mirror.project.folder / last.model),
                            "",
                        )
                    except SeqMixError as error:
                        self.error = str(error)
                places = _places(self.mirror)
                self._current = Current(
                    self._version(last), last, suggest, places, _confidences(self.mirror, last)
                )
            return self._current

    def of(
        self, tasks: Sequence[tuple[int, Json]], labeling: Labeling, live: bool = True
    ) -> list[TaskPrediction | None]:
        """Return the predictions of tasks; none before there is an order or without a text.

        Where the ranking has no suggestion, the tagger is asked, if it is to be `live`.
        """
        current = self.refresh()
        if current.generation is None and current.suggest is None:
            return [None] * len(tasks)
        pages = paged(tasks, _PAGE)
        return [p for page in pages for p in self._of_page(page, current, labeling, live)]

    def _of_page(
        self, tasks: Sequence[tuple[int, Json]], current: Current, labeling: Labeling, live: bool
    ) -> list[TaskPrediction | None]:
        texts = {id: sentence_of(id, data, labeling) for id, data in tasks}
        spans, places = self._stored(texts, current), dict(current.places or {})
        asked = [(id, text) for id, text in texts.items() if text and text.tokens]
        unknown = [(id, text) for id, text in asked if id not in spans]
        if live and current.suggest is not None and unknown:
            with self._suggesting:
                guesses = [*current.suggest([text for _, text in unknown])]
            for (id, _), guess in zip(unknown, guesses, strict=True):
                suggested = suggestion(guess, self.mirror.project.settings.tags)
                spans[id] = suggested["spans"]
                places.setdefault(id, current.place(suggested["confidence"]))
        predictions: list[TaskPrediction | None] = []
        for id, _ in tasks:
            text = texts[id]
            if text is None:
                predictions.append(None)
                continue
            score = places.get(id, _MIDDLE if text.tokens else _LAST)
            predictions.append(
                TaskPrediction(id, score, results(text, spans.get(id, ()), labeling))
            )
        return predictions

    def ordered(self, labeling: Labeling) -> Iterator[TaskPrediction]:
        """Yield the predictions of all tasks without an answer, in order."""
        current = self.refresh()
        for page in paged(
            sorted(current.places or {}, key=(current.places or {}).__getitem__), _PAGE
        ):
            rows = self.mirror.tasks(page)
            tasks = [(id, read_value(rows[id])) for id in page if id in rows]
            waiting = {id for id in rows if rows[id].state in (NEW, SKIPPED)}
            for (id, _), prediction in zip(tasks, self.of(tasks, labeling, False), strict=True):
                if id in waiting:
                    yield prediction or TaskPrediction(
                        id, (current.places or {}).get(id, _LAST), []
                    )

    def _stored(self, texts: dict[int, Sentence | None], current: Current) -> dict[int, Any]:
        """Return the spans of tasks that are ranked, audited or answered on seqmix's page."""
        rows = self.mirror.tasks(texts)
        places = select(queue.c.sentence_id, queue.c.stream, queue.c.state, queue.c.generation)
        keys = [row.sentence_id for row in rows.values() if row.sentence_id is not None]
        spans: dict[int, Any] = {}
        with self.mirror.store.reading() as conn:
            answer = places.add_columns(queue.c.suggestion, events.c.spans).outerjoin(
                events, events.c.seq == queue.c.gold
            )
            stored = {
                row.sentence_id: row
                for row in conn.execute(answer.where(queue.c.sentence_id.in_(keys)))
            }
        number = -1 if current.generation is None else current.generation.number
        for id, row in rows.items():
            place = stored.get(row.sentence_id)
            if place is None:
                continue
            if row.state in (NEW, SKIPPED) and place.spans is not None:
                spans[id] = [Mark(*mark)._asdict() for mark in loads(place.spans)]
            elif place.stream == "audit":
                spans[id] = ()  # whoever labels it must not be influenced
            elif place.suggestion is not None and place.generation == number:
                spans[id] = loads(place.suggestion)["spans"]
        return spans

    def _version(self, last: Generation | None) -> str:
        """Return the model version of a generation; a new one is the next number."""
        mirror = self.mirror
        with mirror.store.writing():
            name, number = mirror.noted("name"), int(mirror.noted("round") or 0)
            if name is None:
                name = secrets.token_hex(3)
                mirror.note(name=name)
            seen = [] if last is None else [last.number, last.at]
            if seen and seen != mirror.noted("generation"):
                number += 1
                mirror.note(round=number, generation=seen)
        return f"seqmix-{name}-{number:04d}"


def _is_same(last: Generation, before: Generation | None) -> bool:
    return before is not None and (last.number, last.at) == (before.number, before.at)


def _places(mirror: Mirror) -> dict[int, float]:
    """Return the score of each task without an answer; repeated and empty texts come last."""
    first, again, textless = dict[str, int](), list[int](), list[int]()
    for id, key in mirror.unanswered():
        if key is None:
            textless.append(id)
        elif key in first:
            again.append(id)
        else:
            first[key] = id
    order = in_order(mirror.store, mirror.project.settings.audit_share)
    asked = [first.pop(key) for key in order if key in first]
    ids = [*asked, *first.values(), *again, *textless]
    return {id: (place + 0.5) / len(ids) for place, id in enumerate(ids)}


def _confidences(mirror: Mirror, last: Generation) -> tuple[float, ...]:
    """Return how sure the suggestions of a generation are, the least sure first."""
    ranked = select(queue.c.suggestion).where(
        queue.c.generation == last.number,
        queue.c.stream == "active",
        queue.c.state.in_(("free", "held")),
    )
    with mirror.store.reading() as conn:
        suggestions = [loads(text) for text in conn.execute(ranked).scalars() if text is not None]
    return tuple(sorted(suggestion["confidence"] for suggestion in suggestions))
