"""Kill commands, resume them, and compare what they leave with an undisturbed run.

    python -m tests.faults.kills --kills 500
    python -m tests.faults.kills --plant "no fsync"    # a bug on purpose: it must be found

They are killed at every change they make to the disk and at random moments. Half of the kills are
power cuts: what was not synced is lost or torn, see power.py. Answers given to `annotate` are given
over HTTP and counted only when the server has acknowledged them.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults import forked, power
from tests.faults.annotators import kill_servers
from tests.faults.scenes import Scene, Stage, fresh, leftovers, scenes

# a disk on which syncing costs nothing: what is synced and what is not is worked out, not tried
_MEMORY = Path("/dev/shm")
_SHARE = {
    "simulate": 0.25, "train": 0.1, "train over an old model": 0.1, "sweep": 0.15,
    "init": 0.05, "init in a folder that is there": 0.1, "annotate: its trainer": 0.1,
}  # the rest: servers  # fmt: skip


@dataclass(frozen=True)
class Kill:
    """One way to die: before a change to the disk, with or without a power cut, or after a time."""

    change: int | None = None
    cut: bool = False
    moment: float = 0.0

    def __str__(self) -> str:
        how = "power cut" if self.cut else "kill"
        return (
            f"{how} at change {self.change}"
            if self.change is not None
            else f"kill after {100 * self.moment:.0f} % of the time"
        )


@dataclass
class Tally:
    """What was done to a scene, and what was wrong."""

    changes: int = 0
    covered: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=70)
    parser.add_argument("--only", default="", help="scenes whose name begins so")
    parser.add_argument(
        "--plant",
        choices=["no fsync", "no folder fsync"],
        help="a bug to put in; the exit code is then 0 when it was found",
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    wrong: list[str] = []
    start, kills = time.monotonic(), 0
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as place:
        stage = Stage.set_up(Path(place))
        for scene in scenes(stage):
            if scene.name.startswith(given.only):
                tally = torment(
                    scene, Path(place), round(_SHARE[scene.name] * given.kills), rng, given.plant
                )
                kills += tally.kinds.total()
                wrong += [f"{scene.name}: {line}" for line in tally.wrong]
                _tell(
                    scene.name,
                    f"{len(tally.covered)} of {tally.changes} changes",
                    tally.kinds,
                    tally.wrong,
                )
        if "annotate: its server".startswith(given.only) and given.plant is None:
            served = kill_servers(Path(place), max(1, given.kills - kills), rng)
            kills += served.kills
            wrong += [f"annotate: its server: {line}" for line in served.wrong]
            _tell(
                "annotate: its server",
                f"{served.acknowledged} answers acknowledged",
                Counter(moment=served.kills),
                served.wrong,
            )
    for line in wrong:
        print(f"WRONG: {line}")
    print(f"{kills} kills in {time.monotonic() - start:.0f} s: {len(wrong)} things wrong")
    return int(not wrong) if given.plant else int(bool(wrong))


def torment(
    scene: Scene, place: Path, kills: int, rng: random.Random, plant: str | None = None
) -> Tally:
    """Kill the scene so many times, twice in a row each: a resumed command can be killed too."""
    root, log = place / "root", place / "log"
    tally = Tally()
    began = time.monotonic()
    tally.changes, expected = undisturbed(scene, root, log)
    usual = time.monotonic() - began
    ways = _ways(scene, tally.changes, kills, rng)
    while tally.kinds.total() < kills and ways:
        fresh(scene, root)
        story: list[str] = []
        for way in (first := ways.pop(), _second(first, tally.changes, rng)):
            story.append(str(way))
            ended = _killed(scene, root, log, way, usual, rng.randrange(2**32), plant)
            if not ended.killed:
                tally.wrong += [f"{'; '.join(story)}: {_last(ended)}"] if ended.code else []
                break
            tally.kinds["cut" if way.cut else "kill" if way.change else "moment"] += 1
            tally.covered |= {way.change} if way.change else set()
            tally.wrong += [
                f"{'; '.join(story)}: {line}" for line in _complaints(scene, root, ended.said, log)
            ]
        ended = forked.run(lambda: scene.command(root), log)
        if ended.code:
            tally.wrong.append(f"{'; '.join(story)}; resumed: {_last(ended)}")
            continue
        found = scene.result(root)
        tally.wrong += [
            f"{'; '.join(story)}; resumed: {name} is another"
            for name in sorted(expected.keys() | found.keys())
            if found.get(name) != expected.get(name)
        ]
        tally.wrong += [f"{'; '.join(story)}; resumed: {line}" for line in leftovers(root)]
    return tally


def undisturbed(scene: Scene, root: Path, log: Path) -> tuple[int, dict[str, str]]:
    """How many changes to the disk the command makes, and what it leaves."""
    fresh(scene, root)
    counted = root.with_name("counted")

    def work() -> int | None:
        count = power.die_at(None, root)
        code = scene.command(root)
        counted.write_text(str(count()))
        return code

    ended = forked.run(work, log)
    if ended.code:
        raise RuntimeError(f"{scene.name} does not even run undisturbed: {ended.said}")
    return int(counted.read_text()), scene.result(root)


def _ways(scene: Scene, changes: int, kills: int, rng: random.Random) -> list[Kill]:
    """Power cuts and kills at all changes, kills at random moments; of too many, a random part."""
    ways: list[Kill] = []
    kinds = (True, False, None) if scene.cuts else (False, None)
    for number, kind in enumerate(kinds):
        part = (kills - len(ways)) // (len(kinds) - number)
        if kind is None:
            ways += [Kill(moment=rng.random()) for _ in range(part)]
        else:
            order = [
                change
                for _ in range(-(-part // changes))
                for change in rng.sample(range(1, changes + 1), changes)
            ]
            ways += [Kill(change, kind) for change in order[:part]]
    rng.shuffle(ways)
    return ways


def _second(first: Kill, changes: int, rng: random.Random) -> Kill:
    """A way to kill a command that goes on after the first kill, in what it has left to do."""
    if first.change is None:
        return Kill(moment=first.moment * rng.random())
    return Kill(rng.randint(1, max(1, changes - first.change)), first.cut)


def _killed(
    scene: Scene, root: Path, log: Path, way: Kill, usual: float, seed: int, plant: str | None
) -> forked.Ended:
    def work() -> int | None:
        power.die_at(way.change, root, way.cut, seed, plant)
        return scene.command(root)

    return forked.run(work, log, None if way.change is not None else way.moment * usual)


def _complaints(scene: Scene, root: Path, said: str, log: Path) -> list[str]:
    """Looked for in a child: what is loaded here would be in every later child."""
    found = root.with_name("found")

    def work() -> None:
        found.write_text("\n".join(scene.complaints(root, said)))

    ended = forked.run(work, log)
    return [_last(ended)] if ended.code else found.read_text().splitlines()


def _last(ended: forked.Ended) -> str:
    return f"exit code {ended.code}, {(ended.said.strip().splitlines() or ['it said nothing'])[-1]}"


def _tell(name: str, covered: str, kinds: Counter[str], wrong: list[str]) -> None:
    told = ", ".join(f"{kinds[kind]} {words}" for kind, words in _WORDS.items() if kinds[kind])
    print(f"{name}: {told}; {covered}; {len(wrong)} wrong", flush=True)


_WORDS = {"cut": "power cuts", "kill": "kills at a change", "moment": "kills at a moment"}

if __name__ == "__main__":
    sys.exit(main())
