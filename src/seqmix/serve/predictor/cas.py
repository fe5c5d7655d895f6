"""Documents of INCEpTION: a UIMA CAS as XMI, with its type system.

subtle: they come from strangers, and cassis makes Python classes of what the type system declares,
so whatever is not a plain name is refused; so are documents that declare entities.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from keyword import iskeyword
from typing import Any

from seqmix.errors import DataError, MissingExtraError, first_line
from seqmix.extras import import_extra

_SEGMENTATION = "de.tudarmstadt.ukp.dkpro.core.api.segmentation.type"
_SENTENCE, _TOKEN = f"{_SEGMENTATION}.Sentence", f"{_SEGMENTATION}.Token"
_PREDICTED = "inception_internal_predicted"
_DECLARATION = re.compile(r"\s*<\?xml[^>]*\?>")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*(\[\])?")


class Document:
    """A document with one layer to fill, whose annotations are labeled by one feature."""

    def __init__(self, xmi: str, type_system: str, layer: str, feature: str) -> None:
        self._cas = _read(xmi, type_system)
        self._layer = self._cas.typesystem.get_type(layer) if self._has(layer) else None
        self._feature = feature
        features = {each.name for each in self._layer.all_features} if self._layer else set()
        if not {"begin", "end", feature, _PREDICTED} <= features or any(map(iskeyword, features)):
            raise DataError(
                f"the type system must have the layer {layer[:200]!r} with begin, end, "
                f"{feature[:200]!r} and {_PREDICTED}; check layer and feature of the recommender"
            )
        self._has_score = f"{feature}_score" in features
        self._sentences = [sentence for sentence in self._split() if sentence]
        text = self._cas.sofa_string or ""
        self.tokens = [[text[t.begin : t.end] for t in tokens] for tokens in self._sentences]

    def _has(self, name: str) -> bool:
        return bool(self._cas.typesystem.contains_type(name, match_exactly=True))

    def _split(self) -> Iterator[list[Any]]:
        """Yield the tokens of each sentence; without sentences, all of them together."""
        tokens = self._select(_TOKEN)
        starts = [token.begin for token in tokens]
        at = 0
        for sentence in self._select(_SENTENCE):
            end = bisect_right(starts, sentence.end - 1)
            yield tokens[max(at, bisect_right(starts, sentence.begin - 1)) : end]
            at = max(at, end)
        if at == 0:
            yield tokens

    def _select(self, name: str) -> list[Any]:
        if not self._has(name):
            return []
        return sorted(
            (each for each in self._cas.select(name) if each.begin < each.end),
            key=lambda each: (each.begin, each.end),
        )

    def add(self, sentence: int, spans: Sequence[dict[str, Any]], by_token: bool) -> None:
        """Suggest the spans of a sentence, or one annotation for each of their tokens."""
        assert self._layer is not None
        tokens = self._sentences[sentence]
        for span in spans:
            a, b = span["token_start"], span["token_end"]
            score = {f"{self._feature}_score": span["probability"]} if self._has_score else {}
            for start, end in ((i, i + 1) for i in range(a, b)) if by_token else ((a, b),):
                values = {self._feature: span["label"], _PREDICTED: True, **score}
                place = {"begin": tokens[start].begin, "end": tokens[end - 1].end}
                self._cas.add(self._layer(**place, **values))

    def to_xmi(self) -> str:
        """Return the document with what was added."""
        return str(self._cas.to_xmi())


def _read(xmi: str, type_system: str) -> Any:
    """Return a CAS; whatever cassis stumbles over is an error of the document."""
    cassis = import_extra("cassis", "inception", "INCEpTION's recommender protocol")
    try:
        # without their declaration, texts are UTF-8 to the parser, in which DOCTYPE was looked for
        xmi, type_system = (_DECLARATION.sub("", text, count=1) for text in (xmi, type_system))
        for text in (xmi, type_system):
            if "<!DOCTYPE" in text or "<!ENTITY" in text:
                raise DataError("it declares entities or a document type")
        _check_names(type_system)
        return cassis.load_cas_from_xmi(xmi, cassis.load_typesystem(type_system))
    except MissingExtraError:
        raise
    except Exception as error:  # of many kinds: lookups, conversions, XML, recursion
        reason = first_line(error, 200)
        raise DataError(f"the document must be a CAS of its type system: {reason}") from error


def _check_names(type_system: str) -> None:
    """Refuse names that are no names: of types and features, and those that refer to types."""
    etree = import_extra("lxml.etree", "inception", "INCEpTION's recommender protocol")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    root = etree.fromstring(type_system.encode(), parser)
    for element in root.iter("{*}typeDescription", "{*}featureDescription"):
        for name in element.iterfind("{*}name"):
            if not _NAME.fullmatch((name.text or "").strip()):
                raise DataError("it declares a type or feature whose name is not a name")
