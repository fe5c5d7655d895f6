"""How far a run or a project is, for `seqmix info`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from seqmix.app.console import count, duration, percent
from seqmix.app.description.pace import pace_lines
from seqmix.app.description.sources import source_lines
from seqmix.app.description.tags import confusion_lines, tag_lines
from seqmix.loop.round_record import SPLITS, RoundRecord
from seqmix.loop.stopping import Forecast

_HEAD = "round  labeled generated  dev F1 test F1  next gain (90 %)"
Description = tuple[dict[str, Any], Iterator[str]]  # as JSON, and as lines for people


def describe_project(folder: Path) -> Description:
    """Describe the progress of a project."""
    from seqmix.serve.project import open_project
    from seqmix.serve.project_status import with_team

    with open_project(folder) as project:
        facts = with_team(project)
    return facts, _project_lines(facts)


def describe_run(folder: Path) -> Description:
    """Describe the progress of a run."""
    from seqmix.loop.rounds import read_rounds

    rounds = read_rounds(folder)
    return {"rounds": [record.to_json() for record in rounds]}, _run_lines(rounds)


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


def _project_lines(facts: dict[str, Any]) -> Iterator[str]:
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
    yield _goal(facts["goal"])
    yield from pace_lines(facts["pace"])
    yield from tag_lines(facts["by_tag"])
    yield from source_lines(facts["sources"])
    agreement = facts["agreement"]
    if agreement is not None:
        yield f"agreement: {_agreement(agreement)}; {facts['conflicts']} in dispute"
        for pair in agreement["pairs"]:
            yield f"  {pair['a']} and {pair['b']}: {_agreement(pair)}"
        yield from confusion_lines(facts["confusion"])


def _notes(answers: dict[str, int]) -> str:
    kinds = {
        "audit": "of the labeled drawn at random",
        "bulk": "accepted in one go",
        "by_models": "by language models",
        "skipped": "skipped",
        "discarded": "discarded",
        "held": "open on a page",
        "overlap": "answered twice",
        "seed": "seed",
    }
    if random := answers["discarded_audit"]:
        kinds["discarded"] += f" ({random} of them drawn at random)"
    notes = [f"{answers[key]} {what}" for key, what in kinds.items() if answers[key]]
    return f" ({', '.join(notes)})" if notes else ""


def _work(work: dict[str, Any]) -> str:
    """Return what somebody did, first what they answered one by one, with its speed."""
    if work["model"]:
        return f"  {work['name']}: {work['labeled']} labeled by a language model"
    kinds = ("labeled", "skipped", "discarded")
    counts = ", ".join(f"{work[k]} {k}" for k in kinds if work[k] or k != "discarded")
    speed = "" if work["each"] is None else f", {work['each']:.1f} s each"
    bulk = f"; {work['bulk']} accepted in one go" if work["bulk"] else ""
    admin = " (admin)" if work["admin"] else ""
    return f"  {work['name']}{admin}: {counts}{speed}{bulk}"


def _model(model: dict[str, Any] | None) -> str:
    if model is None or model["generation"] is None:
        return "model: none yet"
    place = f", in {model['folder']}" if model["folder"] else ""
    size = count(model["trained_on"], "sentence")
    return f"model: generation {model['generation']}, trained on {size}{place}"


def _f1(facts: dict[str, Any]) -> str:
    audit, model = facts["audit"], facts["model"]
    if audit is not None:
        low, high = percent(audit["low"]), percent(audit["high"])
        interval = f"{low} to {high}, {100 * audit['level']:g} %"
        return f"F1: {percent(audit['f1'])} ({interval}) on {audit['n']} random sentences"
    if model is None or not model["trained_on"]:
        return "F1: not known yet; it needs a model, and answers to sentences of the audit stream"
    more = count(facts["lacking"]["audit"], "more audit answer")
    return f"F1: not known yet; it needs at least {more} with a span"


def _forecast(facts: dict[str, Any]) -> Iterator[str]:
    forecast, lacking = facts["forecast"], facts["lacking"]
    if forecast is not None:
        gain = "next to nothing" if forecast["little"] else _signed(forecast["gain"])
        low, high = _signed(forecast["low"]), _signed(forecast["high"])
        interval = f"{low} to {high}, {100 * forecast['level']:g} %"
        answers = count(forecast["labels"], "more answer")
        if forecast["minutes"]:
            answers += f" (about {duration(60 * forecast['minutes'])})"
        yield f"forecast: {answers} should bring {gain} ({interval})"
    elif facts["audit"] is not None:
        kinds = {"forecast": "more audit answer", "models": "more model"}
        more = [count(lacking[key], what) for key, what in kinds.items() if lacking[key]]
        yield f"forecast: too early to say; it needs at least {' and '.join(more)}"


def _goal(goal: dict[str, Any]) -> str:
    reasons = {
        "first model": "until the first model",
        "measure": "until a forecast is possible",
        "gain": "for the gain forecast above",
        "all": "until all of the text is labeled",
        "enough": "more answers should bring next to nothing",
    }
    if not goal["more"]:
        return f"goal: {reasons[goal['why']]}" if goal["why"] == "enough" else "goal: reached"
    time = f" (about {duration(60 * goal['minutes'])})" if goal["minutes"] else ""
    return f"goal: {count(goal['more'], 'more answer')}{time} {reasons[goal['why']]}"


def _agreement(agreement: dict[str, Any]) -> str:
    kappa = "not known" if agreement["kappa"] is None else f"{agreement['kappa']:.3f}"
    f1 = percent(agreement["f1"])
    return f"span F1 {f1}, kappa {kappa} on {count(agreement['n'], 'sentence')}"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"
