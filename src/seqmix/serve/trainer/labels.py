"""What a training reads from the store: labels, the pool, and sentences generated earlier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from seqmix.data.augmented import Augmented
from seqmix.data.sentence import Sentence
from seqmix.serve.project import Project
from seqmix.serve.sources.llm.annotator import STREAM, answered_by_models, weights
from seqmix.serve.store.batches.bulk import bulk_ids
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.rankings import read_generated, vetoed_ids
from seqmix.serve.store.records import BULK, Generation, digest
from seqmix.serve.store.sentences import read_labeled, read_sentences
from seqmix.serve.store.store import Store

_PAGE = 500


@dataclass(frozen=True)
class Labels:
    """The labeled sentences as of an event."""

    labeled: dict[str, Sentence]
    new: list[Sentence]  # those that no earlier generation has seen with these labels
    changed: set[str]  # ids of sentences with events since the last generation


def read_labels(project: Project, last: Generation | None, seq: int) -> Labels:
    """Return the labels as of event `seq`; later answers belong to the next generation."""
    store, learn_from_audit = project.store, project.settings.audit_train
    streams = ("seed", "active", *(("audit",) if learn_from_audit else ()))
    bulk = bulk_ids(store)  # a model does not learn from what a model said
    read = (s for s in read_labeled(store, *streams) if s.labeled and s.id not in bulk)
    labeled = _weighted(store, {sentence.id: sentence for sentence in read})
    for event in read_events(store, seq):
        labeled.pop(event.sentence_id, None)
    whole = [s for s in labeled.values() if s.weight == 1.0]  # no sentence is made from others
    if last is None or last.number == 0:
        return Labels(labeled, whole, set())
    changed = {event.sentence_id for event in read_events(store, last.notes.seq)}
    return Labels(labeled, [s for s in whole if s.id in changed], changed)


def _weighted(store: Store, labeled: dict[str, Sentence]) -> dict[str, Sentence]:
    """Return labels with the weight of those that language models gave; without weight, none."""
    by_models = answered_by_models(store)
    weight_of = weights(store) if by_models else {}
    for id in by_models.keys() & labeled.keys():
        sentence, weight = labeled.pop(id), weight_of.get(by_models[id], 0.0)
        if weight > 0:
            labeled[id] = replace(sentence, weight=weight)
    return labeled


def count_touched(project: Project, seq: int) -> int:
    """Return how many sentences to learn from were answered or changed after an event."""
    ignored = (BULK, STREAM, *(() if project.settings.audit_train else ("audit",)))
    since = read_events(project.store, seq)
    changing = (e for e in since if e.kind not in ("skip", "discard"))
    return len({e.sentence_id for e in changing if e.stream not in ignored})


def tags_changed(project: Project, last: Generation | None) -> bool:
    """Whether the tags mean something else than when the last model learned them."""
    known = 0 if last is None else last.notes.tag_change or 0
    changes = project.store.tag_history().changes
    return last is not None and any(c.id > known and c.kind != "recolor" for c in changes)


def read_augmented(project: Project, labels: Labels) -> list[Augmented]:
    """Return what was generated before, unless vetoed or made from labels since changed."""
    usable: list[Augmented] = []
    page, offset = read_generated(project.store, _PAGE, 0)[0], 0
    while page:
        for generated in page:
            augmented = Augmented.from_record(generated.record)
            if not generated.vetoed and all(
                parent in labels.labeled and parent not in labels.changed
                for parent in augmented.lineage.parents
            ):
                usable.append(augmented)
        offset += len(page)
        page = read_generated(project.store, _PAGE, offset)[0]
    return usable


def without_vetoed(project: Project, generated: Collection[Augmented]) -> list[Augmented]:
    """Return each generated text once, without those that a person vetoed."""
    by_text = {digest(augmented.sentence.tokens): augmented for augmented in generated}
    vetoed = vetoed_ids(project.store)
    return [augmented for key, augmented in by_text.items() if key not in vetoed]


def sample_pool(project: Project, most: int, rng: np.random.Generator) -> dict[str, Sentence]:
    """Return the unlabeled sentences by id, or a random sample if there are too many."""
    ids = unlabeled_ids(project.store, most, rng)
    return {s.id: s for s in read_sentences(project.store, ids)}
