"""The table {W, E}: the words a mix may become, and their embeddings.

A mixed embedding is looked up by exact nearest entry: float32 products list the few entries that
could be nearest and float64 decides among them, with ties to the lowest id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from seqmix.augment.settings import DISTANCES, Distance
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError

Vectors = NDArray[np.float32]
_BLOCK = 1 << 24  # numbers in one block of a product: 64 MiB of float32
_NEIGHBORS = 10  # of an entry, for CSLS
_SHORTLIST = 16
_FEWEST = 32  # entries that a choice of characters must leave


@dataclass(frozen=True)
class Table:
    """Words and embeddings; `split` gives the entry of a word, or those of its pieces."""

    words: tuple[str, ...]
    vectors: Vectors  # [n_entries, width]
    starts: NDArray[np.bool_]  # [n_entries] admissible: may be generated as a word
    split: Callable[[str], Sequence[int]]
    distance: Distance = "l2"
    _embeddings: dict[str, NDArray[np.float64]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _tensors: dict[str, torch.Tensor] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            raise ConfigError(f"distance must be l2, cosine or csls; got {self.distance!r}")
        if not self.starts.any():
            raise ConfigError(
                "the table has no admissible entry left; "
                "loosen what may be generated (seen, alphabetic, min_count)"
            )

    def __len__(self) -> int:
        return len(self.words)

    def vector(self, word: str) -> NDArray[np.float64]:
        """Return the embedding of a word [width]: its entry's, or the mean of its pieces'."""
        if word not in self._embeddings:
            pieces = self.vectors[list(self.split(word))]
            self._embeddings[word] = pieces.astype(np.float64).mean(axis=0)
        return self._embeddings[word]

    def id(self, word: str) -> int | None:
        """Return the admissible entry that is this word."""
        return self._ids.get(word)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word: i for i, word in reversed(list(enumerate(self.words))) if self.starts[i]}

    def narrowed(
        self,
        sentences: Iterable[Sentence] = (),
        seen: bool = False,
        alphabetic: bool = False,
        min_count: int = 0,
    ) -> Table:
        """Admit only words of letters, or those that occur `min_count` times in the sentences."""
        starts = self.starts.copy()
        if alphabetic:
            starts &= np.array([word.isalpha() for word in self.words])
        if seen or min_count > 0:
            counts = Counter(token for sentence in sentences for token in sentence.tokens)
            starts &= np.array([counts[word] >= max(1, min_count) for word in self.words])
        return replace(self, starts=starts)

    def spelled(self, characters: frozenset[str]) -> Table:
        """Admit only words of these characters; unchanged if hardly any word would be left."""
        starts = self.starts & np.array([characters.issuperset(word) for word in self.words])
        if np.count_nonzero(starts) < _FEWEST:
            return self
        if self.distance == "csls":
            self._crowding()  # among the entries of this table, so that it is computed once
        narrow = replace(self, starts=starts)
        for name in ("_embeddings", "_tensors"):
            object.__setattr__(narrow, name, getattr(self, name))
        return narrow

    def nearest(
        self, queries: NDArray[np.float64], excluded: Sequence[Iterable[int]]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the id and distance of the admissible entry nearest to each query [n, width].

        `excluded[n]` lists the entries that the n-th query must not become.
        """
        nearest: list[tuple[int, float]] = []
        blocks = max(1, -(-len(queries) * len(self) // _BLOCK))
        for block in np.array_split(np.arange(len(queries)), blocks):
            nearest += self._nearest_block(queries[block], [set(excluded[i]) for i in block])
        ids = np.array([id for id, _ in nearest], dtype=np.int64)
        return ids, np.array([distance for _, distance in nearest], dtype=np.float64)

    def _nearest_block(
        self, queries: NDArray[np.float64], excluded: Sequence[set[int]]
    ) -> list[tuple[int, float]]:
        if not len(queries):
            return []
        rough = self._rough(torch.from_numpy(queries.astype(np.float32)))
        size = min(len(self), _SHORTLIST + max(map(len, excluded)))
        values, order = (t.cpu().numpy() for t in rough.topk(size, dim=1, largest=False))
        slack = 1e-4 * (1 + np.abs(values[:, 0]))  # far beyond what float32 can be wrong by
        nearest = []
        for row, query in enumerate(queries):
            allowed = [self.starts[id] and id not in excluded[row] for id in order[row].tolist()]
            near, ids = values[row][allowed], order[row][allowed]
            if len(near) and (size == len(self) or near[-1] > near[0] + slack[row]):
                ids = np.sort(ids[near <= near[0] + slack[row]])
            else:  # too many entries within rounding of each other, or none: compare all of them
                ids = np.array(
                    [i for i in np.flatnonzero(self.starts) if i not in excluded[row]],
                    dtype=np.int64,
                )
            if not len(ids):
                raise ConfigError(
                    "no admissible entry is left beside the two parents; "
                    "loosen what may be generated (seen, alphabetic, min_count)"
                )
            exact = self.exact(query, ids)
            best = int(np.argmin(exact))
            nearest.append((int(ids[best]), float(exact[best])))
        return nearest

    def near(
        self, queries: NDArray[np.float64], excluded: Sequence[Iterable[int]], n: int
    ) -> list[list[int]]:
        """Return the n admissible entries nearest to each query, the nearest first."""
        rough = self._rough(torch.from_numpy(queries.astype(np.float32)))
        size = min(len(self), n + max(len(set(barred)) for barred in excluded))
        order = rough.topk(size, dim=1, largest=False).indices.tolist()
        lists = []
        for query, ids, barred in zip(queries, order, map(set, excluded), strict=True):
            kept = np.array([id for id in ids if self.starts[id] and id not in barred][:n])
            lists.append(kept[np.argsort(self.exact(query, kept), kind="stable")].tolist())
        return lists

    def exact(self, query: NDArray[np.float64], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the distances of a query to some entries in float64; CSLS is negated."""
        vectors = self.vectors[ids].astype(np.float64)
        if self.distance == "l2":
            gaps: NDArray[np.float64] = np.sqrt(((vectors - query) ** 2).sum(axis=1))
            return gaps
        norms = np.sqrt((vectors**2).sum(axis=1)) * np.sqrt((query**2).sum())
        cosine = (vectors * query).sum(axis=1) / np.maximum(norms, 1e-30)
        distances: NDArray[np.float64] = (
            1 - cosine if self.distance == "cosine" else 1 - 2 * cosine + self._crowding()[ids]
        )
        return distances

    def _rough(self, queries: torch.Tensor) -> torch.Tensor:
        """Return float32 distances [n, n_entries] up to a constant per row; inadmissible: inf."""
        if "matrix" not in self._tensors:
            device = "cuda" if torch.cuda.is_available() else "cpu"
            matrix = torch.from_numpy(self.vectors).to(device)
            self._tensors["squares"] = (matrix.double() ** 2).sum(1).float()
            if self.distance != "l2":
                matrix = torch.nn.functional.normalize(matrix, dim=1)
            self._tensors["matrix"] = matrix
        matrix = self._tensors["matrix"]
        barred = self._barred.to(matrix.device)
        queries = queries.to(matrix.device)
        if self.distance == "l2":
            return torch.addmm(self._tensors["squares"] + barred, queries, matrix.T, alpha=-2)
        cosine = torch.nn.functional.normalize(queries, dim=1) @ matrix.T
        if self.distance == "cosine":
            return barred - cosine
        return barred - 2 * cosine + torch.from_numpy(self._crowding()).float().to(matrix.device)

    @cached_property
    def _barred(self) -> torch.Tensor:
        """0 for an admissible entry and inf for every other one [n_entries]."""
        return torch.from_numpy(np.where(self.starts, 0, np.inf).astype(np.float32))

    def _crowding(self) -> NDArray[np.float64]:
        """Return the mean cosine of each entry to its nearest neighbors, which CSLS subtracts."""
        if "crowding" not in self._tensors:
            unit = torch.nn.functional.normalize(torch.from_numpy(self.vectors), dim=1)
            if torch.cuda.is_available():
                unit = unit.cuda()
            admissible = unit[torch.from_numpy(self.starts).to(unit.device)]
            k = min(_NEIGHBORS + 1, len(admissible))
            rows = max(1, _BLOCK // len(admissible))
            mean = torch.cat(
                [
                    (part @ admissible.T).topk(k, dim=1).values[:, 1:].mean(1)
                    for part in unit.split(rows)
                ]
            )
            self._tensors["crowding"] = mean.nan_to_num().cpu()
        return self._tensors["crowding"].numpy().astype(np.float64)
