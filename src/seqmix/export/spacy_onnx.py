"""A tagger in ONNX as a component of spaCy pipelines that run without seqmix.

    import seqmix_component, spacy  # the first is the file beside the pipeline
    nlp = spacy.load("ner-spacy")

It needs spaCy, onnxruntime, tokenizers and numpy, and loads a model when it first tags.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from spacy.tokens import Doc
from spacy.tokens import Span as DocSpan

from seqmix.data.spans import spans
from seqmix.data.window_bounds import window_bounds, window_owners
from seqmix.export.decode import decode

FACTORY, FILE, MODULE = "seqmix_onnx", "tagger.onnx", "seqmix_component"
ROWS = 16  # windows at a time
OVERLAP = 32  # pieces that two windows share
LETTERS = 1000  # of a word that the tokenizer sees


class OnnxComponent:
    """Tags the tokens that spaCy cut, sentence by sentence where the Doc has sentences."""

    def __init__(self, model: str | None = None) -> None:
        self._model = model

    @cached_property
    def _content(self) -> bytes:
        if self._model is None:  # spaCy makes a component before it reads its files
            raise ValueError(f'{FACTORY} must have a tagger: config={{"model": "ner.onnx"}}')
        return Path(self._model).read_bytes()

    @cached_property
    def _session(self) -> Any:
        from onnxruntime import InferenceSession

        return InferenceSession(self._content, providers=["CPUExecutionProvider"])

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        return Tokenizer.from_str(self._metadata["tokenizer"])

    @cached_property
    def _metadata(self) -> dict[str, Any]:
        held = self._session.get_modelmeta().custom_metadata_map
        texts = {"seqmix", "transitions"}
        return {key: json.loads(text) if key in texts else text for key, text in held.items()}

    @property
    def labels(self) -> tuple[str, ...]:
        """The types of spans it finds; spaCy asks for them before the tagger is read."""
        if "_content" not in self.__dict__ and not Path(self._model or "").is_file():
            return ()
        tags = self._metadata["transitions"]["tags"]
        return tuple(sorted({span.type for tag in tags for span in spans([tag])}))

    def __call__(self, doc: Doc) -> Doc:
        """Return the Doc with its entities."""
        (tagged,) = self._tag([doc])
        return tagged

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Yield the Docs with their entities; windows of a batch are read together."""
        for docs in spacy.util.minibatch(stream, batch_size):
            yield from self._tag(docs)

    def _tag(self, docs: Sequence[Doc]) -> Sequence[Doc]:
        parts = [(doc, tokens) for doc in docs for tokens in _sentences(doc)]
        scores = self.scores([[token.text for token in tokens] for _, tokens in parts])
        for (doc, tokens), rows in zip(parts, scores, strict=True):
            taken = {token.i for entity in doc.ents for token in entity}
            marks = [
                DocSpan(doc, tokens[span.start].i, tokens[span.end - 1].i + 1, span.type)
                for span in spans(decode(rows, self._metadata["transitions"]))
            ]
            free = [mark for mark in marks if taken.isdisjoint(range(mark.start, mark.end))]
            doc.ents = (*doc.ents, *free)
        return docs

    def scores(self, sentences: Sequence[Sequence[str]]) -> list[Any]:
        """Return the score of each tag for each word [n_words, n_tags] of each sentence."""
        tags = len(self._metadata["transitions"]["tags"])
        scores = [np.zeros((len(words), tags)) for words in sentences]
        windows = [
            (ids, scores[number], words, places)
            for number, sentence in enumerate(sentences)
            for ids, words, places in self._windows(sentence)
        ]
        windows.sort(key=lambda window: len(window[0]))
        for first in range(0, len(windows), ROWS):
            batch = windows[first : first + ROWS]
            mask = np.arange(len(batch[-1][0])) < [[len(ids)] for ids, *_ in batch]
            ids = np.zeros(mask.shape, dtype=np.int64)
            ids[mask] = [piece for ids, *_ in batch for piece in ids]
            inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int64)}
            (logits,) = self._session.run(None, inputs)
            for row, (_, target, words, places) in zip(logits, batch, strict=True):
                target[words] = row[places]
        return scores

    def _windows(self, words: Sequence[str]) -> Iterator[tuple[list[int], Any, Any]]:
        """Yield the pieces of each window, the words that are read in it, and their places."""
        window = self._metadata["seqmix"]["window"]
        before, after = window["before"], window["after"]
        room = max(1, window["pieces"] - len(before) - len(after))
        encodings = self._tokenizer.encode_batch(
            [[word[:LETTERS]] for word in words], is_pretokenized=True, add_special_tokens=False
        )
        pieces = [(encoding.ids or [window["unknown"]])[:room] for encoding in encodings]
        edges = np.cumsum([0, *map(len, pieces)])
        bounds = window_bounds(edges, room, min(OVERLAP, room // 4))
        owner = window_owners(edges, bounds)
        for number, (first, last) in enumerate(bounds):
            read = np.flatnonzero(owner[first:last] == number) + first
            ids = [*before, *chain.from_iterable(pieces[first:last]), *after]
            yield ids, read, edges[read] - edges[first] + len(before)

    def to_disk(self, path: Path | str, *, exclude: Sequence[str] = ()) -> None:
        """Write the tagger's file."""
        Path(path).mkdir(exist_ok=True)
        (Path(path) / FILE).write_bytes(self._content)

    def from_disk(self, path: Path | str, *, exclude: Sequence[str] = ()) -> Any:
        """Read what `to_disk` wrote."""
        return self.from_bytes((Path(path) / FILE).read_bytes())

    def to_bytes(self, *, exclude: Sequence[str] = ()) -> bytes:
        """Return the tagger's file."""
        return self._content

    def from_bytes(self, data: bytes, *, exclude: Sequence[str] = ()) -> Any:
        """Read what `to_bytes` returned."""
        self.__dict__ = {"_model": None, "_content": data}  # what was cached is another tagger's
        return self


def _sentences(doc: Doc) -> Iterator[list[Any]]:
    """Yield the tokens of each sentence, of the whole Doc if it is not cut, without white space."""
    for part in doc.sents if doc.has_annotation("SENT_START") else [doc]:
        if tokens := [token for token in part if not token.is_space]:
            yield tokens


def create(nlp: Any, name: str, model: str | None) -> OnnxComponent:
    """Return the component: what spaCy calls for `nlp.add_pipe("seqmix_onnx")`."""
    required = nlp.meta.setdefault("requirements", [])  # what `spacy package` writes down
    needs = ("onnxruntime>=1.20", "tokenizers>=0.22", "numpy>=2.0")
    required += [need for need in needs if need not in required]
    return OnnxComponent(model)


# A pipeline's copy of this file may be loaded beside that of seqmix.
if FACTORY not in spacy.registry.factories:
    spacy.Language.factory(
        FACTORY,
        default_config={"model": None},
        assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
        func=create,
    )
