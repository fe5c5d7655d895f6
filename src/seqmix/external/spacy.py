"""A spaCy pipeline as a tagger.

A sentence that has its raw text is read as spaCy cuts it, and entities are aligned by characters;
one that has only tokens is read as those tokens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import tee
from typing import Any

import numpy as np

from seqmix.data.scheme import tag
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Span
from seqmix.data.text import CharSpan, align_one, without_overlaps
from seqmix.errors import MissingExtraError, ModelError, first_line
from seqmix.external.names import ExternalName
from seqmix.external.tagger import bio_tags
from seqmix.extras import import_extra
from seqmix.protocols import Probs

_BATCH = 64  # sentences


class SpacyReader:
    """Tags sentences with the entities that a pipeline sets."""

    def __init__(self, name: ExternalName) -> None:
        self._name, self._nlp = name, _load(name)
        nlp, types = self._nlp, set[str]()
        for pipe in nlp.pipe_names:
            if "doc.ents" in nlp.get_pipe_meta(pipe).assigns:
                types.update(nlp.pipe_labels.get(pipe, ()))
        self.tag_set = bio_tags(name, types)
        self.counts: Counter[str] = Counter()

    def read(self, sentences: Iterable[Sentence]) -> Iterator[tuple[tuple[str, ...], Probs]]:
        """Yield the tags of each sentence and p(tag | token), which is 1 for its tag."""
        ahead, behind = tee(sentences)
        docs = self._nlp.pipe(map(self._input, ahead), batch_size=_BATCH)
        try:
            for sentence, doc in zip(behind, docs, strict=True):
                tags = tag(self._spans(sentence, doc), len(sentence))
                ids = np.array([self.tag_set.id(name) for name in tags], dtype=np.int64)
                yield tuple(tags), np.eye(len(self.tag_set), dtype=np.float32)[ids]
        except ValueError as error:  # a component that does not accept a text
            raise ModelError(f"{self._name} cannot read this: {first_line(error, 200)}") from error

    def _input(self, sentence: Sentence) -> Any:
        if sentence.text is not None:
            return sentence.text
        tokens = import_extra("spacy.tokens", "spacy", str(self._name))
        return tokens.Doc(self._nlp.vocab, words=list(sentence.tokens))

    def _spans(self, sentence: Sentence, doc: Any) -> list[Span]:
        """Return the entities that the project has a name for, in tokens of the sentence."""
        spans: list[Span] = []
        for entity in doc.ents:
            type = self._name.renamed(entity.label_)
            if type is None or f"B-{type}" not in self.tag_set:
                self.counts["of other types left out"] += self._name.types is None
            elif sentence.text is None or sentence.offsets is None:
                spans.append(Span(entity.start, entity.end, type))
            else:
                place = CharSpan(entity.start_char, entity.end_char, type)
                offsets, text = sentence.offsets, sentence.text
                span = align_one(offsets, place, "expand", self.counts, text)
                spans += [span] if span is not None else []
        if sentence.offsets is None:
            return spans
        return without_overlaps(sentence.offsets, spans, "drop", self.counts, sentence.text or "")


def _load(name: ExternalName) -> Any:
    spacy = import_extra("spacy", "spacy", str(name))
    try:
        return spacy.load(name.model)
    except MissingExtraError:
        raise
    except Exception as error:  # a component, a factory or a file can be missing in many ways
        raise ModelError(
            f"spaCy cannot load {name.model!r}: {first_line(error, 200)}; "
            "give a folder or the name of an installed pipeline"
        ) from error
