"""Which sentences are labeled and which may be asked for; no id is ever among both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from seqmix.data.sentence import DOCSTART, Sentence, unique_ids
from seqmix.errors import DataError, PoolExhaustedError
from seqmix.query.part import Window


@dataclass(frozen=True)
class Pool:
    """Sentences by id: those that may be asked for, and those that are labeled.

    >>> pool = Pool.of([Sentence("1", ("Lena", "left")), Sentence("2", ("Oslo",))])
    >>> pool = pool.label(["2"], [Sentence("2", ("Oslo",), ("B-LOC",))])
    >>> list(pool.unlabeled), list(pool.labeled)
    (['1'], ['2'])
    """

    unlabeled: dict[str, Sentence]
    """Those that may be asked for."""
    labeled: dict[str, Sentence] = field(default_factory=dict)
    """Those that are labeled, in the order of their labeling."""

    @classmethod
    def of(cls, sentences: Iterable[Sentence], labeled: Iterable[Sentence] = ()) -> Pool:
        """Return a pool without empty sentences, -DOCSTART- and repetitions.

        Args:
            sentences: Those to ask for; labels they have are removed.
            labeled: Those that are labeled already; they are not asked for again.
        """
        done = {s.id: s for s in unique_ids(labeled)}
        texts = {s.tokens for s in done.values()}
        unlabeled: dict[str, Sentence] = {}
        for sentence in unique_ids(sentences):
            if (
                sentence.tokens
                and sentence.tokens[0] != DOCSTART
                and sentence.id not in done
                and sentence.tokens not in texts
            ):
                texts.add(sentence.tokens)
                unlabeled[sentence.id] = sentence.unlabeled()
        return cls(unlabeled, done)

    def take(self, ids: Sequence[str]) -> list[Sentence]:
        """Return the unlabeled sentences with these ids, in this order."""
        strangers = [id for id in ids if id not in self.unlabeled]
        if strangers or len(set(ids)) != len(ids):
            what = f"{strangers[0]!r} is not in the pool" if strangers else "an id was chosen twice"
            raise DataError(f"the policy returned an invalid choice: {what}")
        return [self.unlabeled[id] for id in ids]

    def label(self, ids: Sequence[str], sentences: Sequence[Sentence]) -> Pool:
        """Return the pool once these ids are labeled; an answer keeps the tokens it was asked."""
        asked = self.take(ids)
        if len(ids) != len(sentences):
            raise DataError(
                f"there must be one answer per id; got {len(sentences)} answers to {len(ids)}"
            )
        for question, answer in zip(asked, sentences, strict=True):
            if question.tokens != answer.tokens:
                raise DataError(
                    f"the answer to {question.id!r} has other tokens than the question",
                    text=" ".join(answer.tokens),
                )
            if not answer.labeled:
                raise DataError(
                    f"the answer to {question.id!r} has no label", text=" ".join(answer.tokens)
                )
        gone = set(ids)
        answers = dict(zip(ids, sentences, strict=True))
        return Pool(
            {id: s for id, s in self.unlabeled.items() if id not in gone},
            {**self.labeled, **answers},
        )

    def check(self, n: int) -> None:
        """Refuse to ask for more sentences than are left."""
        if n > len(self.unlabeled):
            raise PoolExhaustedError(n, len(self.unlabeled))


def answered(sentences: Sequence[Sentence], parts: Sequence[Window] | None) -> list[Sentence]:
    """Return labeled sentences with the labels that were asked for; None: with all of them."""
    if parts is None:
        return list(sentences)
    return [
        sentence.with_tags(
            [row if start <= at < end else None for at, row in enumerate(sentence.tags)]
        )
        for sentence, (start, end) in zip(sentences, parts, strict=True)
    ]


Label = Callable[[Sequence[Sentence]], Sequence[Sentence]]  # the same sentences with labels


def labels_of(gold: Iterable[Sentence]) -> Label:
    """Return a function that labels sentences as the gold data does, by id."""
    labeled = {sentence.id: sentence for sentence in gold if sentence.labeled}

    def label(sentences: Sequence[Sentence]) -> list[Sentence]:
        missing = [sentence.id for sentence in sentences if sentence.id not in labeled]
        if missing:
            raise DataError(f"the gold data has no labels for {missing[0]!r}")
        return [labeled[sentence.id] for sentence in sentences]

    return label
