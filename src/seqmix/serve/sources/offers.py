"""What the sources of a project offer for a sentence, and how much of it people keep."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.serve.sources.dictionary import Dictionary
from seqmix.serve.sources.patterns import Patterns
from seqmix.serve.sources.records import (
    LLM,
    MATCHED,
    MODEL,
    TAGGER,
    TYPES,
    Source,
    list_sources,
    read_settings,
)
from seqmix.serve.sources.stored import stored_marks
from seqmix.serve.sources.terms import Terms
from seqmix.serve.store.records import Mark
from seqmix.serve.store.store import Store
from seqmix.serve.store.tags.history import NOTHING, TagHistory


@dataclass(frozen=True)
class Offer:
    """The spans that a source suggests for a sentence."""

    source: str
    kind: str
    marks: tuple[Mark, ...]
    model: str | None = None  # what computed them, if the source is a model

    def to_json(self) -> dict[str, Any]:
        """Return what the page gets."""
        spans = [
            {"start": mark.start, "end": mark.end, "tag": mark.tag or None} for mark in self.marks
        ]
        return {"source": self.source, "kind": self.kind, "spans": spans}


class Matcher:
    """The terms of a source, ready to be matched."""

    def __init__(self, terms: Terms, tag_change: int = 0) -> None:
        self._tag_change = tag_change  # the last one that the terms know
        self._dictionary = Dictionary(terms.texts, terms.ignore_case)
        self._patterns = Patterns(terms.patterns, terms.ignore_case)
        self._tags = frozenset(tag for _, tag in (*terms.texts, *terms.patterns))

    def marks(
        self, sentence: Sentence, tags: Collection[str], history: TagHistory
    ) -> tuple[Mark, ...]:
        """Return the matches, with the tags that the project has now; texts before patterns."""
        place = history.at_change(self._tag_change)
        matches = history.marks(self._dictionary.marks(sentence), place)[0]
        marks = [mark for mark in matches if mark.tag in tags]
        taken = {at for mark in marks for at in range(mark.start, mark.end)}
        for mark in history.marks(self._patterns.marks(sentence), place)[0]:
            if mark.tag in tags and taken.isdisjoint(range(mark.start, mark.end)):
                marks.append(mark)
        return tuple(sorted(marks))

    def tags(self, history: TagHistory) -> frozenset[str]:
        """Return the tags of now that it can suggest."""
        place = history.at_change(self._tag_change)
        return frozenset(now for tag in self._tags for now in history.meanings(tag, place))

    @property
    def slow(self) -> list[str]:
        """The regular expressions that are left out because they take too long."""
        return self._patterns.slow


class Sources:
    """The sources of a project; threads may share it. Matchers are built once."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._matchers: dict[tuple[int, float], Matcher] = {}
        self._models: dict[tuple[int, float], str | None] = {}

    def offers(self, sentence: Sentence, only: Collection[str] | None = None) -> list[Offer]:
        """Return what the sources that are on suggest, or those of some names."""
        here = self._store, sentence.id
        with self._store.reading():
            tags = self._store.read_tags()
            chosen = [
                source
                for source in list_sources(self._store)
                if (source.enabled if only is None else source.name in only)
            ]
            stored = {} if all(s.kind in MATCHED for s in chosen) else stored_marks(*here)
            marks = [(source, self._marks(source, sentence, tags, stored)) for source in chosen]
            return [Offer(s.name, s.kind, some, self._model(s)) for s, some in marks if some]

    def shown(
        self,
        sentence: Sentence,
        names: Collection[str],
        answer: Iterable[Mark],
        suggestion: Mapping[str, Any] | None = None,
    ) -> dict[str, list[Any]]:
        """Return how many spans each source offered, how many were kept, its kind and its model.

        {"gpt": [3, 2, "llm", "qwen2.5"], "places": [1, 0, "dictionary"]}
        """
        answered = [Mark(*mark) for mark in answer]
        kept = {*answered, *(Mark(mark.start, mark.end, NOTHING) for mark in answered)}
        offers = self.offers(sentence, names)
        if suggestion is not None and MODEL in names:
            spans = suggestion["spans"]
            marks = tuple(Mark(s["start"], s["end"], s["tag"]) for s in spans)
            offers.append(Offer(MODEL, "", marks))  # the answer's generation says which model
        return {
            offer.source: [len(offer.marks), sum(mark in kept for mark in offer.marks)]
            + [what for what in (offer.kind, offer.model) if what]
            for offer in offers
            if offer.marks
        }

    def marks(self, source: Source, sentence: Sentence) -> tuple[Mark, ...] | None:
        """Return what a source suggests for a sentence; None: that is not known yet."""
        with self._store.reading():
            stored = {} if source.kind in MATCHED else stored_marks(self._store, sentence.id)
            if source.kind not in MATCHED and source.id not in stored:
                return None
            return self._marks(source, sentence, self._store.read_tags(), stored)

    def tags(self, source: Source) -> frozenset[str]:
        """Return the tags that a source can suggest; NOTHING: it only points at names."""
        if source.kind == TYPES:
            return frozenset((NOTHING,))
        if source.kind in MATCHED:
            return self.matcher(source).tags(self._store.tag_history())
        settings, history = read_settings(self._store, source), self._store.tag_history()
        place = history.at_change(settings["tag_change"])
        known = settings.get("tags") or self._store.read_tags()
        return frozenset(now for tag in known for now in history.meanings(tag, place))

    def slow(self, source: Source) -> list[str]:
        """Return the regular expressions of a source that are left out, since they are slow."""
        return self.matcher(source).slow if source.kind in MATCHED else []

    def matcher(self, source: Source) -> Matcher:
        """Return the matcher of a source, built when it is first needed."""
        key = (source.id, source.at)
        with self._lock:
            if key not in self._matchers:
                settings = read_settings(self._store, source)
                terms, tag_change = Terms.from_json(settings), settings.get("tag_change", 0)
                self._matchers[key] = Matcher(terms, tag_change)
            return self._matchers[key]

    def _model(self, source: Source) -> str | None:
        """Return the name of the model that a source is, read when it is first needed."""
        key = (source.id, source.at)
        if source.kind not in (TAGGER, LLM):
            return None
        with self._lock:
            if key not in self._models:
                settings = read_settings(self._store, source)
                self._models[key] = settings.get("model") or settings.get("tagger")
            return self._models[key]

    def _marks(
        self,
        source: Source,
        sentence: Sentence,
        tags: Collection[str],
        stored: Mapping[int, tuple[Mark, ...]],
    ) -> tuple[Mark, ...]:
        if source.kind in MATCHED:
            return self.matcher(source).marks(sentence, tags, self._store.tag_history())
        return tuple(m for m in stored.get(source.id, ()) if m.tag in tags or m.tag == NOTHING)
