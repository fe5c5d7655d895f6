"""The progress of a project, as the page and `seqmix info` show it."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from seqmix.serve.progress.agreement import agreement, conflicts
from seqmix.serve.progress.by_tag import TagProgress
from seqmix.serve.progress.confusion import confusion
from seqmix.serve.progress.estimates import Estimates, Progress
from seqmix.serve.progress.goal import goal_of
from seqmix.serve.progress.pace import Pace, Times
from seqmix.serve.project import Project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.sources.figures import Figures
from seqmix.serve.store.annotators import MODEL
from seqmix.serve.store.batches.batches import last_action
from seqmix.serve.store.current import read_counts, work_by_annotator
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.store.records import Counts, Generation, Work

NOTE = "trainer"  # the note in which the trainer writes what it does
ALIVE = 30.0  # seconds without a heartbeat after which no trainer runs
WAITING = "waiting"


def status(
    project: Project,
    estimates: Estimates,
    trouble: str | None = None,
    annotator_id: int | None = None,
    figures: Figures | None = None,
    pace: Pace | None = None,
) -> dict[str, Any]:
    """Return the progress of a project; `trouble` says what keeps the trainer from running."""
    store, settings = project.store, project.settings
    counts, progress = read_counts(store, annotator_id), estimates.progress()
    last = next(iter(read_generations(store, 1)), None)
    times = (pace or Pace(store)).times()
    missing = max(0, settings.batch - news(counts, settings, last))
    return {
        "answers": {
            **{key: n for key, n in asdict(counts).items() if key != "events"},
            "left": counts.left,
            # what an undo takes back
            "last": None if annotator_id is None else last_action(store, annotator_id),
        },
        "model": model_status(last, store.read_note(NOTE) or {}, trouble),
        "audit": None if progress.audit is None else asdict(progress.audit),
        "forecast": _forecast(progress, settings, times),
        "goal": goal_of(counts, progress, settings, missing, times).to_json(),
        "pace": times.to_json(annotator_id),
        "lacking": progress.lacking,
        "tags": store.read_tags(),
        "tag_change": store.tag_history().newest,
        "sources": (figures or Figures(store)).rows(),
        "curve": [asdict(point) for point in progress.curve],
        "next_training_in": missing,
    }


def with_team(project: Project) -> dict[str, Any]:
    """Return the progress of a project, who annotates, and how well they agree."""
    store = project.store
    agreed = agreement(store)
    return {
        "name": project.settings.name,
        "store": store.place,
        **status(project, Estimates(store)),
        "by_tag": TagProgress(store).rows(),
        "confusion": confusion(store) if agreed.n else None,
        "annotators": [work_json(work) for work in work_by_annotator(store)],
        "agreement": None if agreed.f1 is None else asdict(agreed),
        "conflicts": len(conflicts(store, limit=1000)) if agreed.n else 0,
    }


def work_json(work: Work) -> dict[str, Any]:
    """Return what an annotator did, with the seconds of an answer given one by one."""
    return {
        "name": work.annotator.name,
        "admin": work.annotator.admin,
        "model": work.annotator.name.startswith(MODEL),
        "labeled": work.labeled,
        "bulk": work.bulk,
        "skipped": work.skipped,
        "discarded": work.discarded,
        "seconds": work.seconds,
        "each": None if work.each is None else round(work.each, 1),
    }


def _forecast(progress: Progress, settings: ProjectSettings, times: Times) -> dict[str, Any] | None:
    """Return the forecast with the minutes that its answers take."""
    if (ahead := progress.forecast) is None:
        return None
    answers, each = ahead.labels / (1 - settings.audit_share), times.next_seconds
    return ahead.as_dict() | {"minutes": None if each is None else round(answers * each / 60, 1)}


def news(counts: Counts, settings: ProjectSettings, last: Generation | None) -> int:
    """Return how many new sentences the next model may learn from."""
    if last is None:
        return answered(counts, settings)
    before = last.labeled if last.notes.answered is None else last.notes.answered
    return answered(counts, settings) - before


def answered(counts: Counts, settings: ProjectSettings) -> int:
    """Return how many sentences a model may learn from."""
    by_people = counts.active - counts.bulk - counts.by_models
    return counts.seed + by_people + (counts.audit if settings.audit_train else 0)


def _progress(last: Generation | None, note: dict[str, Any], phase: str) -> float | None:
    """Return the share of a phase that is done, if it takes as long as in the last training."""
    before, since = (last.seconds if last is not None else {}).get(phase), note.get("since")
    if not before or not isinstance(since, int | float):
        return None
    return round(min(0.99, max(0.0, (time.time() - since) / before)), 2)


def model_status(
    last: Generation | None, note: dict[str, Any], trouble: str | None
) -> dict[str, Any] | None:
    """Return the newest model and what the trainer does now; None before there is either."""
    if last is None and not note and trouble is None:
        return None
    # abs: after a clock was set back, an old note must not look alive
    silent = abs(time.time() - float(note.get("at", 0.0))) > ALIVE
    phase = trouble or ("starting" if silent else str(note.get("phase", WAITING)))
    return {
        "generation": None if last is None else last.number,
        "training": trouble is None and not silent and phase != WAITING and not note.get("failed"),
        "phase": phase,
        "progress": note.get("share") or _progress(last, note, phase),
        "left_s": note.get("left"),
        "stage": None if last is None else last.notes.stage,
        "trained_on": None if last is None else last.labeled,
        "age_s": None if last is None else max(0.0, round(time.time() - last.at, 1)),
        "folder": None if last is None else last.model,
        "augmentation": None if last is None else last.notes.augmentation,
        "pool": None if last is None else last.notes.pool,
    }
