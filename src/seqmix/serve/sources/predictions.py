"""Predictions from a file, put onto the sentences of a project, however either is tokenized.

Sentences are the same if their text is, apart from white space; a span must begin and end where
tokens of the project do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.serve.sources.filling import version_of
from seqmix.serve.sources.records import PREDICTIONS, Source, add_source, read_settings
from seqmix.serve.sources.stored import Suggestion, write_suggestions
from seqmix.serve.store.records import PAGE, Mark
from seqmix.serve.store.sentences import paged, read_sentences
from seqmix.serve.store.store import Store

_Places = dict[str, list[tuple[int, int, str]]]  # by text without white space


def add_predictions(
    store: Store, name: str, predicted: Iterable[Sentence], counts: Counter[str]
) -> Source:
    """Add what a file suggests; `counts` says how much of it did not fit, by reason."""
    tags, places = set(store.read_tags()), _Places()
    for sentence in predicted:
        kept = []
        ends = [0, *accumulate(len(_bare(token)) for token in sentence.tokens)]
        for span in spans(["O" if tag is None else str(tag) for tag in sentence.hardened().tags]):
            if span.type in tags:
                kept.append((ends[span.start], ends[span.end], span.type))
            else:
                counts["spans of other tags left out"] += 1
        places["".join(map(_bare, sentence.tokens))] = kept
    known = {tag for some in places.values() for _, _, tag in some}
    source = add_source(store, name, PREDICTIONS, {"tags": sorted(known)})
    version = version_of(read_settings(store, source))
    for page in paged(read_sentences(store), PAGE):
        rows = [
            (sentence, Suggestion(sentence.id, _marks(sentence, place, counts)))
            for sentence in page
            if (place := places.pop("".join(map(_bare, sentence.tokens)), None)) is not None
        ]
        counts["sentences with predictions"] += len(rows)
        write_suggestions(store, source, version, rows)
    counts["sentences that are not in the project left out"] += len(places)
    return source


def _marks(
    sentence: Sentence, places: Iterable[tuple[int, int, str]], counts: Counter[str]
) -> tuple[Mark, ...]:
    ends = [0, *accumulate(len(_bare(token)) for token in sentence.tokens)]
    starts = {place: at for at, place in reversed([*enumerate(ends[:-1])])}
    stops = {place: at for at, place in enumerate(ends)}
    marks = []
    for start, end, tag in places:
        if start in starts and end in stops and starts[start] < stops[end]:
            marks.append(Mark(starts[start], stops[end], tag))
        else:
            counts["spans that cut a token left out"] += 1
    return tuple(marks)


def _bare(text: str) -> str:
    """Return a text without white space."""
    return "".join(text.split())
