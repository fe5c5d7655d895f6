"""The background trainer: it waits for answers, trains, ranks the pool anew and publishes that, through the store and nothing else.

    generation 0      before there are labels: the pool in an order that spreads over it
    generation n      trained on all that is labeled and on what SeqMix made of it, as in Algorithm 1: only newly labeled sentences
                      are mixed, what was generated before stays, what a person vetoed or whose parents changed is left out

The parts it works with are given: this file knows no encoder, no policy and no torch. A trainer can be killed at any moment; what it
has published is whole, and the next one goes on from there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from seqmix.data.augmented import Augmented
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
from seqmix.serve.store.events import read_events
from seqmix.serve.store.queue import unlabeled_ids
from seqmix.serve.store.rankings import (
    publish_generation,
    read_generated,
    read_generations,
    vetoed_ids,
)
from seqmix.serve.store.records import Counts, Generation, Notes, Rank, digest
from seqmix.serve.store.sentences import (
    read_audit_sentences,
    read_labeled,
    read_sentences,
)
from seqmix.serve.trainer.suggestions import Guess, guessed_marks, suggestion

Report = Callable[[str], None]
TRAIN_NOW = "train_now"  # noted by somebody who does not want to wait for a whole batch
_SUGGESTED = 2000  # sentences at the top of a ranking that get suggestions
_KEPT = 2  # models
_PAGE = 500
_LEFTOVER = re.compile(rf"\.(\d+|{LATEST})\.\d+\.(part|old)")


@dataclass(frozen=True)
class Parts:
    """What the trainer is put together from."""

    learner: Callable[..., ActiveLearner]  # of a pool and the state so far
    untrained: Callable[
        [np.random.Generator], Tagger
    ]  # the encoder as it comes: enough for embeddings
    spread: PolicySpec  # the order before there are labels
    paths: Callable[[Tagger, Sequence[Sentence]], Iterator[Guess]]
    without_entity: float = 0.1  # of those asked, the share in which the model finds nothing
    start: Tagger | None = None  # a tagger to begin with; a warm recipe trains it further
    most: int = 20_000  # sentences scored in one go; of a larger pool, a random sample
    first: int = 2_000  # … and before there are labels
    quick: int | None = None  # optimizer steps of the first model, which a full one follows at once


@dataclass
class Trainer:
    """One project's trainer; `step` does what is due."""

    project: Project
    parts: Parts
    report: Report = lambda phase: None
    write: Callable[[Callable[[], None]], None] = lambda job: (
        job()
    )  # does what holds up other writers
    _history: dict[str, list[list[str]]] = field(default_factory=dict, init=False)

    def step(self) -> bool:
        """Rank or train if it is time to; whether it was."""
        store, settings = self.project.store, self.project.settings
        last = next(iter(read_generations(store, 1)), None)
        counts, asked = read_counts(store), store.read_note(TRAIN_NOW)
        due = (
            asked is not None
            or news(counts, settings, last) >= settings.batch
            or (last is not None and self._touched(last) >= settings.batch)
            or (last is not None and last.number == 1 and self.parts.quick is not None)
        )
        ranks = (last is None and counts.sentences + counts.seed > 0) or (
            last is not None and last.number == 0 and (asked is not None or _grown(last, counts))
        )
        if due and counts.seed + counts.active + counts.audit:
            ranks = self.train(last, counts)
        elif ranks:
            self.rank_unseen()
        if asked is not None and store.read_note(TRAIN_NOW) == asked:
            self.write(lambda: store.write_note(TRAIN_NOW, None))
        return ranks

    def rank_unseen(self) -> None:
        """Generation 0: sentences that differ, from the encoder alone; or as the start tagger says."""
        store, rng = self.project.store, self._rng(0)
        self.report("putting the sentences in a first order")
        pool = self._pool(self.parts.first, rng)
        ranks: list[Rank] = []
        if pool and self.parts.start is not None:
            unsure = dict(zip(pool, self.parts.start.unsure(pool.values(), "entropy"), strict=True))
            ranks = self._suggested(
                self.parts.start, pool, sorted(pool, key=lambda id: -unsure[id]), unsure
            )
        elif pool:
            view = TaggerView(Pool(pool), self.parts.untrained(rng), lambda: (), {}, rng)
            size = min(len(pool), max(100, 10 * self.project.settings.batch))
            scores = self.parts.spread.choose(view, size, rng)
            ranks = [Rank(id, float(score)) for id, score in scores.items()]
        made = Generation(
            0, 0, notes=Notes(pool={"ranked": len(ranks), "of": read_counts(store).left})
        )
        self.write(lambda: publish_generation(store, made, ranks))
        self.report(WAITING)

    def train(self, last: Generation | None, counts: Counts) -> bool:
        """Generation n: a model, a ranking with suggestions, what was generated, an audit. False: there is nothing to learn from."""
        store, settings, clock = self.project.store, self.project.settings, _Clock(self.report)
        number = 1 if last is None else last.number + 1
        rng = self._rng(number)
        labeled, batch, changed = self._labels(last, counts.events)
        if not labeled:
            return False
        kept = self._generated(set(labeled), changed)
        quick = self.parts.quick if number == 1 else None
        learner = self.parts.learner(
            **({} if quick is None else {"steps": lambda sentences: quick}),
            pool=Pool(self._pool(self.parts.most, rng), labeled),
            seed=settings.seed,
            round=number,
            generated=kept,
            history=self._history,
            trained=self.parts.start,
        )
        with clock.phase("mixing"):
            made = learner.augment(batch, self._not_vetoed)
        with clock.phase("training"):
            tagger = learner.train()
        with clock.phase("ranking"):
            ranks = self._ranks(learner)
            if learner.looks_back:
                learner.remember()
                self._history = learner.history
        with clock.phase("auditing"):
            audit = [s for s in read_audit_sentences(store) if len(s)]
            found = [
                {"id": s.id, "marks": guessed_marks(path)}
                for s, path in zip(audit, self.parts.paths(tagger, audit), strict=True)
            ]
        with clock.phase("saving"):
            folder = self.project.models / f"{number:03d}"
            tagger.save(folder)
            name_newest(self.project.models, folder.name)
        with clock.phase("publishing"):
            augmentation = {
                "asked": made.asked,
                "generated": len(made),
                "in_use": len(learner.generated),
                "reason": made.reason,
            }
            generation = Generation(
                number,
                len(labeled),
                sum(len(s) for s in labeled.values()),
                sum(len(spans(_hard(s))) for s in labeled.values()),
                Notes(
                    counts.events,
                    answered(counts, settings),
                    augmentation,
                    {"ranked": len(ranks), "of": counts.left},
                ),
                found,
                clock.seconds,
                f"{self.project.models.name}/{folder.name}",
            )
            self.write(
                lambda: publish_generation(
                    store, generation, ranks, [one.to_record() for one in learner.generated]
                )
            )
        self.clean(number)
        self.report(WAITING)
        return True

    def clean(self, number: int) -> None:
        """Remove old models that nobody uses, and what a killed trainer left half written."""
        models = self.project.models
        for path in models.iterdir() if models.is_dir() and not models.is_symlink() else ():
            if path.name.startswith(f".{LATEST}.") and _LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)
            elif _LEFTOVER.fullmatch(path.name) or (
                path.name.isdecimal() and int(path.name) <= number - _KEPT
            ):
                clear_model(path)

    def _touched(self, last: Generation) -> int:
        """Sentences that the next model may learn from and that were answered, corrected or decided since."""
        ignored = () if self.project.settings.audit_train else ("audit",)
        since = read_events(self.project.store, _seq(last))
        return len(
            {
                event.sentence_id
                for event in since
                if event.kind != "skip" and event.stream not in ignored
            }
        )

    def _labels(
        self, last: Generation | None, seq: int
    ) -> tuple[dict[str, Sentence], list[Sentence], set[str]]:
        """What is labeled as of an event, of these the ones that no earlier generation has seen as they are now, and what changed since."""
        store = self.project.store
        streams = (
            ("seed", "active", "audit") if self.project.settings.audit_train else ("seed", "active")
        )
        labeled = {s.id: s for s in read_labeled(store, *streams) if s.labeled}
        for event in read_events(
            store, seq
        ):  # answered while we were reading: it belongs to the next generation
            labeled.pop(event.sentence_id, None)
        if last is None or last.number == 0:
            return labeled, list(labeled.values()), set()
        changed = {event.sentence_id for event in read_events(store, _seq(last))}
        return labeled, [s for s in labeled.values() if s.id in changed], changed

    def _generated(self, labeled: Collection[str], changed: Collection[str]) -> list[Augmented]:
        """What earlier generations made, but for what was vetoed and what was made from labels that are no longer these."""
        kept: list[Augmented] = []
        page, offset = read_generated(self.project.store, _PAGE, 0)[0], 0
        while page:
            for one in page:
                made = Augmented.from_record(one.record)
                if not one.vetoed and all(
                    parent in labeled and parent not in changed for parent in made.lineage.parents
                ):
                    kept.append(made)
            offset += len(page)
            page = read_generated(self.project.store, _PAGE, offset)[0]
        return kept

    def _not_vetoed(self, generated: list[Augmented]) -> list[Augmented]:
        """Return each generated text once, without those that a person vetoed."""
        by_text = {digest(augmented.sentence.tokens): augmented for augmented in generated}
        vetoed = vetoed_ids(self.project.store)
        return [augmented for key, augmented in by_text.items() if key not in vetoed]

    def _pool(self, most: int, rng: np.random.Generator) -> dict[str, Sentence]:
        """Unlabeled sentences; of too many, a random sample."""
        return {
            s.id: s
            for s in read_sentences(
                self.project.store, unlabeled_ids(self.project.store, most, rng)
            )
        }

    def _ranks(self, learner: ActiveLearner) -> list[Rank]:
        """The pool in the policy's order, the top of it with suggestions."""
        pool = learner.pool.unlabeled
        if not pool:
            return []
        scores = learner.rank(min(len(pool), learner.policy.most or len(pool)))
        return self._suggested(learner.tagger, pool, list(scores), scores)

    def _suggested(
        self,
        tagger: Tagger,
        pool: Mapping[str, Sentence],
        ids: Sequence[str],
        scores: Mapping[str, float],
    ) -> list[Rank]:
        """Return the ranks of ids in order, the first of them with suggestions."""
        top, tags = ids[:_SUGGESTED], self.project.settings.tags
        best = dict(zip(top, self.parts.paths(tagger, [pool[id] for id in top]), strict=True))
        order = [
            *with_quota(
                top, {id for id, guess in best.items() if guess.empty}, self.parts.without_entity
            ),
            *ids[_SUGGESTED:],
        ]
        return [
            Rank(id, float(scores[id]), suggestion(best[id], tags) if id in best else None)
            for id in order
        ]

    def _rng(self, number: int) -> np.random.Generator:
        return generator(self.project.settings.seed, number, "project")


def _seq(last: Generation) -> int:
    """The last event a generation knows of."""
    return last.notes.seq


def _grown(last: Generation, counts: Counts) -> bool:
    """Whether there are twice the sentences that generation 0 ranked."""
    pool = last.notes.pool or {}
    return counts.left >= max(1, 2 * pool.get("of", 0))


def _hard(sentence: Sentence) -> list[str]:
    return [OUTSIDE if tag is None else str(tag) for tag in sentence.hardened().tags]


@dataclass
class _Clock:
    """Tells each phase as it begins, and keeps how long it took."""

    report: Report
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.report(name)
        start = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - start, 3)
