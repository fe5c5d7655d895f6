"""What a training reads from the store: labels, the pool, and sentences generated earlier."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from seqmix.data.augmented import Augmented
from seqmix.data.sentence import Sentence
from seqmix.serve.project import Project
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.rankings import read_generated, vetoed_ids
from seqmix.serve.store.records import Generation, digest
from seqmix.serve.store.sentences import read_labeled, read_sentences

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
    labeled = {s.id: s for s in read_labeled(store, *streams) if s.labeled}
    for event in read_events(store, seq):
        labeled.pop(event.sentence_id, None)
    if last is None or last.number == 0:
        return Labels(labeled, list(labeled.values()), set())
    changed = {event.sentence_id for event in read_events(store, last.notes.seq)}
    return Labels(labeled, [s for s in labeled.values() if s.id in changed], changed)


def count_touched(project: Project, last: Generation) -> int:
    """Return how many sentences to learn from were answered, corrected or adjudicated since."""
    ignored = () if project.settings.audit_train else ("audit",)
    since = read_events(project.store, last.notes.seq)
    return len({e.sentence_id for e in since if e.kind != "skip" and e.stream not in ignored})


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
