"""The disk that forgets: it keeps all that was synced, and may lose or tear whatever was not."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seqmix.data.files import sync
from tests.faults.power import Disk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at open files in /proc")
SEEDS = range(24)


def after_cut(root: Path, seed: int, work: Callable[[Disk, Path], None]) -> dict[str, str]:
    """What stands in a folder after it was worked on and the power was cut."""
    place = root / str(seed)
    place.mkdir()
    (place / "old").write_text("old")
    disk = Disk(place)
    work(disk, place)
    disk.cut(random.Random(seed))
    return {
        str(path.relative_to(place)): path.read_text() if path.is_file() else ""
        for path in place.rglob("*")
    }


def keep(disk: Disk, path: Path) -> None:
    """Sync for real and tell the disk."""
    sync(path)
    handle = os.open(path, os.O_RDONLY)
    disk.synced(handle)
    os.close(handle)


def test_what_was_synced_with_its_name_is_always_there(tmp_path: Path) -> None:
    def work(disk: Disk, place: Path) -> None:
        (place / "a").mkdir()
        (place / "a" / "new").write_text("new")
        for path in (place / "a" / "new", place / "a", place):
            keep(disk, path)

    for seed in SEEDS:
        assert after_cut(tmp_path, seed, work) == {"a": "", "old": "old", "a/new": "new"}


def test_what_was_not_synced_is_there_torn_or_gone(tmp_path: Path) -> None:
    def work(disk: Disk, place: Path) -> None:
        (place / "new").write_text("news")

    assert {after_cut(tmp_path, seed, work).get("new") for seed in SEEDS} == {
        "news",
        "ne",
        "",
        "\0\0\0\0",
        None,
    }


def test_a_file_renamed_onto_another_is_the_one_or_the_other_and_torn_without_a_sync(
    tmp_path: Path,
) -> None:
    def work(disk: Disk, place: Path) -> None:
        (place / "part").write_text("news")
        keep(disk, place / "part") if place.parent.name == "synced" else None
        (place / "part").replace(place / "old")
        disk.moved(place / "part", place / "old")

    found = {}
    for name in ("synced", "torn"):
        (tmp_path / name).mkdir()
        found[name] = {after_cut(tmp_path / name, seed, work)["old"] for seed in SEEDS}

    assert found == {"synced": {"old", "news"}, "torn": {"old", "news", "ne", "", "\0\0\0\0"}}


def test_what_moves_from_a_folder_to_another_is_in_one_of_them(tmp_path: Path) -> None:
    def work(disk: Disk, place: Path) -> None:
        (place / "a").mkdir()
        keep(disk, place / "a")
        keep(disk, place)
        (place / "old").rename(place / "a" / "old")
        disk.moved(place / "old", place / "a" / "old")

    found = {tuple(sorted(after_cut(tmp_path, seed, work))) for seed in SEEDS}

    assert found == {("a", "old"), ("a", "a/old")}
