"""Where two annotators differ: which tags they confuse, and how well they agree on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from seqmix.serve.progress.agreement import answered_twice, common_part
from seqmix.serve.progress.estimates import inside
from seqmix.serve.store.records import Answer, Mark, Ranges
from seqmix.serve.store.store import Store


@dataclass(frozen=True)
class Difference:
    """What one annotator marks and another does not mark like that."""

    a: str
    b: str
    tag_a: str | None  # None: no mark there
    tag_b: str | None
    ends: bool  # whether their marks begin or end elsewhere


def confusion(store: Store) -> dict[str, Any]:
    """Return the F1 between annotators by tag, and their differences, most frequent first."""
    agreed, marked = Counter[str](), Counter[str]()
    differences, examples = Counter[Difference](), dict[Difference, str]()
    for sentence, answers in answered_twice(store):
        for a, b in combinations(sorted(answers, key=lambda answer: answer.annotator_id), 2):
            shared = common_part(a.sure, b.sure, len(sentence))
            in_a, in_b = _marks(a, shared), _marks(b, shared)
            marked.update(mark.tag for mark in (*in_a, *in_b))
            agreed.update(mark.tag for mark in in_a if mark in in_b)
            for tag_a, tag_b, ends in mark_differences(in_a, in_b):
                difference = Difference(a.annotator, b.annotator, tag_a, tag_b, ends)
                differences[difference] += 1
                examples.setdefault(difference, sentence.id)
    return {
        "tags": [
            {"tag": tag, "marks": marked[tag], "f1": 2 * agreed[tag] / marked[tag]}
            for tag in store.read_tags()
            if marked[tag]
        ],
        "differences": [
            {**asdict(difference), "n": n, "example": examples[difference]}
            for difference, n in differences.most_common()
        ],
    }


def _marks(answer: Answer, shared: Ranges | None) -> list[Mark]:
    """Return the marks of an answer in the part that both answers are about."""
    return [mark for mark in answer.spans if shared is None or inside(mark, shared)]


def mark_differences(
    in_a: Iterable[Mark], in_b: Iterable[Mark]
) -> Iterator[tuple[str | None, str | None, bool]]:
    """Yield pairs of tags for marks that are not the same: at the same place first, then near."""
    left_a, left_b = sorted({*in_a} - {*in_b}), sorted({*in_b} - {*in_a})
    for exact in (True, False):
        for mark in list(left_a):
            other = _counterpart(mark, left_b, exact)
            if other is not None:
                left_a.remove(mark)
                left_b.remove(other)
                yield mark.tag, other.tag, not exact
    yield from ((mark.tag, None, False) for mark in left_a)
    yield from ((None, mark.tag, False) for mark in left_b)


def _counterpart(mark: Mark, others: Sequence[Mark], exact: bool) -> Mark | None:
    """Return a mark of the same tokens, or the first that shares one, of the same tag if any."""
    near = [
        other
        for other in others
        if (other[:2] == mark[:2] if exact else other.start < mark.end and mark.start < other.end)
    ]
    return min(near, key=lambda other: other.tag != mark.tag, default=None)
