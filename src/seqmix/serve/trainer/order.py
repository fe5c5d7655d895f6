"""The order in which the best of a ranking are asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seqmix.data.sentence import Sentence
from seqmix.query.selection import with_quota
from seqmix.query.templates import apart, masked, templates
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.events import last_asked
from seqmix.serve.store.records import rows
from seqmix.serve.store.sentences import read_sentences
from seqmix.serve.store.store import Store
from seqmix.serve.trainer.parts import Parts
from seqmix.serve.trainer.suggestions import Guess


def asking_order(
    store: Store, parts: Parts, best: Mapping[str, Guess], pool: Mapping[str, Sentence]
) -> list[str]:
    """Return ids, best first, with a quota of those without entities, then with templates apart.

    What the model finds, and people marked, is masked, so that a template is what stands around
    it. The sentences asked last count, or each new model could ask the same again.
    """
    empty = {id for id, guess in best.items() if guess.empty}
    order = with_quota([*best], empty, parts.without_entity)
    if parts.apart < 2 or not order:
        return order
    asked = [id for id in last_asked(store, parts.apart - 1) if id not in pool]
    known = [*_answered(store, asked), *(masked(pool[id], best[id].tags) for id in order)]
    return apart(order, templates(known), parts.apart, asked)


def _answered(store: Store, ids: Sequence[str]) -> Iterator[Sentence]:
    """Yield sentences with what was marked in them masked."""
    for sentence in read_sentences(store, ids):
        marks = [m for answer in current_answers(store, sentence.id)[:1] for m in answer.spans]
        yield masked(sentence, [str(row) for row in rows(marks, None, len(sentence))])
