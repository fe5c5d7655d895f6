"""How a project stands, as facts for JSON and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from seqmix.serve.estimates import Estimates, agreement, conflicts
from seqmix.serve.project import Project


def facts(own: Project) -> dict[str, Any]:
    """Everything `seqmix status` says of a project."""
    from seqmix.serve.store.current import read_counts, work_by_annotator
    from seqmix.serve.store.rankings import read_generations

    store, counts, found = own.store, read_counts(own.store), Estimates(own.store).progress()
    made, agreed = read_generations(store, 1), agreement(own.store)
    return {
        "name": own.settings.name,
        "store": store.place,
        "tags": list(own.settings.tags),
        "sentences": {
            **{k: v for k, v in asdict(counts).items() if k not in ("mine", "events")},
            "left": counts.left,
        },
        "annotators": [
            {
                "name": w.annotator.name,
                "admin": w.annotator.admin,
                "labeled": w.labeled,
                "skipped": w.skipped,
                "seconds": w.seconds,
            }
            for w in work_by_annotator(store)
        ],
        "model": None
        if not made
        else {
            "generation": made[-1].number,
            "labeled": made[-1].labeled,
            "at": made[-1].at,
            "folder": made[-1].model,
        },
        "audit": None if found.audit is None else asdict(found.audit),
        "curve": [asdict(point) for point in found.curve],
        "forecast": None if found.forecast is None else found.forecast.as_dict(),
        "lacking": found.lacking,
        "agreement": None if agreed.f1 is None else asdict(agreed),
        "conflicts": len(conflicts(store, limit=1000)) if agreed.n else 0,
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    """The same for people."""
    n = found["sentences"]
    yield (
        f"{found['name']}: {n['labeled']} of {n['sentences']} sentences labeled, {n['left']} left"
        + _more(n)
    )
    yield f"tags: {', '.join(found['tags'])}"
    yield f"store: {found['store']}"
    for one in found["annotators"]:
        speed = (
            f", {one['seconds'] / (one['labeled'] + one['skipped']):.1f} s each"
            if one["labeled"] + one["skipped"]
            else ""
        )
        yield f"  {one['name']}{' (admin)' if one['admin'] else ''}: {one['labeled']} labeled, {one['skipped']} skipped{speed}"
    if not found["annotators"]:
        yield "annotators: nobody yet"
    model, audit, ahead, agreed = (
        found[key] for key in ("model", "audit", "forecast", "agreement")
    )
    yield "model: none yet" if model is None else _model(model)
    lacking = found["lacking"]
    if audit is not None:
        between = (
            f"{_percent(audit['low'])} to {_percent(audit['high'])}, {100 * audit['level']:g} %"
        )
        yield f"F1: {_percent(audit['f1'])} ({between}) on {audit['n']} random sentences"
    elif model is None or not model["labeled"]:
        yield "F1: not known yet; it needs a model, and answers to sentences of the audit stream"
    else:
        yield f"F1: cannot be known yet; at least {_count(lacking['audit'], 'more audit answer')} with a span in it"
    if ahead is not None:
        gain = "next to nothing" if ahead["little"] else _signed(ahead["gain"])
        between = f"{_signed(ahead['low'])} to {_signed(ahead['high'])}, {100 * ahead['level']:g} %"
        yield f"forecast: {_count(ahead['labels'], 'more answer')} should bring {gain} ({between})"
    elif audit is not None:
        more = [
            _count(lacking[key], what)
            for key, what in (("forecast", "more audit answer"), ("models", "more model"))
            if lacking[key]
        ]
        yield f"forecast: too early to say; at least {' and '.join(more)}"
    if agreed is not None:
        yield f"agreement: {_agreed(agreed)}; {found['conflicts']} in dispute"
        yield from (f"  {pair['a']} and {pair['b']}: {_agreed(pair)}" for pair in agreed["pairs"])


def _model(model: dict[str, Any]) -> str:
    place = f", in {model['folder']}" if model["folder"] else ""
    return (
        f"model: generation {model['generation']}, trained on {model['labeled']} sentences{place}"
    )


def _agreed(one: dict[str, Any]) -> str:
    kappa = "not known" if one["kappa"] is None else f"{one['kappa']:.3f}"
    return f"span F1 {_percent(one['f1'])}, kappa {kappa} on {one['n']} sentences"


def _more(n: dict[str, int]) -> str:
    notes = (
        ("audit", "of the labeled random"),
        ("skipped", "skipped"),
        ("held", "open on a page"),
        ("overlap", "answered twice"),
        ("seed", "seed"),
    )
    shown = [f"{n[key]} {what}" for key, what in notes if n[key]]
    return f" ({', '.join(shown)})" if shown else ""


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _signed(share: float) -> str:
    return f"{100 * share:+.1f}"
