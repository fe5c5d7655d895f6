"""Who answers. A simulated oracle looks the labels up in the gold data; people answer through the same method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError


class GoldOracle:
    """Answers from labeled data, by id."""

    def __init__(self, sentences: Iterable[Sentence]) -> None:
        self._gold = {sentence.id: sentence for sentence in sentences}

    def annotate(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The same sentences with their labels."""
        missing = [
            s.id for s in sentences if s.id not in self._gold or not self._gold[s.id].labeled
        ]
        if missing:
            raise DataError(f"the gold data has no labels for {missing[0]!r}")
        return [self._gold[s.id] for s in sentences]
