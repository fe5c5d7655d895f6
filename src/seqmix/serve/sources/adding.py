"""Add sources, checked on the project's text."""

from __future__ import annotations

from seqmix.data.sentence import Sentence
from seqmix.serve.sources.patterns import check_patterns
from seqmix.serve.sources.records import Source, add_source
from seqmix.serve.sources.terms import Terms
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.store.store import Store

_TRIED = 200  # sentences on which regular expressions are tried


def add_dictionary(store: Store, name: str, terms: Terms) -> Source:
    """Add a dictionary; its regular expressions are tried on sentences of the project first."""
    patterns = [pattern for pattern, _ in terms.patterns]
    if patterns:
        check_patterns(patterns, _sample(store), terms.ignore_case)
    return add_source(store, name, "dictionary", terms.to_json())


def _sample(store: Store) -> list[str]:
    sample: list[Sentence] = list(read_sentences(store, unlabeled_ids(store, _TRIED)))
    return [sentence.located()[0] for sentence in sample]
