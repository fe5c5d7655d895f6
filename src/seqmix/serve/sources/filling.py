"""Fill suggestions in ahead of the people who answer, a few sentences at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.errors import SeqMixError, first_line
from seqmix.serve.sources.records import COMPUTED, Source, list_sources, read_settings
from seqmix.serve.sources.stored import as_suggestions, missing_ids, write_suggestions
from seqmix.serve.store.records import Mark, dumps
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.store.store import Store

Suggest = Callable[[Sequence[Sentence]], Iterable[Iterable[Mark]]]
Build = Callable[[str, Mapping[str, Any]], Suggest]  # of a kind and the settings of a source
_AT_ONCE = 16  # sentences


class Filler:
    """Computes what the sources of a project suggest that are models."""

    def __init__(
        self,
        store: Store,
        build: Build | None,
        write: Callable[[Callable[[], None]], None] = lambda job: job(),
    ) -> None:
        self._store, self._build, self._write = store, build, write
        self._ready: dict[tuple[int, float], Suggest] = {}
        self._failed = set[tuple[int, float]]()

    def step(self) -> bool:
        """Fill in a few sentences of the first source that lacks some; return whether one did."""
        if self._build is None:
            return False
        sources = [s for s in list_sources(self._store) if s.enabled and s.kind in COMPUTED]
        current = {(source.id, source.at) for source in sources}
        self._ready = {key: ready for key, ready in self._ready.items() if key in current}
        return any(
            self._fill(source) for source in sources if (source.id, source.at) not in self._failed
        )

    def _fill(self, source: Source) -> bool:
        assert self._build is not None
        settings = read_settings(self._store, source)
        version = version_of(settings)
        ids = missing_ids(self._store, source, version, _AT_ONCE)
        if not ids:
            return False
        sentences = list(read_sentences(self._store, ids))
        try:
            suggest = self._ready.get((source.id, source.at)) or self._build(source.kind, settings)
            tags = {*self._store.read_tags(), ""}
            marks = [[m for m in some if m.tag in tags] for some in suggest(sentences)]
        except SeqMixError as error:
            self._failed.add((source.id, source.at))
            trouble = first_line(error, 300)
            self._write(lambda: self._store.write_note(trouble_note(source), trouble))
            return False
        self._ready[source.id, source.at] = suggest
        rows = as_suggestions(sentences, marks)
        self._write(lambda: write_suggestions(self._store, source, version, rows))
        return True


def version_of(settings: Mapping[str, Any]) -> str:
    """Return what tells suggestions of these settings from others."""
    known = {key: value for key, value in settings.items() if key != "tag_change"}
    return sha256(dumps(known).encode()).hexdigest()[:32]


def trouble_note(source: Source) -> str:
    """Return the name of the note on why a source does not suggest."""
    return f"source_trouble {source.id} {source.at}"
