"""A run in a directory: killed at any moment, it resumes at its last finished step.

    config.toml         the resolved config, written first
    environment.json    versions and machine
    inputs.json         digests of the data and of the model folders it was started with
    rounds.jsonl        one line per finished round; no times, so that one seed gives the same bytes
    timings.jsonl       seconds by phase
    generated.jsonl     generated sentences with lineage and round
    rounds/003/         what the phases left: chosen.json, generated.jsonl, test.jsonl.gz, model/
    model/              the last tagger
    lock                held while a process works here

Every file is written beside its place and renamed. A phase whose file exists is not done again.
Each phase has its own generator.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented, hubness, new_tokens
from seqmix.data.files import clear_leftovers, locked, make_folder, refuse_links, sync, write_text
from seqmix.data.sentence import Sentence
from seqmix.loop.evaluation import count_spans, count_tokens, evaluate
from seqmix.loop.events import Report, RoundFinished, RunFinished, timed
from seqmix.loop.learner import REMEMBERED, ActiveLearner
from seqmix.loop.pool import Label, Pool, answered
from seqmix.loop.round_record import RoundRecord, sum_known
from seqmix.loop.rounds import (
    Chosen,
    add_line,
    read_chosen,
    read_described,
    read_generated,
    read_predictions,
    read_rounds,
    read_trained,
    write_lines,
)
from seqmix.loop.seeds import generator
from seqmix.loop.stopping import Forecast, Stopping, forecast, kappa
from seqmix.protocols import Tagger

_STOP_SET = 200  # sentences of the pool on which agreement between rounds is measured


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run."""

    learner: Callable[..., ActiveLearner]  # of a pool and the state so far
    seed_set: Sequence[Sentence]  # labeled
    pool: Sequence[Sentence]
    label: Label
    splits: dict[str, Sequence[Sentence]]  # dev and test, labeled: they are only evaluated
    sizes: Callable[[int], int]  # how many to ask for in round 1, 2, …
    rounds: int
    load_tagger: Callable[[Path], Tagger]
    names: dict[str, Any] = field(default_factory=dict)  # of arm, policy …: in every line
    stopping: Stopping = field(default_factory=Stopping)
    guard: Callable[[Sequence[Sentence], int], dict[str, Any]] | None = None
    pieces: Callable[[], int | None] = lambda: None  # read so far by all trainings of this process
    adapted: Callable[[], int | None] = lambda: 0  # pieces that adapting the encoder read
    save_models: bool = True  # False for sweeps: their short runs start over when interrupted
    seed: int = 0

    def pieces_since(self, start: int | None) -> int | None:
        """Return how many pieces trainings have read since there were `start`."""
        return None if start is None else (self.pieces() or 0) - start


def run(plan: Plan, folder: Path, report: Report = lambda event: None) -> list[RoundRecord]:
    """Do what is left of a run and return all its rounds."""
    with locked(folder):
        refuse_links(folder, ("rounds", "model"))  # below these, old models are removed
        clear_leftovers(folder)
        done = read_rounds(folder)
        learner = _restored(plan, folder, done)
        while not done or done[-1].stop is None:
            done.append(_round(plan, folder, learner, done, report))
        _clear_models(folder, len(done) - 1)
        last = _place(folder, len(done) - 1) / "model"
        if last.exists():
            shutil.rmtree(folder / "model", ignore_errors=True)
            last.rename(folder / "model")
            sync(folder)
        report(RunFinished(done[-1].stop or ""))
        return done


def _place(folder: Path, number: int) -> Path:
    return folder / "rounds" / f"{number:03d}"


def _restored(plan: Plan, folder: Path, done: Sequence[RoundRecord]) -> ActiveLearner:
    """Return the learner as it was after the last finished round."""
    pool = Pool.of(plan.pool, plan.seed_set)
    looks_back = plan.learner(pool=pool).looks_back
    lengths = {id: len(sentence) for id, sentence in pool.unlabeled.items()}
    generated: list[Augmented] = []
    history: dict[str, list[list[str]]] = {}
    for record in done:
        place = _place(folder, record.number)
        if record.number > 0:
            answers = answered(plan.label(pool.take(record.chosen)), record.parts)
            pool = pool.label(record.chosen, answers)
        path = place / "generated.jsonl"
        generated += read_generated(path, record.number, record.augmentation)
        if looks_back:
            for id, tags in read_predictions(place / "predictions.json", lengths).items():
                history.setdefault(id, []).append(tags)
                del history[id][:-REMEMBERED]
    trained = None
    if done:
        latest = _place(folder, done[-1].number) / "model"
        trained = plan.load_tagger(latest if latest.exists() else folder / "model")
    return plan.learner(
        pool=pool,
        seed=plan.seed,
        round=done[-1].number if done else 0,
        generated=generated,
        nominal=sum(record.augmentation["asked"] for record in done),
        history=history,
        trained=trained,
    )


def _round(
    plan: Plan, folder: Path, learner: ActiveLearner, done: Sequence[RoundRecord], report: Report
) -> RoundRecord:
    """Do one round: each phase leaves a file, and is skipped when that file is there."""
    number = len(done)
    place = _place(folder, number)
    make_folder(place)
    seconds: dict[str, float] = {}
    phase = partial(timed, seconds, number, report)
    before = learner.tagger if number else None
    batch, chosen = plan.seed_set, Chosen()
    with phase("query"):
        if number:
            chosen = _chosen(plan, learner, place / "chosen.json", plan.sizes(number))
    with phase("annotate"):
        if number:
            batch = answered(plan.label(learner.pool.take(chosen.ids)), chosen.parts)
            learner.label(chosen.ids, batch)
    with phase("augment"):
        labeled = list(learner.pool.labeled.values())
        start = plan.pieces()
        guard = None if plan.guard is None else plan.guard(labeled, number)
        guarded = plan.pieces_since(start)  # the guard asks again whenever a round resumes
        augmentation = _augmentation(learner, batch, place, guard)
    with phase("train"):
        trained = _train(plan, learner, place)
        pieces = sum_known(chosen.pieces, guarded, trained, 0 if number else plan.adapted())
    with phase("evaluate"):
        results = {
            split: evaluate(learner.tagger, sentences, split, place / f"{split}.jsonl.gz")
            for split, sentences in plan.splits.items()
        }
        agreement = _agreement(plan, learner, before)
        _remember(learner, place / "predictions.json")
    record = RoundRecord(
        number, plan.seed, plan.names, len(labeled), sum(map(count_tokens, labeled)),
        sum(map(count_spans, labeled)), len(learner.generated), learner.steps, chosen.ids,
        chosen.scores, augmentation, agreement, guard, results, parts=chosen.parts, pieces=pieces,
    )  # fmt: skip
    record = replace(record, forecast=_forecast(plan, [*done, record]))
    record = replace(record, stop=_stop(plan, learner, [*done, record]))
    _finish(folder, record, seconds, learner)
    report(RoundFinished(record))
    return record


def _chosen(plan: Plan, learner: ActiveLearner, path: Path, n: int) -> Chosen:
    """Return what was chosen before, or choose now and keep it."""
    if not path.exists():
        start = plan.pieces()
        scores, windows = learner.ask(n)
        chosen: dict[str, Any] = {"ids": list(scores), "scores": list(scores.values())}
        chosen |= {"parts": list(windows.values())} if windows else {}
        chosen |= {"pieces": read} if (read := plan.pieces_since(start)) else {}
        write_text(path, json.dumps(chosen, ensure_ascii=False))
    return read_chosen(path)


def _augmentation(
    learner: ActiveLearner, batch: Sequence[Sentence], place: Path, guard: dict[str, Any] | None
) -> dict[str, Any]:
    """Generate sentences or read those of an interrupted round; drop what the guard rejects."""
    path, about = place / "generated.jsonl", place / "augmentation.json"
    asked = learner.asked(len(batch))
    if about.exists():
        described = read_described(about, asked)
        learner.take_generated(read_generated(path, learner.round, described), asked)
        return described
    start = len(learner.generated)
    helps = guard is None or guard["helps"]
    augmentation = learner.augment(batch, list if helps else lambda generated: generated[:start])
    new = learner.generated[start:]
    described = {
        "asked": asked,
        "generated": len(new),
        "reason": augmentation.reason,
        "counts": dict(augmentation.counts),
        **hubness(new_tokens(new), len(set(new_tokens(new)))),
    }
    write_lines(path, (augmented.to_record() for augmented in new))
    write_text(about, json.dumps(described, ensure_ascii=False))
    return described


def _train(plan: Plan, learner: ActiveLearner, place: Path) -> int | None:
    """Train unless that is done, and return how many word pieces that read."""
    model, about = place / "model", place / "training.json"
    if model.exists():
        learner.use(plan.load_tagger(model))
        return read_trained(about)
    start = plan.pieces()
    tagger = learner.train()
    pieces = plan.pieces_since(start)
    write_text(about, json.dumps({"pieces": pieces}))
    if plan.save_models:
        tagger.save(model)
    return pieces


def _remember(learner: ActiveLearner, path: Path) -> None:
    if learner.looks_back:
        learner.remember()
        latest = {id: learner.history[id][-1] for id in learner.pool.unlabeled}
        write_text(path, json.dumps(latest, ensure_ascii=False))


def _finish(
    folder: Path, record: RoundRecord, seconds: dict[str, float], learner: ActiveLearner
) -> None:
    """Write the round down, then clear away what only an unfinished round needs.

    subtle: a kill between any two of these lines must leave what the next start can resume.
    """
    write_lines(
        folder / "generated.jsonl",
        (
            {"round": int(new.sentence.id[1:].split("/")[0]), **new.to_record()}
            for new in learner.generated
        ),
    )
    rounded = {phase: round(spent, 3) for phase, spent in seconds.items()}
    add_line(folder / "timings.jsonl", {"round": record.number, "seconds": rounded})
    add_line(folder / "rounds.jsonl", record.to_json())
    _clear_models(folder, record.number)


def _clear_models(folder: Path, last: int) -> None:
    """Remove the models of all earlier rounds: a kill may have left any of them."""
    for number in range(last):
        shutil.rmtree(_place(folder, number) / "model", ignore_errors=True)


def _agreement(plan: Plan, learner: ActiveLearner, before: Tagger | None) -> float | None:
    """Return how much the predictions on a fixed part of the pool agree with the last round's."""
    if before is None or plan.stopping.agreement is None:
        return None
    fixed = [sentence.unlabeled() for sentence in plan.pool[:_STOP_SET] if len(sentence)]
    old, new = (
        [str(tag) for sentence in tagger.predict(fixed) for tag in sentence.tags]
        for tagger in (before, learner.tagger)
    )
    return kappa(old, new)


def _forecast(plan: Plan, rounds: Sequence[RoundRecord]) -> Forecast | None:
    """Return what the next round should bring on dev; the test set is not looked at."""
    number = rounds[-1].number
    if "dev" not in plan.splits or number >= plan.rounds:
        return None
    labeled, f1 = [record.labeled for record in rounds], [record.f1("dev") for record in rounds]
    following = labeled[-1] + plan.sizes(number + 1)
    return forecast(labeled, f1, following, generator(plan.seed, number, "stop"))


def _stop(plan: Plan, learner: ActiveLearner, rounds: Sequence[RoundRecord]) -> str | None:
    """Return why to stop now, or None."""
    last = rounds[-1]
    if last.number >= plan.rounds:
        return f"all {plan.rounds} rounds are done"
    agreements = [record.agreement for record in rounds if record.agreement is not None]
    uncertainty = None
    if plan.stopping.uncertainty is not None:
        unsure = learner.tagger.unsure(learner.pool.unlabeled.values(), "entropy")
        uncertainty = max(unsure, default=0.0)
    reason = plan.stopping.reason(last.labeled, last.tokens, agreements, uncertainty)
    return reason or (None if learner.pool.unlabeled else "the pool is empty")
