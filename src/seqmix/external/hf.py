"""A Hugging Face model for token classification as a tagger.

It reads the words of a sentence as it was trained to, pre-tokenized, and a word has the label of
its first piece. Labels in any scheme are read by conlleval's rule and written as BIO.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np
import torch
from transformers import PreTrainedModel

from seqmix.data.scheme import tag
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, Span, prefixed, spans
from seqmix.data.tagset import TagSet
from seqmix.external.names import ExternalName
from seqmix.external.tagger import bio_tags
from seqmix.protocols import Probs
from seqmix.starter.loader import load_token_classifier
from seqmix.tagger.batches import Batch
from seqmix.tagger.encoders import device_of, pieces_of
from seqmix.tagger.inference import Tensors, by_sentence, run_batches
from seqmix.tagger.network import Network

_LONGEST = 512  # pieces of a window
_RESERVED = 2  # positions that RoBERTa never uses
_ROWS = 64  # windows read at once


class HuggingFaceReader:
    """Tags sentences with a model from a folder or the hub; code in it is never run."""

    def __init__(self, name: ExternalName, device: str | None = None) -> None:
        model, tokenizer = load_token_classifier(name.model)
        self._device = device_of(device)
        self._scores = _Scores(model).to(self._device)
        limits = (tokenizer.model_max_length, _LONGEST, _positions(model) - _RESERVED)
        self._pieces = pieces_of(tokenizer, min(limits))
        self._labels = LabelMap(name, [model.config.id2label[i] for i in range(model.num_labels)])
        self.tag_set = self._labels.tag_set
        self.counts: Counter[str] = Counter()  # every label fits: it is that of a word

    def read(self, sentences: Iterable[Sentence]) -> Iterator[tuple[tuple[str, ...], Probs]]:
        """Yield the tags of each sentence and p(tag | token) [n_tokens, n_tags]."""

        def reduce(scores: torch.Tensor, *_: object) -> Tensors:
            return (torch.softmax(scores, dim=1),)

        network = cast(Network, self._scores)
        empty = np.zeros((0, len(self._labels.names)), dtype=np.float32)
        model = network, self._pieces, self._device
        for probs in run_batches(*model, sentences, reduce, by_sentence, empty):
            yield self._labels.tagged(probs)


class _Scores(torch.nn.Module):
    """The model's scores of each word, for batches of windows."""

    first_position = 0  # the model numbers positions by itself

    def __init__(self, model: PreTrainedModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> torch.Tensor:
        """Return the scores [n_words, n_labels] in float32."""
        mask = (batch.segments > 0).long()
        parts = zip(batch.ids.split(_ROWS), mask.split(_ROWS), strict=True)
        rows = [self.model(input_ids=ids, attention_mask=seen).logits for ids, seen in parts]
        return torch.cat(rows).flatten(0, 1).index_select(0, batch.words).float()


class LabelMap:
    """The model's labels in any scheme, and what they mean as BIO tags of the project's types."""

    def __init__(self, name: ExternalName, labels: Sequence[str]) -> None:
        self.names, self._name = tuple(labels), name
        self._has_spans = any(label == OUTSIDE or prefixed(label) for label in labels)
        if self._has_spans:
            types = {label[2:] if prefixed(label) else label for label in labels}
            self.tag_set = bio_tags(name, types - {OUTSIDE})
        else:
            self.tag_set = TagSet.ordered(map(self._renamed, labels))
        self._columns = [self.tag_set.id(self._renamed(label)) for label in labels]

    def tagged(self, probs: Probs) -> tuple[tuple[str, ...], Probs]:
        """Return the tags of a sentence and p(tag | token), given p(label | token)."""
        best = probs.argmax(axis=1) if len(probs) else np.zeros(0, dtype=np.int64)
        rows = np.zeros((len(probs), len(self.tag_set)), dtype=np.float32)
        np.add.at(rows.T, self._columns, probs.T)
        if not self._has_spans:
            return tuple(self._renamed(self.names[i]) for i in best), rows
        theirs = spans([self.names[i] for i in best])
        ours = ((span, self._name.renamed(span.type)) for span in theirs)
        tags = tag([Span(span.start, span.end, to) for span, to in ours if to], len(probs))
        for row, label, name in zip(rows, best, tags, strict=True):
            column, expected = self._columns[label], self.tag_set.id(name)
            if column != expected:  # an I- that opens a span, in IOB1 and IO, is a B- here
                row[expected], row[column] = row[expected] + row[column], 0
        return tuple(tags), rows

    def _renamed(self, label: str) -> str:
        """Return the tag of a label by itself: B-PER for S-PER, I-PER for PER."""
        to = self._name.renamed(label[2:] if prefixed(label) else label)
        if to is None or label == OUTSIDE:
            return OUTSIDE
        if not self._has_spans:
            return to
        return ("B-" if prefixed(label) and label[0] in "BSU" else "I-") + to


def _positions(model: PreTrainedModel) -> int:
    return int(getattr(model.config, "max_position_embeddings", None) or _LONGEST + _RESERVED)
