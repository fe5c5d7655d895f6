"""The background trainer: wait for answers, train, rank the pool, and publish that to the store.

    generation 0   before there are labels: the pool in an order that spreads over it
    generation n   trained on all labels and on what SeqMix generated from them, as in Algorithm 1:
                   only new labels are mixed; what was generated before stays, unless a person
                   vetoed it or its parents changed

This module knows no encoder, no policy and no torch; it gets them as `Parts`. A trainer can be
killed at any moment: what it has published is complete, and the next trainer continues from there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from seqmix.data.latest_model import LATEST, clear_model, name_newest
from seqmix.data.scheme import spans
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.loop.learner import ActiveLearner
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.loop.seeds import generator
from seqmix.protocols import Tagger
from seqmix.query.selection import with_quota
from seqmix.query.spec import PolicySpec
from seqmix.serve.project import Project
from seqmix.serve.project_status import WAITING, answered, news
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.rankings import publish_generation, read_generations
from seqmix.serve.store.records import Counts, Generation, Notes, Rank
from seqmix.serve.store.sentences import read_audit_sentences
from seqmix.serve.trainer.labels import (
    Labels,
    count_touched,
    read_augmented,
    read_labels,
    sample_pool,
    without_vetoed,
)
from seqmix.serve.trainer.suggestions import Guess, guessed_marks, suggestion

Report = Callable[[str], None]
TRAIN_NOW = "train_now"  # note: somebody does not want to wait for a whole batch
_SUGGESTED = 2000  # sentences at the top of a ranking that get suggestions
_MODELS = 2  # that are kept
_LEFTOVER = re.compile(rf"\.(\d+|{LATEST})\.\d+\.(part|old)")


@dataclass(frozen=True)
class Parts:
    """What the trainer is built from."""

    learner: Callable[..., ActiveLearner]  # of a pool and the state so far
    untrained: Callable[[np.random.Generator], Tagger]  # the encoder alone, for embeddings
    spread: PolicySpec  # the order before there are labels
    paths: Callable[[Tagger, Sequence[Sentence]], Iterator[Guess]]
    without_entity: float = 0.1  # share of the sentences in which the model finds nothing
    start: Tagger | None = None  # a tagger to begin with; a warm recipe trains it further
    most: int = 20_000  # sentences that are scored; of a larger pool, a random sample
    first: int = 2_000  # the same before there are labels
    quick: int | None = None  # optimizer steps of the first model, which a full one follows at once


@dataclass
class Trainer:
    """The trainer of a project; `step` does what is due."""

    project: Project
    parts: Parts
    report: Report = lambda phase: None
    write: Callable[[Callable[[], None]], None] = lambda job: job()  # runs what locks the store
    _history: dict[str, list[list[str]]] = field(default_factory=dict, init=False)

    def step(self) -> bool:
        """Rank or train if it is time to; return whether it was."""
        store, settings = self.project.store, self.project.settings
        last = next(iter(read_generations(store, 1)), None)
        counts, request = read_counts(store), store.read_note(TRAIN_NOW)
        due = (
            request is not None
            or news(counts, settings, last) >= settings.batch
            or (last is not None and count_touched(self.project, last) >= settings.batch)
            or (last is not None and last.number == 1 and self.parts.quick is not None)
        )
        ranks = (last is None and counts.sentences + counts.seed > 0) or (
            last is not None and last.number == 0 and (request is not None or _grown(last, counts))
        )
        if due and counts.seed + counts.active + counts.audit:
            ranks = self.train(last, counts)
        elif ranks:
            self.rank_unseen()
        if request is not None and store.read_note(TRAIN_NOW) == request:
            self.write(lambda: store.write_note(TRAIN_NOW, None))
        return ranks

    def rank_unseen(self) -> None:
        """Publish generation 0: ranked by the start tagger, or spread out by the encoder alone."""
        store, rng, start = self.project.store, self._rng(0), self.parts.start
        self.report("putting the sentences in a first order")
        pool = sample_pool(self.project, self.parts.first, rng)
        ranks: list[Rank] = []
        if pool and start is not None:
            unsure = dict(zip(pool, start.unsure(pool.values(), "entropy"), strict=True))
            order = sorted(pool, key=lambda id: -unsure[id])
            ranks = self._with_suggestions(start, pool, order, unsure)
        elif pool:
            view = TaggerView(Pool(pool), self.parts.untrained(rng), lambda: (), {}, rng)
            size = min(len(pool), max(100, 10 * self.project.settings.batch))
            scores = self.parts.spread.choose(view, size, rng)
            ranks = [Rank(id, float(score)) for id, score in scores.items()]
        notes = Notes(pool={"ranked": len(ranks), "of": read_counts(store).left})
        self.write(lambda: publish_generation(store, Generation(0, 0, notes=notes), ranks))
        self.report(WAITING)

    def train(self, last: Generation | None, counts: Counts) -> bool:
        """Publish the next generation; return False if there is nothing to learn from."""
        store, clock = self.project.store, _Clock(self.report)
        number = 1 if last is None else last.number + 1
        rng = self._rng(number)
        labels = read_labels(self.project, last, counts.events)
        if not labels.labeled:
            return False
        quick = self.parts.quick if number == 1 else None
        learner = self.parts.learner(
            **({} if quick is None else {"steps": lambda sentences: quick}),
            pool=Pool(sample_pool(self.project, self.parts.most, rng), labels.labeled),
            seed=self.project.settings.seed,
            round=number,
            generated=read_augmented(self.project, labels),
            history=self._history,
            trained=self.parts.start,
        )
        with clock.phase("mixing"):
            mixed = learner.augment(labels.new, lambda new: without_vetoed(self.project, new))
        augmentation = {
            "asked": mixed.asked,
            "generated": len(mixed),
            "in_use": len(learner.generated),
            "reason": mixed.reason,
        }
        with clock.phase("training"):
            tagger = learner.train()
        with clock.phase("ranking"):
            ranks = self._rank(learner)
        with clock.phase("auditing"):
            audit = self._audit(tagger)
        with clock.phase("saving"):
            folder = self.project.models / f"{number:03d}"
            tagger.save(folder)
            name_newest(self.project.models, folder.name)
        with clock.phase("publishing"):
            pool = {"ranked": len(ranks), "of": counts.left}
            answers = answered(counts, self.project.settings)
            notes = Notes(counts.events, answers, augmentation, pool)
            generation = _generation(
                number, labels, notes, audit, clock.seconds, folder.parent.name
            )
            records = [augmented.to_record() for augmented in learner.generated]
            self.write(lambda: publish_generation(store, generation, ranks, records))
        self.clean(number)
        self.report(WAITING)
        return True

    def clean(self, number: int) -> None:
        """Remove old models that nobody uses, and what a killed trainer left half-written."""
        models = self.project.models
        for path in models.iterdir() if models.is_dir() and not models.is_symlink() else ():
            if path.name.startswith(f".{LATEST}.") and _LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)
            elif _LEFTOVER.fullmatch(path.name) or (
                path.name.isdecimal() and int(path.name) <= number - _MODELS
            ):
                clear_model(path)

    def _rank(self, learner: ActiveLearner) -> list[Rank]:
        """Return the pool in the policy's order."""
        pool, ranks = learner.pool.unlabeled, list[Rank]()
        if pool:
            scores = learner.rank(min(len(pool), learner.policy.most or len(pool)))
            ranks = self._with_suggestions(learner.tagger, pool, list(scores), scores)
        if learner.looks_back:
            learner.remember()
            self._history = learner.history
        return ranks

    def _with_suggestions(
        self,
        tagger: Tagger,
        pool: Mapping[str, Sentence],
        ids: Sequence[str],
        scores: Mapping[str, float],
    ) -> list[Rank]:
        """Return the ranks of ids in order, the first of them with suggestions."""
        top, tags = ids[:_SUGGESTED], self.project.settings.tags
        best = dict(zip(top, self.parts.paths(tagger, [pool[id] for id in top]), strict=True))
        empty = {id for id, guess in best.items() if guess.empty}
        order = [*with_quota(top, empty, self.parts.without_entity), *ids[_SUGGESTED:]]
        return [
            Rank(id, float(scores[id]), suggestion(best[id], tags) if id in best else None)
            for id in order
        ]

    def _audit(self, tagger: Tagger) -> list[dict[str, object]]:
        """Return what the tagger predicts for the audit sentences."""
        audit = [s for s in read_audit_sentences(self.project.store) if len(s)]
        guesses = self.parts.paths(tagger, audit)
        return [
            {"id": s.id, "marks": guessed_marks(guess)}
            for s, guess in zip(audit, guesses, strict=True)
        ]

    def _rng(self, number: int) -> np.random.Generator:
        return generator(self.project.settings.seed, number, "project")


def _generation(
    number: int,
    labels: Labels,
    notes: Notes,
    audit: Sequence[Mapping[str, object]],
    seconds: Mapping[str, float],
    models: str,
) -> Generation:
    sentences = labels.labeled.values()
    return Generation(
        number,
        len(sentences),
        sum(len(s) for s in sentences),
        sum(len(spans(_hard_tags(s))) for s in sentences),
        notes,
        audit,
        seconds,
        f"{models}/{number:03d}",
    )


def _grown(last: Generation, counts: Counts) -> bool:
    """Whether there are twice as many sentences as generation 0 ranked."""
    pool = last.notes.pool or {}
    return counts.left >= max(1, 2 * pool.get("of", 0))


def _hard_tags(sentence: Sentence) -> list[str]:
    return [OUTSIDE if tag is None else str(tag) for tag in sentence.hardened().tags]


@dataclass
class _Clock:
    """Reports each phase when it begins, and keeps how long it took."""

    report: Report
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.report(name)
        start = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - start, 3)
