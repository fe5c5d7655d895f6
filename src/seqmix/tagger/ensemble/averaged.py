"""Taggers that differ by their seed, as one: the mean of their p(tag | token) predicts.

For a CRF that is the mean of the marginals. The best path is the legal one with the highest product
of these means (Viterbi without transitions, but for those that the tag scheme forbids).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, tee
from pathlib import Path as FilePath

import numpy as np
import torch
from numpy.typing import NDArray

from seqmix.data.files import version_problem
from seqmix.data.inputs import Text, as_sentences
from seqmix.data.overwriting import FolderKind
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, ModelError
from seqmix.protocols import Measure, Probs
from seqmix.protocols import Tagger as AnyTagger
from seqmix.tagger.decoding import legal_rules, search, to_paths
from seqmix.tagger.inference import MEASURES
from seqmix.tagger.model_folders import writing
from seqmix.tagger.paths import Path
from seqmix.tagger.tagger import Tagger

FORMAT_VERSION = 1
_FILE = "averaged.json"
_FOLDER = FolderKind("averaged taggers", (_FILE,), ("*/*",))
_BATCH = 64  # sentences whose paths are searched together
_LEAST = 1e-30  # so that every probability has a logarithm


class AveragedTagger:
    """Trained taggers as one: `AveragedTagger([first, second, third])`."""

    def __init__(self, members: Sequence[AnyTagger]) -> None:
        if len({member.tag_set for member in members}) != 1:
            raise ConfigError("averaged taggers must be at least one, and all have the same tags")
        self.members = tuple(members)
        self.tag_set: TagSet | None = members[0].tag_set

    def probabilities(self, sentences: Iterable[Text]) -> Iterator[Probs]:
        """Yield the mean p(tag | token) of the members [n_tokens, n_tags]."""
        copies = tee(as_sentences(sentences), len(self.members))
        by_member = [m.probabilities(copy) for m, copy in zip(self.members, copies, strict=True)]
        return (np.mean(rows, axis=0) for rows in zip(*by_member, strict=True))

    def unsure(self, sentences: Iterable[Text], measure: Measure) -> Iterator[float]:
        """Yield how unsure the mean is of each sentence, as `Tagger.unsure` measures it."""
        for rows in self.probabilities(sentences):
            by_token = MEASURES[measure](torch.from_numpy(rows).double())
            total = float(by_token.sum())
            yield total if measure == "least" else total / max(1, len(rows))

    def best_paths(
        self,
        sentences: Iterable[Text],
        n: int = 1,
        legal: bool = True,
        keep: bool = False,
        by_token: bool = False,
    ) -> Iterator[list[Path]]:
        """Yield the n most probable taggings of each sentence; for the options see `Tagger`."""
        ahead, behind = tee(as_sentences(sentences))
        rows = self.probabilities(ahead)
        while batch := list(islice(behind, _BATCH)):
            probs = list(islice(rows, len(batch)))
            paths = self._paths([s for s in batch if len(s)], probs, n, legal, keep, by_token)
            for sentence in batch:
                yield next(paths) if len(sentence) else [Path((), 1.0)]

    def predict(
        self, sentences: Iterable[Text], legal: bool = True, keep: bool = False
    ) -> Iterator[Sentence]:
        """Yield the sentences with their most probable tags."""
        ahead, behind = tee(as_sentences(sentences))
        best = self.best_paths(ahead, legal=legal, keep=keep)
        for sentence, paths in zip(behind, best, strict=True):
            yield sentence.with_tags(paths[0].tags)

    def embeddings(self, sentences: Iterable[Text]) -> Iterator[NDArray[np.float32]]:
        """Yield the members' hidden states side by side [n_tokens, sum of widths]."""
        copies = tee(as_sentences(sentences), len(self.members))
        by_member = [m.embeddings(copy) for m, copy in zip(self.members, copies, strict=True)]
        return (np.concatenate(states, axis=1) for states in zip(*by_member, strict=True))

    def dropped(
        self, sentences: Iterable[Text], passes: int, rng: np.random.Generator
    ) -> Iterator[NDArray[np.float32]]:
        """Yield the mean under dropout in each head [passes, n_tokens, n_tags]."""
        n = len(self.members)
        copies, draws = tee(as_sentences(sentences), n), rng.spawn(n)
        each = zip(self.members, copies, draws, strict=True)
        by_member = [member.dropped(copy, passes, draw) for member, copy, draw in each]
        return (np.mean(rows, axis=0) for rows in zip(*by_member, strict=True))

    def save(self, folder: FilePath | str) -> None:
        """Write the members to a folder that `load` reads."""
        with writing(FilePath(folder), _FOLDER) as beside:
            for number, member in enumerate(self.members):
                member.save(beside / str(number))
            described = {"format_version": FORMAT_VERSION, "members": len(self.members)}
            (beside / _FILE).write_text(json.dumps(described) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: FilePath | str, device: str | None = None) -> AveragedTagger:
        """Return the taggers that `save` wrote to a folder."""
        folder = FilePath(folder)
        try:
            described = dict(json.loads((folder / _FILE).read_text(encoding="utf-8")))
            count = range(described.get("members", 0))
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise ModelError(f"{folder} holds no averaged taggers: see its {_FILE}") from error
        problem = version_problem(folder, described.get("format_version"), FORMAT_VERSION)
        if problem is not None:
            raise ModelError(problem)
        return cls([Tagger.load(folder / str(number), device) for number in count])

    def _paths(
        self,
        batch: Sequence[Sentence],
        probs: Sequence[Probs],
        n: int,
        legal: bool,
        keep: bool,
        by_token: bool,
    ) -> Iterator[list[Path]]:
        """Yield the best paths of sentences that have tokens."""
        if not batch:
            return
        tags, cpu = self.tag_set, torch.device("cpu")
        assert tags is not None  # the members are trained
        rows = torch.from_numpy(np.concatenate(probs)).double()
        ends = torch.tensor([len(sentence) for sentence in batch])
        rules = legal_rules(tags, cpu) if legal else None
        logs = rows.clamp_min(_LEAST).log()
        tensors = search(logs, batch, ends, None, tags, n, rules, keep)
        yield from to_paths((*tensors, *((rows,) if by_token else ())), batch, tags)


def load_trained(folder: FilePath, device: str | None = None) -> AveragedTagger | Tagger:
    """Return the tagger in a folder, or the averaged ones."""
    kind = AveragedTagger if (folder / _FILE).exists() else Tagger
    return kind.load(folder, device)
