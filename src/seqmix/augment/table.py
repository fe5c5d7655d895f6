"""The table {W, E}: the words a mix may become, and their embeddings.

A mixed embedding is looked up by exact nearest entry. Float32 products find the few entries that could be nearest, float64 decides among
them, so the answer is that of a float64 search over the whole table, ties to the lowest id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.starter import STARTER, load_encoder
from seqmix.starter.guarded import tokenizing
from seqmix.starter.loader import plain_backend

Distance = Literal["l2", "cosine", "csls"]
DISTANCES: tuple[Distance, ...] = get_args(Distance)
Vectors = NDArray[np.float32]
_BLOCK = 1 << 24  # numbers in one block of a product: 64 MiB of float32
_NEIGHBORS = 10  # of an entry, for CSLS and hubness
_SHORTLIST = 16
_FEWEST = 32  # entries that a choice of characters must leave
_LETTERS = 1000  # of one word that the tokenizer is shown


@dataclass(frozen=True)
class Table:
    """Words and embeddings. `split` gives the entries a word consists of: itself where it is an entry, else its pieces."""

    words: tuple[str, ...]
    vectors: Vectors  # [n_entries, width]
    starts: NDArray[np.bool_]  # [n_entries] may stand as a word of its own
    goes_on: NDArray[np.bool_]  # [n_entries] continues a word (## pieces)
    split: Callable[[str], Sequence[int]]
    distance: Distance = "l2"
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)
    _known: dict[str, NDArray[np.float64]] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _tensors: dict[str, torch.Tensor] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )
    _barred: dict[bool, torch.Tensor] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES:
            raise ConfigError(
                f"there is no distance {self.distance!r}; there are {', '.join(DISTANCES)}"
            )
        if not self.starts.any():
            raise ConfigError(
                "the table has no admissible entry left; loosen what may be generated (seen, alphabetic, min_count)"
            )
        object.__setattr__(
            self,
            "_ids",
            {word: i for i, word in reversed(list(enumerate(self.words))) if self.starts[i]},
        )

    def __len__(self) -> int:
        return len(self.words)

    def vector(self, word: str) -> NDArray[np.float64]:
        """The embedding of a word [width]: its entry's, or the mean of its pieces'."""
        if word not in self._known:
            self._known[word] = self.vectors[list(self.split(word))].astype(np.float64).mean(axis=0)
        return self._known[word]

    def id(self, word: str) -> int | None:
        """The admissible entry that is this word."""
        return self._ids.get(word)

    def narrowed(
        self,
        sentences: Iterable[Sentence] = (),
        seen: bool = False,
        alphabetic: bool = False,
        min_count: int = 0,
    ) -> Table:
        """The same table with fewer admissible entries: seen in the sentences (at least `min_count` times), made of letters only."""
        starts = self.starts.copy()
        if alphabetic:
            starts &= np.array([word.isalpha() for word in self.words])
        if seen or min_count > 0:
            counts = Counter(token for sentence in sentences for token in sentence.tokens)
            starts &= np.array([counts[word] >= max(1, min_count) for word in self.words])
        return replace(self, starts=starts)

    def spelled(self, characters: frozenset[str]) -> Table:
        """The same table without the entries that have any other character; unchanged where hardly one would be left."""
        fits = np.array([characters.issuperset(word) for word in self.words])
        if np.count_nonzero(self.starts & fits) < _FEWEST:
            return self
        if self.distance == "csls":
            self._crowding()  # subtle: among the entries of this table, whatever the characters, so that it is computed once
        narrow = replace(self, starts=self.starts & fits, goes_on=self.goes_on & fits)
        for name in ("_known", "_tensors"):
            object.__setattr__(narrow, name, getattr(self, name))
        return narrow

    def nearest(
        self,
        queries: NDArray[np.float64],
        excluded: Sequence[Iterable[int]],
        inside: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The admissible entry nearest to each query [n, width], without those excluded for it: ids [n] and distances [n].

        `inside[n]`: look among the pieces that continue a word instead.
        """
        ids = np.empty(len(queries), dtype=np.int64)
        distances = np.empty(len(queries))
        kinds = np.zeros(len(queries), dtype=bool) if inside is None else inside
        for kind, allowed in ((False, self.starts), (True, self.goes_on)):
            rows = np.flatnonzero(kinds == kind)
            for block in np.array_split(rows, max(1, -(-len(rows) * len(self) // _BLOCK))):
                for row, (id, distance) in zip(
                    block,
                    self._nearest_block(
                        queries[block], [set(excluded[i]) for i in block], kind, allowed
                    ),
                    strict=True,
                ):
                    ids[row], distances[row] = id, distance
        return ids, distances

    def _nearest_block(
        self,
        queries: NDArray[np.float64],
        excluded: Sequence[set[int]],
        kind: bool,
        allowed: NDArray[np.bool_],
    ) -> list[tuple[int, float]]:
        if not len(queries):
            return []
        rough = self._rough(
            torch.from_numpy(queries.astype(np.float32)), kind
        )  # [block, n_entries], lower is nearer
        most = max(len(own) for own in excluded)
        size = min(len(self), _SHORTLIST + most)
        values, order = (t.cpu().numpy() for t in rough.topk(size, dim=1, largest=False))
        slack = 1e-4 * (1 + np.abs(values[:, :1]))  # far beyond what float32 can be wrong by
        found = []
        for row, query in enumerate(queries):
            keep = np.array(
                [int(i) for i in order[row] if int(i) not in excluded[row] and allowed[i]],
                dtype=np.int64,
            )
            near = np.array(
                [
                    v
                    for v, i in zip(values[row], order[row], strict=True)
                    if int(i) not in excluded[row] and allowed[i]
                ]
            )
            settled = len(near) > 0 and (size == len(self) or near[-1] > near[0] + slack[row, 0])
            if (
                not settled
            ):  # too many entries within rounding of each other, or nothing left: ask them all
                keep = np.array(
                    [i for i in np.flatnonzero(allowed) if i not in excluded[row]], dtype=np.int64
                )
                if not len(keep):
                    raise ConfigError(
                        "no admissible entry is left beside the two parents; loosen what may be generated"
                    )
            else:
                keep = np.sort(keep[near <= near[0] + slack[row, 0]])
            exact = self.exact(query, keep)
            best = int(np.argmin(exact))
            found.append((int(keep[best]), float(exact[best])))
        return found

    def exact(self, query: NDArray[np.float64], ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Distances of a query to some entries in float64: L2, 1 − cosine, or the CSLS score turned into a distance."""
        vectors = self.vectors[ids].astype(np.float64)
        if self.distance == "l2":
            gaps: NDArray[np.float64] = np.sqrt(((vectors - query) ** 2).sum(axis=1))
            return gaps
        norms = np.sqrt((vectors**2).sum(axis=1)) * np.sqrt((query**2).sum())
        cosine = (vectors * query).sum(axis=1) / np.maximum(norms, 1e-30)
        away: NDArray[np.float64] = (
            1 - cosine if self.distance == "cosine" else 1 - 2 * cosine + self._crowding()[ids]
        )
        return away

    def _rough(self, queries: torch.Tensor, kind: bool) -> torch.Tensor:
        """Float32 distances up to a constant a row; entries that are not admissible are infinitely far."""
        if "matrix" not in self._tensors:
            device = "cuda" if torch.cuda.is_available() else "cpu"
            matrix = torch.from_numpy(self.vectors).to(device)
            self._tensors["squares"] = (matrix.double() ** 2).sum(1).float()
            if self.distance != "l2":
                matrix = torch.nn.functional.normalize(matrix, dim=1)
            self._tensors["matrix"] = matrix
        matrix = self._tensors["matrix"]
        if kind not in self._barred:
            allowed = self.goes_on if kind else self.starts
            self._barred[kind] = torch.from_numpy(
                np.where(allowed, 0, np.inf).astype(np.float32)
            ).to(matrix.device)
        barred = self._barred[kind]
        queries = queries.to(matrix.device)
        if self.distance == "l2":
            return torch.addmm(self._tensors["squares"] + barred, queries, matrix.T, alpha=-2)
        cosine = torch.nn.functional.normalize(queries, dim=1) @ matrix.T
        if self.distance == "cosine":
            return barred - cosine
        return barred - 2 * cosine + torch.from_numpy(self._crowding()).float().to(matrix.device)

    def _crowding(self) -> NDArray[np.float64]:
        """Mean cosine of each entry to its nearest admissible entries: what CSLS takes off from hubs."""
        if "crowding" not in self._tensors:
            unit = torch.nn.functional.normalize(torch.from_numpy(self.vectors), dim=1)
            if torch.cuda.is_available():
                unit = unit.cuda()
            own = unit[torch.from_numpy(self.starts).to(unit.device)]
            k = min(_NEIGHBORS + 1, len(own))
            rows = max(1, _BLOCK // len(own))
            mean = torch.cat(
                [(part @ own.T).topk(k, dim=1).values[:, 1:].mean(1) for part in unit.split(rows)]
            )
            self._tensors["crowding"] = mean.nan_to_num().cpu()
        return self._tensors["crowding"].numpy().astype(np.float64)


def vocabulary_table(
    words: Sequence[str],
    vectors: Vectors,
    tokenizer: PreTrainedTokenizerFast,
    distance: Distance = "l2",
) -> Table:
    """The encoder's vocabulary and input embeddings, special and unused entries left out."""
    special = set(tokenizer.all_special_ids)
    marked = [
        word[:1] in ("Ġ", "▁") for word in words
    ]  # byte-level and sentence pieces mark the start of a word
    if any(marked):
        starts = np.array([m and len(word) > 1 for m, word in zip(marked, words, strict=True)])
        shown = tuple(
            word.lstrip("Ġ▁") if m else word for m, word in zip(marked, words, strict=True)
        )
        goes_on = ~np.array(marked)
    else:
        starts = np.array([not word.startswith("##") for word in words])
        shown, goes_on = tuple(word.removeprefix("##") for word in words), ~starts
    ordinary = np.array(
        [
            i not in special and not _unused(word) and "\ufffd" not in word
            for i, word in enumerate(words)
        ]
    )
    ordinary &= np.array([word != "" and word.isprintable() and " " not in word for word in shown])
    backend = plain_backend(tokenizer)
    unknown = tokenizer.unk_token_id or 0
    pieces: dict[str, Sequence[int]] = {}

    def split(word: str) -> Sequence[int]:
        if word not in pieces:
            with tokenizing():
                pieces[word] = tuple(
                    backend.encode(
                        [word[:_LETTERS]], is_pretokenized=True, add_special_tokens=False
                    ).ids
                ) or (unknown,)
        return pieces[word]

    return Table(
        shown,
        np.ascontiguousarray(vectors, dtype=np.float32),
        starts & ordinary,
        goes_on & ordinary,
        split,
        distance,
    )


def encoder_table(name: str = STARTER, distance: Distance = "l2") -> Table:
    """The table of a pretrained encoder: the default source."""
    model, tokenizer = load_encoder(name)
    words = tokenizer.convert_ids_to_tokens(list(range(len(model.get_input_embeddings().weight))))
    vectors = model.get_input_embeddings().weight.detach().numpy()
    return vocabulary_table([word or "[unused]" for word in words], vectors, tokenizer, distance)


def contextual_table(
    sentences: Sequence[Sentence], states: Iterable[NDArray[Any]], distance: Distance = "l2"
) -> Table:
    """The corpus's words, each with the mean of its hidden states [n_tokens, width] over all its occurrences."""
    sums: dict[str, NDArray[np.float64]] = {}
    counts: Counter[str] = Counter()
    for sentence, own in zip(sentences, states, strict=True):
        for token, state in zip(sentence.tokens, own, strict=True):
            sums[token] = sums[token] + state if token in sums else state.astype(np.float64)
            counts[token] += 1
    if not sums:
        raise ConfigError("a table of contextual embeddings needs sentences; none were given")
    words = tuple(sorted(sums))
    ids: Mapping[str, Sequence[int]] = {word: (i,) for i, word in enumerate(words)}
    vectors = np.stack([sums[word] / counts[word] for word in words]).astype(np.float32)

    def split(word: str) -> Sequence[int]:
        if word not in ids:
            raise ConfigError(
                f"the word {word!r} is not in the table of contextual embeddings; build it on the sentences to be mixed"
            )
        return ids[word]

    everything = np.ones(len(words), dtype=bool)
    return Table(words, vectors, everything, ~everything, split, distance)


def _unused(word: str) -> bool:
    return word.startswith(("[unused", "<unused", "[PAD", "<pad", "<|")) or word in (
        "<s>",
        "</s>",
        "<unk>",
        "<mask>",
    )
