"""Disks that are full or read-only, damaged files, two writers: each ends in one clear line.

python -m tests.faults.trouble [--share 1]

Then the command goes on to the same bytes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults import forked, mounts, power
from tests.faults.annotators import fill_disk
from tests.faults.scenes import Background, Init, Scene, Simulate, Stage, Sweep, Train, fresh

_PAGE = 4096
_MEMORY = Path("/dev/shm")
Case = Callable[
    [Scene, Path, Path, random.Random], str
]  # what happened in a word; AssertionError: what should not have


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=0.4, help="of all that there is to try")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    wrong = 0
    with tempfile.TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None) as place:
        stage = Stage.set_up(Path(place))
        for name, case, scene, times in _cases(stage, given.share):
            told: Counter[str] = Counter()
            for _ in range(times):
                verdict = _tried(case, scene, Path(place), rng)
                told[verdict] += 1
            bad = [verdict for verdict in told if verdict.startswith("WRONG")]
            wrong += len(bad)
            print(
                f"{name}, {scene.name}: "
                + "; ".join(f"{n} {verdict}" for verdict, n in told.most_common()),
                flush=True,
            )
    print(f"{wrong} things wrong")
    return int(bool(wrong))


def _cases(stage: Stage, share: float) -> Iterator[tuple[str, Case, Scene, int]]:
    runs: list[Scene] = [Simulate(stage), Train(stage, over=True), Sweep(stage)]
    inits: list[Scene] = [Init(stage), Init(stage, there=True)]
    for scene in (*runs, *inits, Background(stage)):
        yield "full disk", full_disk, scene, max(1, round(share * 12))
    yield (
        "full disk under a server",
        full_disk_of_a_server,
        Background(stage),
        max(1, round(share * 3)),
    )
    for scene in runs:
        yield "read-only disk", read_only_disk, scene, max(1, round(share * 4))
    for scene in (Simulate(stage), Sweep(stage)):
        yield "two writers", two_writers, scene, max(1, round(share * 3))
    for scene in (Simulate(stage), Sweep(stage), Background(stage)):
        yield "damaged file", damaged_file, scene, max(1, round(share * 40))


def full_disk(scene: Scene, root: Path, log: Path, rng: random.Random) -> str:
    """The disk has room for a part of what the command writes; then it gets more."""
    expected = _expected(scene, root, log)
    with _on_a_disk_of_its_own(scene, root):
        free = rng.randrange(0, 60) * _PAGE
        mounts.change_disk(root, mounts.used(root) + free + _PAGE)
        ended = forked.run(lambda: scene.command(root), log)
        mounts.change_disk(root)
        if ended.code == 0:
            return _same(scene, root, expected, "had room enough")
        _one_clear_line(ended)
        _again(scene, root, log, expected)
    return "refused in one line, then done"


def full_disk_of_a_server(scene: Scene, root: Path, log: Path, rng: random.Random) -> str:
    """Answers arrive while the disk of a project gets full."""
    root.mkdir(exist_ok=True)
    before, after, wrong = fill_disk(root, log, rng)
    assert not wrong and after > 0, (
        f"{wrong}; {before} acknowledged before it was full, {after} after it had room"
    )
    return "refused answers while it was full, took them again then; none acknowledged and lost"


def read_only_disk(scene: Scene, root: Path, log: Path, rng: random.Random) -> str:
    """A command that was killed somewhere finds its disk read-only."""
    expected = _expected(scene, root, log)
    with _on_a_disk_of_its_own(scene, root):
        _killed_somewhere(scene, root, log, rng)
        before = _everything(root)
        mounts.change_disk(root, read_only=True)
        ended = forked.run(lambda: scene.command(root), log)
        mounts.change_disk(root)
        _one_clear_line(ended)
        assert _everything(root) == before, "something changed on a read-only disk"
        _again(scene, root, log, expected)
    return "refused in one line, then done"


def two_writers(scene: Scene, root: Path, log: Path, rng: random.Random) -> str:
    """While one works, stopped for a moment, another one comes."""
    expected = _expected(scene, root, log)
    fresh(scene, root)
    first = forked.start(lambda: scene.command(root), log.with_name("first"))
    while first.alive() and not re.search(r"^round 0|^\d of 4 runs", first.said, re.MULTILINE):
        time.sleep(0.001)
    os.kill(first.pid, signal.SIGSTOP)
    second = forked.run(lambda: scene.command(root), log)
    os.kill(first.pid, signal.SIGCONT)
    ended = first.end()
    _one_clear_line(second)
    assert "another process is working in" in second.said, second.said
    assert ended.code == 0, ended.said
    return _same(scene, root, expected, "second refused in one line, first undisturbed")


def damaged_file(scene: Scene, root: Path, log: Path, rng: random.Random) -> str:
    """A file of a command that was killed somewhere is cut, has a flipped bit, or is all zeros."""
    expected = _expected(scene, root, log)
    fresh(scene, root)
    _killed_somewhere(scene, root, log, rng)
    files = [
        file
        for file in sorted(root.rglob("*"))
        if file.is_file() and file.stat().st_size and file.name != "mine.toml"
    ]
    if not files:
        return "had no file yet"
    file = rng.choice(files)
    whole = file.read_bytes()
    content = bytearray(whole)
    how = rng.choice(["cut", "flipped", "zeros"])
    if how == "flipped":
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    file.write_bytes(
        content
        if how == "flipped"
        else content[: len(content) // 2]
        if how == "cut"
        else bytes(len(content))
    )
    ended = forked.run(lambda: scene.command(root), log)
    if ended.code:
        _one_clear_line(ended, f"{file.relative_to(root)}, {how}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(whole)
        _again(scene, root, log, expected)
        return "refused in one line, and with the file put back done"
    found = scene.result(root)
    differ = [
        key for key in expected if found.get(key) != expected[key] and not str(file).endswith(key)
    ]
    return f"not noticed ({file.name}, {how})" if differ else "not read any more, or made again"


def _tried(case: Case, scene: Scene, place: Path, rng: random.Random) -> str:
    """In a child of its own, which may change what it sees of the disk."""
    verdict, seed = place / "verdict", rng.randrange(2**32)
    verdict.write_text("WRONG: it did not end")

    def work() -> None:
        try:
            said = case(scene, place / "root", place / "log", random.Random(seed))
        except AssertionError as error:
            said = f"WRONG: {error} (seed {seed})"
        except PermissionError as error:
            said = f"not tried: {error.strerror}"
        verdict.write_text(said)

    ended = forked.run(work, place / "case")
    return verdict.read_text() if ended.code == 0 else f"WRONG: {ended.said[-800:]}"


def _expected(scene: Scene, root: Path, log: Path) -> dict[str, str]:
    """What the undisturbed command leaves; kept in a file, as every case has its own process."""
    kept = root.with_name(f"expected {scene.name}.json")
    if not kept.exists():
        fresh(scene, root)
        ended = forked.run(lambda: scene.command(root), log)
        assert ended.code == 0, ended.said
        kept.write_text(json.dumps(scene.result(root)))
    found: dict[str, str] = json.loads(kept.read_text())
    return found


@contextmanager
def _on_a_disk_of_its_own(scene: Scene, root: Path) -> Iterator[None]:
    root.mkdir(exist_ok=True)
    mounts.small_disk(root)
    ended = forked.run(lambda: scene.prepare(root), root.with_name("log"))
    assert ended.code == 0, ended.said
    yield


def _killed_somewhere(scene: Scene, root: Path, log: Path, rng: random.Random) -> None:
    """Killed at a change to the disk, or at its end if that change never comes."""

    def work() -> int | None:
        power.die_at(rng.randrange(3, 200), root)
        return scene.command(root)

    forked.run(work, log)


def _one_clear_line(ended: forked.Ended, about: str = "") -> None:
    """subtle: a sweep whose runs fail says which and where it is written down, and ends with 1."""
    lines = [line for line in ended.said.strip().splitlines() if line]
    assert ended.code in (1, 2), f"{about}: exit code {ended.code}, {lines[-1:]}"
    assert "Traceback" not in ended.said, f"{about}: a traceback, {lines[-1]}"
    assert ended.code == 1 or lines[-1].startswith("error: "), (
        f"{about}: no clear line, {lines[-1]}"
    )


def _again(scene: Scene, root: Path, log: Path, expected: dict[str, str]) -> None:
    ended = forked.run(lambda: scene.command(root), log)
    assert ended.code == 0, f"it did not go on: exit code {ended.code}, {ended.said[-300:]}"
    _same(scene, root, expected, "")


def _same(scene: Scene, root: Path, expected: dict[str, str], verdict: str) -> str:
    found = scene.result(root)
    differ = sorted(
        key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)
    )
    assert not differ, f"{', '.join(differ)} differ from an undisturbed run's"
    return verdict


def _everything(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


if __name__ == "__main__":
    sys.exit(main())
