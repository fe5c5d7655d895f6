"""Who is labeled and who is not. Seed set and pool are disjoint at all times, by sentence id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from seqmix.data.sentence import DOCSTART, Sentence, unique_ids
from seqmix.errors import DataError, PoolExhaustedError


@dataclass(frozen=True)
class Pool:
    """Sentences by id: those that may be asked for, and those that are labeled. A value: `label` gives the next one."""

    unlabeled: dict[str, Sentence]
    labeled: dict[str, Sentence] = field(
        default_factory=dict
    )  # in the order in which they were labeled

    @classmethod
    def of(cls, sentences: Iterable[Sentence], labeled: Iterable[Sentence] = ()) -> Pool:
        """A pool of everything that is worth asking: no empty sentence, no -DOCSTART-, and a sentence that stands there twice only once."""
        known = {s.id: s for s in unique_ids(labeled)}
        texts = {s.tokens for s in known.values()}
        waiting: dict[str, Sentence] = {}
        for sentence in unique_ids(sentences):
            if (
                sentence.tokens
                and sentence.tokens[0] != DOCSTART
                and sentence.id not in known
                and sentence.tokens not in texts
            ):
                texts.add(sentence.tokens)
                waiting[sentence.id] = sentence.unlabeled()
        return cls(waiting, known)

    def take(self, ids: Sequence[str]) -> list[Sentence]:
        """The unlabeled sentences with these ids, in this order; asking for one that is not there is an error."""
        strangers = [id for id in ids if id not in self.unlabeled]
        if strangers or len(set(ids)) != len(ids):
            what = f"{strangers[0]!r} is not in the pool" if strangers else "an id was chosen twice"
            raise DataError(f"the policy chose wrongly: {what}")
        return [self.unlabeled[id] for id in ids]

    def label(self, ids: Sequence[str], sentences: Sequence[Sentence]) -> Pool:
        """The pool once these ids are labeled; the answers must be the sentences that were asked."""
        asked = self.take(ids)
        if len(ids) != len(sentences):
            raise DataError(
                f"{len(ids)} sentences were asked and {len(sentences)} answered; give one answer an id"
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
        """Whether n more can be asked for."""
        if n > len(self.unlabeled):
            raise PoolExhaustedError(n, len(self.unlabeled))
