"""A run in a directory: it can be killed at any moment and goes on from its last finished step to the same bytes.

    config.toml         the resolved config, written first
    environment.json    versions and machine
    inputs.json         digests of the data and of the model folders it was started with
    rounds.jsonl        one line a finished round; no timings, so that two runs with one seed have the same bytes
    timings.jsonl       seconds by phase
    generated.jsonl     generated sentences with lineage and round
    rounds/003/         what each phase of a round left: chosen.json, generated.jsonl, model/
    model/              the last tagger
    lock                held while a process works here

Every file is written beside its place and renamed. A phase whose file exists is not done again; each draws from a generator of its own.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seqmix.data.augmented import Augmented, hubness, new_tokens
from seqmix.data.files import clear_leftovers, make_folder, refuse_links, sync, write_text
from seqmix.data.locks import locked
from seqmix.data.scheme import spans
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE
from seqmix.loop.learner import REMEMBERED, ActiveLearner
from seqmix.loop.pool import Label, Pool
from seqmix.loop.rounds import (
    FORMAT_VERSION,
    read_chosen,
    read_described,
    read_generated,
    read_predictions,
    read_rounds,
    records,
)
from seqmix.loop.seeds import generator
from seqmix.loop.stopping import Forecast, Stopping, forecast, kappa
from seqmix.protocols import Tagger

_STOP_SET = 200  # sentences of the pool on which agreement between rounds is measured
Report = Callable[[dict[str, Any]], None]  # told of each phase and each finished round


@dataclass(frozen=True)
class Plan:
    """All a run needs to know."""

    learner: Callable[..., ActiveLearner]  # of a pool and the state so far
    seed_set: Sequence[Sentence]  # labeled
    pool: Sequence[Sentence]
    label: Label
    splits: dict[
        str, Sequence[Sentence]
    ]  # dev and test, labeled: evaluated, never used for choosing
    sizes: Callable[[int], int]  # how many to ask for in round 1, 2, …
    rounds: int
    load_tagger: Callable[[Path], Tagger]
    names: dict[str, Any] = field(
        default_factory=dict
    )  # policy, variant, arm: written into every line
    stopping: Stopping = field(default_factory=Stopping)
    guard: Callable[[Sequence[Sentence], int], dict[str, Any]] | None = None
    save_models: bool = (
        True  # False for sweeps, whose runs are short: one that was broken off starts over
    )
    seed: int = 0


def run(plan: Plan, folder: Path, report: Report = lambda event: None) -> list[dict[str, Any]]:
    """Do what is left of a run; the lines of rounds.jsonl."""
    with locked(folder):
        refuse_links(folder, ("rounds", "model"))  # below these, old models are removed
        clear_leftovers(folder)
        done = read_rounds(folder)
        learner = _restored(plan, folder, done)
        if not done:
            done.append(_round(plan, folder, learner, 0, list(plan.seed_set), done, report))
        while (stop := done[-1]["stop"]) is None:
            done.append(_round(plan, folder, learner, len(done), None, done, report))
        _clear_models(folder, len(done) - 1)
        last = folder / "rounds" / f"{len(done) - 1:03d}" / "model"
        if last.exists():
            shutil.rmtree(folder / "model", ignore_errors=True)
            last.rename(folder / "model")
            sync(folder)
        report({"phase": "done", "stop": stop})
        return done


def _restored(plan: Plan, folder: Path, done: Sequence[dict[str, Any]]) -> ActiveLearner:
    """Return the learner as it was after the last finished round."""
    pool = Pool.of(plan.pool, plan.seed_set)
    looks_back = plan.learner(pool=pool).looks_back
    lengths = {id: len(sentence) for id, sentence in pool.unlabeled.items()}
    generated: list[Augmented] = []
    history: dict[str, list[list[str]]] = {}
    for line in done:
        place = folder / "rounds" / f"{line['round']:03d}"
        if line["round"] > 0:
            pool = pool.label(line["chosen"], plan.label(pool.take(line["chosen"])))
        generated += read_generated(place / "generated.jsonl", line["round"], line["augmentation"])
        if looks_back:
            for id, tags in read_predictions(place / "predictions.json", lengths).items():
                history.setdefault(id, []).append(tags)
                del history[id][:-REMEMBERED]
    trained = None
    if done:
        latest = folder / "rounds" / f"{done[-1]['round']:03d}" / "model"
        trained = plan.load_tagger(latest if latest.exists() else folder / "model")
    return plan.learner(
        pool=pool,
        seed=plan.seed,
        round=done[-1]["round"] if done else 0,
        generated=generated,
        nominal=sum(line["augmentation"]["asked"] for line in done),
        history=history,
        trained=trained,
    )


def _round(
    plan: Plan,
    folder: Path,
    learner: ActiveLearner,
    number: int,
    batch: list[Sentence] | None,
    done: list[dict[str, Any]],
    report: Report,
) -> dict[str, Any]:
    """One round: each phase leaves a file, and is skipped when that file is there."""
    place = folder / "rounds" / f"{number:03d}"
    make_folder(place)
    seconds: dict[str, float] = {}
    before = learner.tagger if number else None
    chosen: list[str] = []
    scores: list[float | None] = []
    with _timed("query", seconds, number, report):
        if batch is None:
            chosen, scores = _kept(place / "chosen.json", lambda: learner.rank(plan.sizes(number)))
    with _timed("annotate", seconds, number, report):
        if batch is None:
            batch = list(plan.label(learner.pool.take(chosen)))
            learner.label(chosen, batch)
    with _timed("augment", seconds, number, report):
        guard = (
            plan.guard(list(learner.pool.labeled.values()), number)
            if plan.guard is not None
            else None
        )
        augmentation = _augmented(learner, batch, place, guard)
    with _timed("train", seconds, number, report):
        model = place / "model"
        if model.exists():
            learner.use(plan.load_tagger(model))
        elif plan.save_models:
            learner.train().save(model)
        else:
            learner.train()
    with _timed("evaluate", seconds, number, report):
        results = {
            name: _evaluate(learner.tagger, sentences, name)
            for name, sentences in plan.splits.items()
        }
        agreement = _agreement(plan, learner, before, number)
        if learner.looks_back:
            learner.remember()
            latest = {id: learner.history[id][-1] for id in learner.pool.unlabeled}
            write_text(place / "predictions.json", json.dumps(latest, ensure_ascii=False))
    labeled = list(learner.pool.labeled.values())
    line: dict[str, Any] = {
        "format_version": FORMAT_VERSION, "round": number, "seed": plan.seed, **plan.names, "labeled": len(labeled),
        "tokens": sum(len(s) for s in labeled), "spans": sum(_spans(s) for s in labeled), "generated": len(learner.generated),
        "steps": learner.steps, "chosen": chosen, "scores": scores,
        "augmentation": augmentation, "agreement": agreement, "guard": guard, **results,
    }  # fmt: skip
    line["forecast"] = _forecast(plan, [*done, line], number)
    line["stop"] = _stop(plan, learner, [*done, line], number)
    _finish(folder, line, seconds, learner)
    report(
        {
            "phase": "round",
            "round": number,
            "line": line,
            **{name: result["f1"] for name, result in results.items()},
        }
    )
    return line


def _finish(
    folder: Path, line: dict[str, Any], seconds: dict[str, float], learner: ActiveLearner
) -> None:
    """Make the round official, then clear away what only an unfinished round needs. subtle: the order of these lines is the promise."""
    records = (
        {"round": int(one.sentence.id[1:].split("/")[0]), **one.to_record()}
        for one in learner.generated
    )
    write_text(
        folder / "generated.jsonl",
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records),
    )
    _append(
        folder / "timings.jsonl",
        {"round": line["round"], "seconds": {name: round(s, 3) for name, s in seconds.items()}},
    )
    _append(folder / "rounds.jsonl", line)
    _clear_models(folder, line["round"])


def _clear_models(folder: Path, last: int) -> None:
    """Remove the models of rounds before the last one; that of any, since a kill may have come between a round and its clearing."""
    for number in range(last):
        shutil.rmtree(folder / "rounds" / f"{number:03d}" / "model", ignore_errors=True)


def _append(path: Path, line: dict[str, Any]) -> None:
    """Add a line by rewriting the file beside itself: a torn last line cannot happen. A round written before is replaced."""
    kept = [old for old in records(path) if old.get("round") != line["round"]]
    write_text(path, "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in [*kept, line]))


def _kept(path: Path, rank: Callable[[], dict[str, float]]) -> tuple[list[str], list[float | None]]:
    """What was chosen before, or choose now and keep it."""
    if not path.exists():
        ranked = rank()
        chosen = {"ids": list(ranked), "scores": list(ranked.values())}
        write_text(path, json.dumps(chosen, ensure_ascii=False))
    return read_chosen(path)


def _augmented(
    learner: ActiveLearner, batch: Sequence[Sentence], place: Path, guard: dict[str, Any] | None
) -> dict[str, Any]:
    """Generate, or read what was generated; augmentation that the guard found to hurt is left out this round."""
    path, about = place / "generated.jsonl", place / "augmentation.json"
    asked = learner.asked(len(batch))
    if about.exists():
        described = read_described(about, asked)
        learner.take_generated(read_generated(path, learner.round, described), asked)
        return described
    start = len(learner.generated)
    helps = guard is None or guard["helps"]
    made = learner.augment(batch, list if helps else lambda generated: generated[:start])
    new = learner.generated[start:]
    described = {
        "asked": asked,
        "generated": len(new),
        "reason": made.reason,
        "counts": dict(made.counts),
        **hubness(new_tokens(new), len(set(new_tokens(new)))),
    }
    write_text(path, "".join(json.dumps(one.to_record(), ensure_ascii=False) + "\n" for one in new))
    write_text(about, json.dumps(described, ensure_ascii=False))
    return described


def _evaluate(tagger: Tagger, sentences: Sequence[Sentence], name: str) -> dict[str, object]:
    found = [list(paths[0].tags) for paths in tagger.best_paths([s.unlabeled() for s in sentences])]
    return score(
        [[str(tag) for tag in s.hardened().tags] for s in sentences], found, split=name
    ).as_dict()


def _agreement(
    plan: Plan, learner: ActiveLearner, before: Tagger | None, number: int
) -> float | None:
    """How much this round's predictions on a fixed part of the pool agree with the last round's."""
    if before is None or plan.stopping.agreement is None:
        return None
    fixed = [s.unlabeled() for s in plan.pool[:_STOP_SET] if len(s)]
    old, new = (
        [str(t) for s in tagger.predict(fixed) for t in s.tags]
        for tagger in (before, learner.tagger)
    )
    return kappa(old, new)


def _forecast(plan: Plan, done: Sequence[dict[str, Any]], number: int) -> dict[str, float] | None:
    """What the next round should bring on dev; the test set is not looked at."""
    if "dev" not in plan.splits or number >= plan.rounds:
        return None
    curve = [(line["labeled"], line["dev"]["f1"]) for line in done]
    made: Forecast | None = forecast(
        [n for n, _ in curve],
        [f1 for _, f1 in curve],
        curve[-1][0] + plan.sizes(number + 1),
        generator(plan.seed, number, "stop"),
    )
    return None if made is None else {"gain": made.gain, "low": made.low, "high": made.high}


def _stop(
    plan: Plan, learner: ActiveLearner, done: Sequence[dict[str, Any]], number: int
) -> str | None:
    if number >= plan.rounds:
        return f"all {plan.rounds} rounds are done"
    agreements = [line["agreement"] for line in done if line["agreement"] is not None]
    left = learner.pool.unlabeled.values() if plan.stopping.uncertainty is not None else None
    uncertainty = (
        None if left is None else max(learner.tagger.unsure(left, "entropy"), default=0.0)
    )  # the highest mean token entropy
    reason = plan.stopping.reason(done[-1]["labeled"], done[-1]["tokens"], agreements, uncertainty)
    if reason is None and not learner.pool.unlabeled:
        return "the pool is empty"
    return reason


def _spans(sentence: Sentence) -> int:
    tags = [str(tag) if tag is not None else OUTSIDE for tag in sentence.hardened().tags]
    return len(spans(tags))


@contextmanager
def _timed(name: str, seconds: dict[str, float], number: int, report: Report) -> Iterator[None]:
    report({"phase": name, "round": number})
    start = time.monotonic()
    yield
    seconds[name] = time.monotonic() - start
