"""What suggests in a project: its model, and other sources by their kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seqmix.app.taggers import load_tagger
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.serve.sources.filling import Suggest
from seqmix.serve.sources.records import TYPES
from seqmix.serve.store.records import Mark
from seqmix.serve.store.tags.history import NOTHING
from seqmix.serve.trainer.suggestions import Guess


def build_suggest(kind: str, settings: Mapping[str, Any]) -> Suggest:
    """Return what a source suggests with: the starter's type head, or the tagger of its name."""
    return _pointing() if kind == TYPES else _tagging(settings["tagger"])


def guesses(tagger: Any, sentences: Sequence[Sentence]) -> Iterator[Guess]:
    """Yield what a tagger suggests for each sentence."""
    for best in tagger.best_paths(sentences, by_token=True):
        yield Guess(best[0].tags, best[0].probability, best[0].by_token)


def _pointing() -> Suggest:
    from seqmix.starter.pointing import Pointer

    pointer = Pointer()

    def suggest(sentences: Sequence[Sentence]) -> Iterator[list[Mark]]:
        for places in pointer.names(sentences):
            yield [Mark(start, end, NOTHING) for start, end in places]

    return suggest


def _tagging(name: str) -> Suggest:
    tagger = load_tagger(name, "cpu")

    def suggest(sentences: Sequence[Sentence]) -> Iterator[list[Mark]]:
        for tagged in tagger.predict(sentences):
            yield [Mark(span.start, span.end, span.type) for span in spans(tagged.tags)]

    return suggest
