"""`seqmix status`: how far a run or a project is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix.app.console import count, emit
from seqmix.app.options import Json
from seqmix.errors import RunError
from seqmix.loop.round_record import SPLITS, RoundRecord
from seqmix.loop.stopping import Forecast

_HEAD = "round  labeled generated  dev F1 test F1  next gain (90 %)"
Place = Annotated[Path, typer.Argument(help="A run directory or a project folder.")]


def status(path: Place, json_out: Json = False) -> None:
    """Show the progress of a run or a project."""
    if (path / "project.toml").exists():
        from seqmix.serve.project import open_project
        from seqmix.serve.project_status import with_team

        with open_project(path) as project:
            facts = with_team(project)
        text = project_lines(facts)
    elif (path / "config.toml").exists():
        from seqmix.loop.rounds import read_rounds

        rounds = read_rounds(path)
        facts = {"rounds": [record.to_json() for record in rounds]}
        text = _run_lines(rounds)
    else:
        raise RunError(
            f"{path} is neither a run directory (no config.toml) nor a project (no project.toml)"
        )
    emit(json.dumps(facts, ensure_ascii=False) if json_out else "\n".join(text))


def _run_lines(rounds: Sequence[RoundRecord]) -> Iterator[str]:
    """Yield one line per round, and whether the run is finished."""
    yield _HEAD
    for record in rounds:
        scored = record.results
        f1 = [f"{100 * record.f1(s):7.2f}" if s in scored else "      –" for s in SPLITS]
        counts = f"{record.number:>5} {record.labeled:>8} {record.generated:>9}"
        yield f"{counts} {' '.join(f1)}  {_gain(record.forecast)}".rstrip()
    if rounds and rounds[-1].stop:
        yield f"stopped: {rounds[-1].stop}"
    else:
        yield "not finished: the same simulate command resumes it"


def _gain(ahead: Forecast | None) -> str:
    if ahead is None:
        return ""
    return f"{100 * ahead.gain:+.2f} ({100 * ahead.low:+.2f} to {100 * ahead.high:+.2f})"


def project_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Yield how far a project is, as lines for people."""
    answers = facts["answers"]
    labeled = f"{answers['labeled']} of {answers['sentences']} sentences labeled"
    yield f"{facts['name']}: {labeled}, {answers['left']} left{_notes(answers)}"
    yield f"tags: {', '.join(facts['tags'])}"
    yield f"store: {facts['store']}"
    for work in facts["annotators"]:
        yield _work(work)
    if not facts["annotators"]:
        yield "annotators: nobody yet"
    yield _model(facts["model"])
    yield _f1(facts)
    yield from _forecast(facts)
    agreement = facts["agreement"]
    if agreement is not None:
        yield f"agreement: {_agreement(agreement)}; {facts['conflicts']} in dispute"
        for pair in agreement["pairs"]:
            yield f"  {pair['a']} and {pair['b']}: {_agreement(pair)}"


def _notes(answers: dict[str, int]) -> str:
    kinds = {
        "audit": "of the labeled random",
        "skipped": "skipped",
        "held": "open on a page",
        "overlap": "answered twice",
        "seed": "seed",
    }
    notes = [f"{answers[key]} {what}" for key, what in kinds.items() if answers[key]]
    return f" ({', '.join(notes)})" if notes else ""


def _work(work: dict[str, Any]) -> str:
    answered = work["labeled"] + work["skipped"]
    speed = f", {work['seconds'] / answered:.1f} s each" if answered else ""
    admin = " (admin)" if work["admin"] else ""
    return f"  {work['name']}{admin}: {work['labeled']} labeled, {work['skipped']} skipped{speed}"


def _model(model: dict[str, Any] | None) -> str:
    if model is None or model["generation"] is None:
        return "model: none yet"
    place = f", in {model['folder']}" if model["folder"] else ""
    size = count(model["trained_on"], "sentence")
    return f"model: generation {model['generation']}, trained on {size}{place}"


def _f1(facts: dict[str, Any]) -> str:
    audit, model = facts["audit"], facts["model"]
    if audit is not None:
        low, high = _percent(audit["low"]), _percent(audit["high"])
        interval = f"{low} to {high}, {100 * audit['level']:g} %"
        return f"F1: {_percent(audit['f1'])} ({interval}) on {audit['n']} random sentences"
    if model is None or not model["trained_on"]:
        return "F1: not known yet; it needs a model, and answers to sentences of the audit stream"
    more = count(facts["lacking"]["audit"], "more audit answer")
    return f"F1: cannot be known yet; at least {more} with a span in it"


def _forecast(facts: dict[str, Any]) -> Iterator[str]:
    forecast, lacking = facts["forecast"], facts["lacking"]
    if forecast is not None:
        gain = "next to nothing" if forecast["little"] else _signed(forecast["gain"])
        low, high = _signed(forecast["low"]), _signed(forecast["high"])
        interval = f"{low} to {high}, {100 * forecast['level']:g} %"
        answers = count(forecast["labels"], "more answer")
        yield f"forecast: {answers} should bring {gain} ({interval})"
    elif facts["audit"] is not None:
        kinds = {"forecast": "more audit answer", "models": "more model"}
        more = [count(lacking[key], what) for key, what in kinds.items() if lacking[key]]
        yield f"forecast: too early to say; at least {' and '.join(more)}"


def _agreement(agreement: dict[str, Any]) -> str:
    kappa = "not known" if agreement["kappa"] is None else f"{agreement['kappa']:.3f}"
    f1 = _percent(agreement["f1"])
    return f"span F1 {f1}, kappa {kappa} on {count(agreement['n'], 'sentence')}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"
