"""One round: train on what people said, rank what they have not seen yet, publish. It runs in a process of its own.

Before there are labels the tasks are ranked too: with the tagger that was given, else so that the first ones differ as much as they can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import DataError, RunError
from seqmix.loop.learner import ActiveLearner
from seqmix.loop.pool import Pool
from seqmix.protocols import Tagger
from seqmix.query.spec import PolicySpec, lots
from seqmix.serve.labelstudio.answers import Answers
from seqmix.serve.labelstudio.database import File
from seqmix.serve.labelstudio.labeling import Labeling
from seqmix.serve.labelstudio.rounds import Rank, Round, Rounds, ladder
from seqmix.serve.labelstudio.tasks import Json, Suggesting, sentence_of, suggestions

POOL = 20_000  # tasks ranked a round; of more a random sample is, and the others find their place when Label Studio asks for them
_FIRST = 200  # tasks chosen to differ, before there are labels; behind them chance decides


@dataclass(frozen=True)
class Parts:
    """What a round is made of. The application builds them; nothing here names a concrete class."""

    learner: Callable[
        [TagSet, Sequence[Sentence], Sequence[Sentence]], Callable[..., ActiveLearner]
    ]  # for the tags, what is labeled and what is not
    untrained: Callable[[TagSet], Tagger]
    diverse: PolicySpec  # what is asked first, before there are labels
    given: Tagger | None = None  # a tagger to begin with
    batch: int = 100  # how many the policy chooses; behind them the tasks stand by token entropy
    seed: int = 0


@dataclass(frozen=True)
class _Waiting:
    """Tasks nobody has answered: sentences by id, the data of all, and those that have no text to label."""

    sentences: dict[str, Sentence]
    data: dict[int, Json]
    textless: list[int]


def run_round(folder: Path, parts: Parts) -> Round:
    """Train or rank, and publish. What people say meanwhile counts for the next round."""
    file, start = File(folder), time.monotonic()
    try:
        answers, rounds = Answers(file), Rounds(file)
        labeling, last, counts = answers.labeling, rounds.last(), answers.counts()
        if labeling is None:
            raise RunError("there is nothing to learn yet: Label Studio has not called /setup")
        number = 1 if last is None else last.number + 1
        labeled, left_out = _labeled(answers, labeling)
        waiting = _waiting(answers, labeling, np.random.default_rng([parts.seed, number]))
        if labeled:
            kind, tagger, order = (
                "trained",
                *_trained(labeled, waiting, labeling.tag_set, parts, number),
            )
            tagger.save(rounds.model(number))
        elif parts.given is not None:
            kind, tagger, order = "given", parts.given, []
        else:
            kind, tagger, order = (
                "untrained",
                None,
                _diverse(waiting, labeling.tag_set, parts, number),
            )
        found = (
            {}
            if tagger is None
            else dict(
                zip(
                    waiting.sentences,
                    suggestions(cast(Suggesting, tagger), waiting.sentences.values(), labeling),
                    strict=True,
                )
            )
        )
        round = Round(
            *(
                number,
                kind,
                counts.changes,
                counts.tasks,
                len(labeled),
                left_out,
                time.monotonic() - start,
            ),
            ladder=ladder(entropy for _, entropy in found.values()),
        )
        rounds.publish(
            round, _ranks(_order(order, waiting, found, labeled, parts.seed), waiting, found)
        )
        return round
    finally:
        file.close()


def _labeled(answers: Answers, labeling: Labeling) -> tuple[list[Sentence], int]:
    """Everything people have labeled, sentences without any span included, and how many answers do not fit their text."""
    labeled, left_out = [], 0
    for id, data, result in answers.tasks(labeled=True):
        try:
            sentence = sentence_of(id, data, labeling, result)
        except DataError:  # the text was changed under its labels
            sentence = None
        if sentence is not None and sentence.tokens:
            labeled.append(sentence)
        else:
            left_out += 1
    return labeled, left_out


def _waiting(answers: Answers, labeling: Labeling, rng: np.random.Generator) -> _Waiting:
    lot = lots(rng)
    ids = sorted((id for id, _, _ in answers.tasks(labeled=False)), key=lambda id: lot(str(id)))
    chosen, found = set(ids[:POOL]), _Waiting({}, {}, [])
    for id, data, _ in answers.tasks(labeled=False):
        if id in chosen:
            found.data[id] = data
            sentence = sentence_of(id, data, labeling)
            if sentence is None or not sentence.tokens:
                found.textless.append(id)
            else:
                found.sentences[sentence.id] = sentence
    return found


def _trained(
    labeled: Sequence[Sentence], waiting: _Waiting, tag_set: TagSet, parts: Parts, number: int
) -> tuple[Tagger, Sequence[str]]:
    """A tagger trained on all labels, from the one given where it has the same tags, and what the policy wants next."""
    begin = parts.learner(tag_set, labeled, list(waiting.sentences.values()))
    goes_on = (
        parts.given is not None
        and parts.given.tag_set is not None
        and set(parts.given.tag_set.tags) == set(tag_set.tags)
    )
    learner = begin(
        warm=goes_on,
        pool=Pool.of(waiting.sentences.values(), labeled),
        seed=parts.seed,
        round=number,
        trained=parts.given if goes_on else None,
    )
    learner.augment(labeled)
    return learner.train(), learner.query(min(parts.batch, len(learner.pool.unlabeled)))


def _diverse(waiting: _Waiting, tag_set: TagSet, parts: Parts, number: int) -> Sequence[str]:
    learner = ActiveLearner(
        tagger=_never,
        policy=parts.diverse,
        pool=Pool.of(waiting.sentences.values()),
        seed=parts.seed,
        round=number,
        trained=parts.untrained(tag_set),
    )
    return learner.query(min(_FIRST, len(learner.pool.unlabeled)))


def _never(*_: object) -> Tagger:
    raise AssertionError("an untrained tagger is not trained")


def _order(
    chosen: Sequence[str],
    waiting: _Waiting,
    found: dict[str, tuple[list[Json], float]],
    labeled: Sequence[Sentence],
    seed: int,
) -> Iterator[int]:
    """The policy's choice, then by entropy (or chance, while nothing is learned); behind them what stands there twice or has no text."""
    lot, first = lots(np.random.default_rng(seed)), set(chosen)
    rest = [sentence for id, sentence in waiting.sentences.items() if id not in first]
    rest.sort(key=lambda s: (-found[s.id][1] if found else 0.0, lot(s.id)))
    seen = {sentence.tokens for sentence in (*labeled, *(waiting.sentences[id] for id in chosen))}
    again = []
    yield from map(int, chosen)
    for sentence in rest:
        if sentence.tokens in seen:
            again.append(int(sentence.id))
        else:
            seen.add(sentence.tokens)
            yield int(sentence.id)
    yield from (*again, *waiting.textless)


def _ranks(
    order: Iterable[int], waiting: _Waiting, found: dict[str, tuple[list[Json], float]]
) -> Iterator[tuple[Rank, Json]]:
    for place, id in enumerate(order):
        result = found[str(id)][0] if str(id) in found else []
        yield Rank(id, (place + 0.5) / len(waiting.data), result), waiting.data[id]
