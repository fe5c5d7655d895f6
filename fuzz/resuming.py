"""Target: what the rounds of a run leave for the run that resumes it.

The tagger of that run learns in no time.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from functools import cache, partial
from pathlib import Path

from fuzz.readers import gazette
from fuzz.target import Finding, Target, named
from seqmix.augment.replacement import Replacement
from seqmix.data.tagset import TagSet
from seqmix.errors import RunError
from seqmix.loop.events import PhaseStarted, RunEvent
from seqmix.loop.learner import ActiveLearner
from seqmix.loop.pool import labels_of
from seqmix.loop.rounds import read_rounds
from seqmix.loop.run import Plan, run
from seqmix.testing import WordTagger

_NAMES = (
    "rounds/002/chosen.json",
    "rounds/002/augmentation.json",
    "rounds/002/generated.jsonl",
    "rounds/001/generated.jsonl",
    "rounds/001/predictions.json",
    "rounds.jsonl",
    "timings.jsonl",
)


def targets() -> list[Target]:
    """The resumption of a run."""
    return [
        Target(
            "resume",
            _resume,
            lambda: [f"{name}\n".encode() + _left()[name] for name in _NAMES],
            0.3,
        )
    ]


class _Killed(BaseException):
    """Stands for a kill: nothing may catch it."""


def _resume(data: bytes, folder: Path) -> None:
    """A run that goes on from these files leaves nothing that it would not read again."""
    place = folder / "run"
    shutil.rmtree(place, ignore_errors=True)
    for name, content in named(data, _left(), _NAMES).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)
    run(_plan(), place)
    try:
        read_rounds(place)
    except RunError as error:
        raise Finding(f"a run wrote what it does not read: {error}") from error


@cache
def _left() -> dict[str, bytes]:
    """The files of a run that was killed before the training of its last round."""

    def kill(event: RunEvent) -> None:
        if event == PhaseStarted(2, "train"):
            raise _Killed

    with tempfile.TemporaryDirectory() as place:
        with suppress(_Killed):
            run(_plan(), Path(place), kill)
        return {
            str(path.relative_to(place)): path.read_bytes() for path in Path(place).rglob("*.json*")
        }


def _plan() -> Plan:
    gold = gazette(14)
    learner = partial(
        ActiveLearner,
        tagger=lambda sentences, *_: WordTagger().fit(sentences, tag_set=TagSet.of(gold)),
        policy="fluctuation",
        augmenter=Replacement("shuffle"),
        rate=0.5,
    )
    return Plan(
        learner=learner,
        seed_set=gold[:4],
        pool=gold[4:12],
        label=labels_of(gold),
        splits={"test": gold[12:]},  # forecasts from dev take most of the time
        sizes=lambda round: 2,
        rounds=3,
        load_tagger=lambda path: WordTagger().fit(gold[:4], tag_set=TagSet.of(gold)),
    )
