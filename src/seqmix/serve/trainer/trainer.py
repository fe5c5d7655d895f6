"""The background trainer: wait for answers, train, rank the pool, and publish that to the store.

    generation 0   before there are labels: the pool in an order that spreads over it
    generation n   trained on all labels and on sentences generated from them, by replacing mentions
                   unless the settings say otherwise: as in Algorithm 1, only new labels generate;
                   earlier sentences stay, unless a person vetoed them or their parents changed

A generation is of stage 1 (plain), 2 (its encoder has read the text) or 3 (a student of its
teachers), which `stages` works on while no model is due.

This module knows no encoder, no policy and no torch; it gets them as `Parts`. A trainer can be
killed at any moment: what it has published is complete, and the next trainer continues from there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seqmix.data.latest_model import LATEST, clear_model, name_newest
from seqmix.data.sentence import Sentence
from seqmix.data.spans import OUTSIDE, spans
from seqmix.loop.learner import ActiveLearner
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.loop.seeds import generator
from seqmix.protocols import Tagger
from seqmix.serve.project import TRAIN_NOW, Project
from seqmix.serve.project_status import WAITING, answered, news
from seqmix.serve.sources.filling import Filler
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.rankings import publish_generation, read_generations
from seqmix.serve.store.records import Counts, Generation, Notes, Rank
from seqmix.serve.store.sentences import read_audit_sentences
from seqmix.serve.trainer.clock import Clock, Report
from seqmix.serve.trainer.jobs import Jobs
from seqmix.serve.trainer.labels import (
    Labels,
    count_touched,
    read_augmented,
    read_labels,
    sample_pool,
    tags_changed,
    without_vetoed,
)
from seqmix.serve.trainer.order import asking_order
from seqmix.serve.trainer.parts import Parts
from seqmix.serve.trainer.stages import Basis, LaterStages
from seqmix.serve.trainer.suggestions import guessed_marks, suggestion

_SUGGESTED = 2000  # sentences at the top of a ranking that get suggestions
_BRIEF = 500  # sentences that the first model ranks, so that it is there soon
_MODELS = 2  # that are kept
_LEFTOVER = re.compile(rf"\.(\d+|{LATEST})\.\d+\.(part|old)")


@dataclass
class Trainer:
    """The trainer of a project; `step` does what is due."""

    project: Project
    parts: Parts
    report: Report = lambda phase: None
    write: Callable[[Callable[[], None]], None] = lambda job: job()  # runs what locks the store
    say: Report = lambda line: None  # to the log
    stages: LaterStages = field(init=False)
    jobs: Jobs = field(init=False)
    _filler: Filler = field(init=False)
    _history: dict[str, list[list[str]]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.stages = LaterStages(self)
        self.jobs = Jobs(self.stages)
        self._filler = Filler(self.project.store, self.parts.suggest, self.write)

    def step(self) -> bool:
        """Rank or train if it is time to; return whether it was."""
        last, counts = self.last(), read_counts(self.project.store)
        request = self.project.store.read_note(TRAIN_NOW)
        if self.due(last, counts):
            hurry = request is not None or self._quick_came_last(last)
            if not hurry and self.stages.in_turn() and self.stages.advance(last, counts):
                return True
            return self.train_due(last, counts)
        if (last is None and counts.sentences + counts.seed > 0) or (
            last is not None and last.number == 0 and (request is not None or _grown(last, counts))
        ):
            self.rank_unseen()
            self._fulfill(request)
            return True
        return self._filler.step() or self.jobs.advance() or self.stages.advance(last, counts)

    def last(self) -> Generation | None:
        """Return the newest generation."""
        return next(iter(read_generations(self.project.store, 1)), None)

    def due(self, last: Generation | None, counts: Counts) -> bool:
        """Whether the answers are enough for a model, or somebody asks for one now."""
        settings = self.project.settings
        return bool(counts.seed + counts.active + counts.audit) and (
            self.project.store.read_note(TRAIN_NOW) is not None
            or news(counts, settings, last) >= settings.batch
            or (last is not None and count_touched(self.project, last.notes.seq) >= settings.batch)
            or self._quick_came_last(last)
            or (counts.labeled + counts.seed > 0 and tags_changed(self.project, last))
        )

    def _quick_came_last(self, last: Generation | None) -> bool:
        return last is not None and last.number == 1 and self.parts.quick is not None

    def _augment(self, learner: ActiveLearner, labels: Labels) -> dict[str, Any]:
        """Generate from the new labels, and return what became of it."""
        mixed = learner.augment(labels.new, lambda new: without_vetoed(self.project, new))
        return {
            "asked": mixed.asked,
            "generated": len(mixed),
            "in_use": len(learner.generated),
            "reason": mixed.reason,
        }

    def train_due(self, last: Generation | None, counts: Counts) -> bool:
        """Train the model that is due, which fulfills a request too."""
        request = self.project.store.read_note(TRAIN_NOW)
        start = time.monotonic()
        trained = self.train(last, counts)
        self._fulfill(request)
        self.stages.take_turn(time.monotonic() - start)
        return trained

    def _fulfill(self, request: object) -> None:
        store = self.project.store
        if request is not None and store.read_note(TRAIN_NOW) == request:
            self.write(lambda: store.write_note(TRAIN_NOW, None))

    def rank_unseen(self) -> None:
        """Publish generation 0: ranked by the start tagger, or spread out by the encoder alone."""
        store, rng, start = self.project.store, self._rng(0), self.parts.start
        self.report("ordering the first sentences")
        pool = sample_pool(self.project, self.parts.first, rng)
        ranks: list[Rank] = []
        if pool:
            unsure = () if start is None else start.unsure(pool.values(), "entropy")
            scores = dict(sorted(zip(pool, unsure, strict=False), key=lambda pair: -pair[1]))
            if len({*scores.values()}) < 2:  # no tagger, or one that is sure of everything
                view = TaggerView(Pool(pool), self.parts.untrained(rng), lambda: (), {}, rng)
                size = min(len(pool), max(100, 10 * self.project.settings.batch))
                scores = dict(self.parts.spread.choose(view, size, rng))
            ranks = [Rank(id, float(score)) for id, score in scores.items()]
            if start is not None:
                ranks = self._with_suggestions(start, pool, list(scores), scores)
        notes = Notes(pool={"ranked": len(ranks), "of": read_counts(store).left})
        self.write(lambda: publish_generation(store, Generation(0, 0, notes=notes), ranks))
        self.report(WAITING)

    def train(self, last: Generation | None, counts: Counts) -> bool:
        """Publish the next generation; return False if there is nothing to learn from."""
        store, clock = self.project.store, Clock(self.report)
        number = 1 if last is None else last.number + 1
        rng, basis = self._rng(number), self.stages.basis()
        # the first students of some teachers learn from what these did: all is generated again
        taught = basis.lessons is not None and basis.name != (last and last.notes.basis)
        start_over = taught or tags_changed(self.project, last)
        change = store.tag_history().newest
        labels = read_labels(self.project, None if start_over else last, counts.events)
        if not labels.labeled:
            return False
        quick = number == 1 and self.parts.quick is not None  # somebody waits for it
        most = _BRIEF if quick else self.parts.most
        learner = self.parts.learner(
            **self._how(number, basis, len(labels.labeled)),
            pool=Pool(sample_pool(self.project, most, rng), labels.labeled),
            seed=self.project.settings.seed,
            round=number,
            generated=() if start_over else read_augmented(self.project, labels),
            history=self._history,
            trained=self.parts.start,
        )
        with clock.phase("mixing"):
            augmentation = self._augment(learner, labels)
        with clock.phase("training"):
            tagger = learner.train()
        with clock.phase("ranking"):
            ranks = self._rank(learner)
        with clock.phase("auditing"):
            audit = self._audit(tagger, most)
        with clock.phase("saving"):
            folder = self.project.models / f"{number:03d}"
            tagger.save(folder)
            name_newest(self.project.models, folder.name)
        with clock.phase("publishing"):
            pool = {"ranked": len(ranks), "of": counts.left}
            answers = answered(counts, self.project.settings)
            basis_of = (basis.stage, basis.name or None)
            notes = Notes(counts.events, answers, augmentation, pool, *basis_of, change)
            generation = _generation(
                number, labels, notes, audit, clock.seconds, folder.parent.name
            )
            records = [augmented.to_record() for augmented in learner.generated]
            self.write(lambda: publish_generation(store, generation, ranks, records))
        self.clean()
        self.report(WAITING)
        return True

    def _how(self, number: int, basis: Basis, labeled: int) -> dict[str, object]:
        """Return what a model of this basis has in place of the learner's usual parts."""
        if basis.lessons is not None and self.parts.student is not None:
            return {"tagger": self.parts.student(basis.lessons.sentences)}
        if number == 1 and (quick := self.parts.quick) is not None:
            return {"steps": lambda sentences: quick}
        if self.parts.steps is None:
            return {}
        enough = self.parts.steps(labeled)  # generated sentences need no more
        return {"steps": lambda sentences: enough}

    def clean(self) -> None:
        """Remove old models that nobody uses, and what a killed trainer left of a model."""
        last, models = self.last(), self.project.models
        number = 0 if last is None else last.number
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
        order = asking_order(self.project.store, self.parts, best, pool)
        return [
            Rank(id, float(scores[id]), suggestion(best[id], tags) if id in best else None)
            for id in (*order, *ids[_SUGGESTED:])
        ]

    def _audit(self, tagger: Tagger, most: int) -> list[dict[str, object]]:
        """Return what the tagger predicts for the audit sentences that are asked first."""
        audit = [s for s in read_audit_sentences(self.project.store) if len(s)][:most]
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
