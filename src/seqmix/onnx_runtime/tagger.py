"""An exported tagger: what `seqmix.Tagger` predicts, through onnxruntime and numpy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any, NoReturn, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from seqmix.data.inputs import Text, as_sentences, entities_in
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Entity
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, ModelError, first_line
from seqmix.onnx_runtime import chain as crf
from seqmix.onnx_runtime.chain import Floats, Ints
from seqmix.onnx_runtime.model_file import INPUTS, OUTPUT, open_model
from seqmix.protocols import Measure
from seqmix.query.uncertainty import least_confidence_sum, margin, token_entropy
from seqmix.tagger.paths import Path, best_tagged, paths_of
from seqmix.tagger.windows import Windows, by_length, chunks, joined, sizes_of, word_places

T = TypeVar("T")
# Of a batch: its scores, flat [n_words, n_tags], its sentences and their lengths.
Finish = Callable[[Floats, Sequence[Sentence], Ints], list[T]]
BUDGET = 512  # pieces per batch: what fits the cache
_PLACES = 2**14  # read at once: a very long sentence would not fit into memory
_MEASURES: dict[Measure, Callable[[NDArray[np.float32]], float]] = {
    "entropy": token_entropy,
    "least": least_confidence_sum,
    "margin": margin,
}


class OnnxTagger:
    """A tagger that runs without torch: `OnnxTagger("ner.onnx")("Lena left Oslo.")`.

    Every method that takes sentences takes raw texts and lists of tokens too.

    Args:
        path: A file that `seqmix export --to onnx` or `--to onnx-int8` wrote.
        threads: Batches at a time; by default one for each core.
    """

    def __init__(self, path: FilePath | str, threads: int | None = None) -> None:
        model = open_model(FilePath(path))
        self.description = model.description
        self.tag_set: TagSet = model.tag_set
        self.threads = threads or _cores()
        self._session, self._pieces, self._chain = model.session, model.pieces, model.chain
        self._legal = (model.chain or crf.free_chain(len(self.tags))).restricted(self.tag_set)

    def __repr__(self) -> str:
        facts = (self.description.get(key) for key in ("encoder", "head", "precision"))
        return f"OnnxTagger({', '.join(map(str, facts))}: {', '.join(self.tag_set.types)})"

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its entities."""
        return self.tag_set.types

    @overload
    def __call__(self, text: str | Sentence) -> list[Entity]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, text: Iterable[Text]) -> list[list[Entity]]: ...
    def __call__(self, text: str | Sentence | Iterable[Text]) -> list[Entity] | list[list[Entity]]:
        """Return the entities of a text, or of each of many, with offsets and probabilities."""
        return entities_in(text, self.best_paths)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags in the order of the head's scores."""
        return self.tag_set.tags

    def emissions(self, sentences: Iterable[Text]) -> Iterator[Floats]:
        """Yield the head's scores of each sentence [n_tokens, n_tags]."""
        return self._map(sentences, lambda scores, _, ends: _cut(scores, ends), self._empty())

    def probabilities(self, sentences: Iterable[Text]) -> Iterator[NDArray[np.float32]]:
        """Yield p(tag | token) for each sentence [n_tokens, n_tags]; for a CRF the marginals."""

        def finish(scores: Floats, _: Any, ends: Ints) -> list[NDArray[np.float32]]:
            return _cut(self._by_token(scores, ends).astype(np.float32), ends)

        return self._map(sentences, finish, self._empty().astype(np.float32))

    def unsure(self, sentences: Iterable[Text], measure: Measure) -> Iterator[float]:
        """Yield how unsure the tagger is of each sentence: its `entropy`, `least` or `margin`."""
        score = _MEASURES[measure]
        return (score(rows) if len(rows) else 0.0 for rows in self.probabilities(sentences))

    def best_paths(
        self,
        sentences: Iterable[Text],
        n: int = 1,
        legal: bool = True,
        keep: bool = False,
        by_token: bool = False,
    ) -> Iterator[list[Path]]:
        """Yield the n most probable taggings of each sentence, best first.

        Args:
            sentences: Any number of texts, Sentences or lists of tokens.
            n: How many; a short sentence may have fewer.
            legal: Only legal taggings, without an I- that has no B-.
            keep: Only taggings that agree with the labels a sentence already has.
            by_token: Add the probability of each token's tag.
        """

        def finish(scores: Floats, batch: Sequence[Sentence], ends: Ints) -> list[list[Path]]:
            rows = self._by_token(scores, ends) if by_token else None
            return paths_of(
                *self._search(scores, batch, ends, n, legal, keep), batch, self.tag_set, rows
            )

        return self._map(sentences, finish, [Path((), 1.0)])

    def predict(
        self, sentences: Iterable[Text], legal: bool = True, keep: bool = False
    ) -> Iterator[Sentence]:
        """Yield the sentences with their most probable tags; for the options see `best_paths`."""
        best_paths = partial(self.best_paths, legal=legal, keep=keep)
        yield from best_tagged(as_sentences(sentences), best_paths)

    def embeddings(self, sentences: Iterable[Text]) -> NoReturn:
        """Refuse: the file gives scores and nothing else."""
        raise ModelError(
            "a tagger exported to ONNX has no embeddings; take the folder it came from, "
            "or a policy such as nte, mnlp or lc"
        )

    def dropped(self, sentences: Iterable[Text], passes: int, rng: np.random.Generator) -> NoReturn:
        """Refuse, for the same reason."""
        self.embeddings(sentences)

    def int8(self) -> OnnxTagger:
        """Return the tagger itself if it multiplies in int8; otherwise it must be exported so."""
        if self.description["precision"] != "int8":
            raise ConfigError("an ONNX file cannot be rounded here; seqmix export --to onnx-int8")
        return self

    def save(self, folder: FilePath | str) -> NoReturn:
        """Refuse: the file itself can be copied."""
        raise ModelError("a tagger exported to ONNX cannot be saved; copy its file")

    def _search(
        self,
        scores: Floats,
        batch: Sequence[Sentence],
        ends: Ints,
        n: int,
        legal: bool,
        keep: bool,
    ) -> tuple[Ints, Floats, NDArray[np.bool_]]:
        """Return the n best paths, their probabilities, and which of them exist."""
        if self._chain is None:
            scores = scores - crf.log_sum(scores, axis=1)[:, None]
            log_z = np.zeros(len(ends))
        else:
            log_z = crf.log_partition(_padded(scores, ends), ends, self._chain)
        chain = self._legal if legal else self._chain or crf.free_chain(len(self.tags))
        if keep:
            rows = np.concatenate([self.tag_set.rows(sentence) for sentence in batch])
            scores = np.where(rows == 0, crf.IMPOSSIBLE, scores)
        paths, best = crf.best_paths(_padded(scores, ends), ends, chain, n)
        # The best path always exists; others only if they break no more rules than it.
        return paths, np.exp(best - log_z[:, None]), best > best[:, :1] + crf.IMPOSSIBLE / 2

    def _by_token(self, scores: Floats, ends: Ints) -> Floats:
        """Return p(tag | token), flat [n_words, n_tags]."""
        if self._chain is None:
            return crf.softmax(scores)
        rows = crf.marginals(_padded(scores, ends), ends, self._chain)
        return rows[_inside(ends)]

    def _map(self, sentences: Iterable[Text], finish: Finish[T], empty: T) -> Iterator[T]:
        """Yield one value per sentence; batches of sentences alike in length run side by side."""
        with ThreadPoolExecutor(self.threads) as pool:
            for chunk in chunks(as_sentences(sentences)):
                results = [empty] * len(chunk)
                windows = self._pieces.encode(sentence.tokens for sentence in chunk)
                groups = by_length(windows, BUDGET)

                def run(
                    group: list[int], windows: Windows = windows, chunk: list[Sentence] = chunk
                ) -> list[T]:
                    scores, ends = self._scores([windows[i] for i in group])
                    return finish(scores, [chunk[i] for i in group], ends)

                side_by_side = pool.map if len(groups) > 1 else map
                for group, values in zip(groups, side_by_side(run, groups), strict=True):
                    for i, value in zip(group, values, strict=True):
                        results[i] = value
                yield from results

    def _scores(self, sentences: Windows) -> tuple[Floats, Ints]:
        """Return the scores of all words, flat [n_words, n_tags], and the words per sentence."""
        windows = [window for sentence in sentences for window in sentence]
        sizes = sizes_of(windows)
        width = int(sizes.max())
        mask = np.arange(width) < sizes[:, None]
        ids = np.zeros(mask.shape, dtype=np.int64)
        ids[mask] = joined([window.ids for window in windows])
        at, ends = word_places(sentences, windows, np.arange(len(windows)) * width)
        step = max(1, _PLACES // width)
        parts = [
            self._run(ids[first : first + step], mask[first : first + step].astype(np.int64))
            for first in range(0, len(ids), step)
        ]
        logits = np.concatenate(parts).reshape(-1, len(self.tags))
        return logits[at].astype(np.float64), ends

    def _run(self, ids: Ints, mask: Ints) -> NDArray[np.float32]:
        try:
            (logits,) = self._session.run([OUTPUT], dict(zip(INPUTS, (ids, mask), strict=True)))
        except Exception as error:  # onnxruntime raises a dozen kinds
            raise ModelError(f"onnxruntime cannot run this tagger: {first_line(error)}") from error
        scores: NDArray[np.float32] = logits
        return scores

    def _empty(self) -> Floats:
        return np.zeros((0, len(self.tags)))


def _cut(rows: NDArray[Any], ends: Ints) -> list[NDArray[Any]]:
    """Cut the flat rows of words into those of each sentence."""
    return [rows[a:b] for a, b in pairwise(np.cumsum([0, *ends]).tolist())]


def _inside(ends: Ints) -> NDArray[np.bool_]:
    """Return which places of the box [n_sentences, longest] hold a word."""
    inside: NDArray[np.bool_] = np.arange(ends.max()) < ends[:, None]
    return inside


def _padded(flat: Floats, ends: Ints) -> Floats:
    """Turn rows of words [n_words, n] into [n_sentences, longest, n], zeros behind the end."""
    inside = _inside(ends)
    box = np.zeros((*inside.shape, flat.shape[1]))
    box[inside] = flat
    return box


def _cores() -> int:
    """Return the cores that this process may use, or what OMP_NUM_THREADS says."""
    said = os.environ.get("OMP_NUM_THREADS", "")
    return int(said) if said.isdecimal() and int(said) else len(os.sched_getaffinity(0))
