"""What people ask of the trainer beside models: judge the answers, predict the open sentences.

A job is a note in the store, so that a page may ask and any server's trainer may do it. It is
worked on while no model is due, and begins again when it was interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.loop.pool import Pool
from seqmix.loop.seeds import generator
from seqmix.protocols import Tagger
from seqmix.serve.project_status import WAITING
from seqmix.serve.review.doubts import JUDGED, REVIEW_NOW, gold_events, write_doubts
from seqmix.serve.review.evidence import Doubt, model_doubt
from seqmix.serve.review.model_answers import (
    PREDICT_NOW,
    ModelAnswer,
    ModelAnswers,
    write_model_answers,
)
from seqmix.serve.review.out_of_fold import FOLDS, opinions
from seqmix.serve.store.batches.bulk import bulk_ids
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import paged, read_audit_sentences, read_labeled
from seqmix.serve.trainer.labels import read_labels, sample_pool, without_vetoed
from seqmix.serve.trainer.stages import InterruptedStageError, LaterStages
from seqmix.serve.trainer.suggestions import guessed_marks

_PAGE = 200  # sentences between two looks at whether a model is due


@dataclass
class Jobs:
    """Works on what was asked for; `stages` gives way to models."""

    stages: LaterStages

    def advance(self) -> bool:
        """Do what was asked for; return whether something was."""
        return self._work(REVIEW_NOW, self._judge) or self._work(PREDICT_NOW, self._predict)

    def _work(self, note: str, job: Callable[[], None]) -> bool:
        """Do a job if its note is there, and remove the note unless it was asked for again."""
        trainer, store = self.stages.trainer, self.stages.trainer.project.store
        request = store.read_note(note)
        if request is None:
            return False
        try:
            job()
        except InterruptedStageError:
            return True
        except DataError as error:  # too few answers
            trainer.say(f"the request failed: {error}")
        if store.read_note(note) == request:
            trainer.write(lambda: store.write_note(note, None))
        trainer.report(WAITING)
        return True

    def _judge(self) -> None:
        """Let models judge the answers that they have not learned from.

        subtle: those of the audit stream are left out. Were they corrected where the model differs
        and nowhere else, the F1 that is measured on them would be too high.
        """
        trainer = self.stages.trainer
        store, gold = trainer.project.store, gold_events(trainer.project.store)
        bulk = bulk_ids(store)
        answers = [
            s
            for s in read_labeled(store, "seed", "active")
            if s.labeled and s.id in gold and s.id not in bulk
        ]
        rng = generator(trainer.project.settings.seed, len(answers), "doubts")
        said = opinions(self._fold_fit(), answers, rng)
        doubts = [doubt for pair in said if (doubt := model_doubt(*pair)) is not None]
        trainer.write(lambda: self._publish(doubts, gold, len(answers)))

    def _fold_fit(self) -> Callable[[Sequence[Sentence], np.random.Generator], Tagger]:
        """Return a function that trains on some folds and reports which training it is."""
        trainings = count(1)

        def fit(answers: Sequence[Sentence], rng: np.random.Generator) -> Tagger:
            return self._fit(
                answers,
                f"judging answers it has not learned from, part {next(trainings)} of {FOLDS}",
            )

        return fit

    def _predict(self) -> None:
        """Write what a model that knows the answers alone says of audit and open sentences."""
        trainer = self.stages.trainer
        project, parts = trainer.project, trainer.parts
        store = project.store
        labels = read_labels(project, None, read_counts(store).events).labeled
        if not labels:
            raise DataError("there is no answer to learn from yet")
        tag_change = store.tag_history().newest
        tagger = self._fit(list(labels.values()), "training a model on the answers alone")
        trainer.report("predicting the open sentences")
        rng = generator(project.settings.seed, len(labels), "doubts")
        audit = [s for s in read_audit_sentences(store) if len(s)]
        pool = list(sample_pool(project, parts.most, rng).values())
        audited = list(self._said(tagger, audit))
        predictions = ModelAnswers(
            time.time(), len(labels), tag_change, audited, list(self._said(tagger, pool))
        )
        write_model_answers(project.models, predictions)

    def _said(self, tagger: Tagger, sentences: Sequence[Sentence]) -> Iterator[ModelAnswer]:
        """Yield what a tagger says; models that are due are trained in between."""
        for page in paged(sentences, _PAGE):
            self.stages.give_way()
            guesses = self.stages.trainer.parts.paths(tagger, page)
            for sentence, guess in zip(page, guesses, strict=True):
                marks = tuple(Mark(*mark) for mark in guessed_marks(guess))
                yield ModelAnswer(sentence.id, guess.probability, marks)

    def _fit(self, answers: Sequence[Sentence], phase: str) -> Tagger:
        """Train on answers as a plain model would, with what is generated from them."""
        trainer = self.stages.trainer
        self.stages.give_way()
        trainer.report(phase)
        project, parts, last = trainer.project, trainer.parts, trainer.last()
        learner = parts.learner(
            pool=Pool({}, {answer.id: answer for answer in answers}),
            seed=project.settings.seed,
            round=1 if last is None else last.number,
            trained=parts.start,
        )
        learner.augment(answers, lambda new: without_vetoed(project, new))
        return learner.train()

    def _publish(
        self, doubts: Sequence[Doubt], gold: Mapping[str, int | None], answers: int
    ) -> None:
        store = self.stages.trainer.project.store
        with store.writing():
            write_doubts(store, "model", doubts, gold)
            store.write_note(JUDGED, {"at": time.time(), "answers": answers})
