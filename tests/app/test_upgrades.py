"""What older versions wrote opens today, what newer ones wrote is refused with what to do, and `seqmix migrate` leads from one to the next.

The folders in tests/fixtures/v1 are kept for ever: a run that was broken off after its first round and a tagger, both written by the first
code that wrote them, and a project whose store is set back to version 1, which had no triggers yet.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from seqmix.app.cli import run
from seqmix.app.commands import migrate as migrating
from seqmix.app.commands.migrate import KINDS, STEPS, Kind, migrated
from seqmix.data.format_versions import foreign
from seqmix.data.locks import locked
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, ModelError, RunError, SeqMixError, StoreError
from seqmix.loop.rounds import read_rounds
from seqmix.serve.labelstudio.database import File
from seqmix.serve.project import open_project
from seqmix.serve.store import schema
from seqmix.starter.loader import base_encoder
from seqmix.tagger import Tagger
from tests.support import tiny

V1 = Path(__file__).parents[1] / "fixtures" / "v1"
SETTINGS = {
    "tagger.encoder": '"encoder"', "loop.seed_size": 8, "loop.rounds": 2, "query.size": 4, "training.epochs": 2,
    "augment.window": 2, "augment.density": 0.5, "augment.score_range": '"off"', "augment.rate": 0.5,
}  # fmt: skip


@pytest.fixture
def old(tmp_path: Path) -> Callable[[str], Path]:
    """A copy of something old to work on."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(V1 / name, tmp_path / name))

    return copied


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# what version 1 wrote opens


def test_a_run_of_version_1_is_shown_and_reported(
    old, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["status", str(old("run"))]) == 0
    said = capsys.readouterr().out
    assert "38.89" in said and "not finished" in said
    assert run(["report", str(tmp_path / "run"), "--out", str(tmp_path / "report.html")]) == 0


def test_a_run_that_version_1_left_unfinished_goes_on_with_the_same_command(
    old, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its config lacks the keys that came later, and its rounds lack what is written now."""
    folder, data = old("run"), old("data")
    before = read_rounds(folder)
    tiny.write_bert(tmp_path / "encoder")
    monkeypatch.chdir(tmp_path)
    changes = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]

    assert run(["simulate", "--data", str(data), "--out", str(folder), *changes]) == 0

    after = read_rounds(folder)
    assert after[:2] == before and "steps" not in after[0]
    assert (after[2]["labeled"], after[2]["stop"]) == (16, "all 2 rounds are done")
    assert (folder / "config.toml").read_bytes() == (V1 / "run" / "config.toml").read_bytes()
    assert (
        run(
            [
                "simulate",
                "--data",
                str(data),
                "--out",
                str(folder),
                *changes,
                "--set",
                "training.min_steps=9",
            ]
        )
        == 2
    )


def test_a_tagger_of_version_1_says_what_it_said(old) -> None:
    tagger = Tagger.load(old("model"), "cpu")
    said = json.loads((V1 / "model-says.json").read_text())
    found = tagger.best_paths(
        [Sentence(str(i), tuple(one["tokens"])) for i, one in enumerate(said)]
    )

    for one, paths in zip(said, found, strict=True):
        assert list(paths[0].tags) == one["tags"]
        assert paths[0].probability == pytest.approx(
            one["probability"], rel=1e-3
        )  # another torch may add in another order


def test_a_project_of_version_1_opens_with_its_answers_and_is_guarded_from_then_on(old) -> None:
    with open_project(old("project")) as project:
        answers = {sentence.id: sentence.tags for sentence in project.store.labeled()}
        assert answers == {"s0": ("B-PER", "O", "B-LOC", "O"), "s2": ("B-PER", "O", "O", "O")}
        with pytest.raises(StoreError, match="append-only"), project.store.writing() as conn:
            conn.execute(delete(schema.events))


# what newer versions wrote is refused


def test_a_format_we_do_not_know_is_told_with_what_to_do() -> None:
    here = Path("a/b")

    assert foreign(here, 3, 3) is None
    assert (
        foreign(here, 4, 3)
        == "a/b has format 4, made by a newer seqmix; this one reads formats up to 3: upgrade seqmix"
    )
    assert (
        foreign(here, 2, 3)
        == "a/b has format 2, made by an older seqmix; bring it to format 3 with: seqmix migrate a/b"
    )
    for damaged in (None, 0, -1, "3", True, 3.0):
        assert "does not say which format it has" in str(foreign(here, damaged, 3))


def newer_run(folder: Path) -> Any:
    path = folder / "rounds.jsonl"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 999'))
    return lambda: read_rounds(folder)


def newer_tagger(folder: Path) -> Any:
    path = folder / "tagger.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 999}))
    return lambda: Tagger.load(folder)


def newer_settings(folder: Path) -> Any:
    path = folder / "project.toml"
    path.write_text(path.read_text().replace("format_version = 1", "format_version = 999"))
    return lambda: open_project(folder)


def newer_store(folder: Path) -> Any:
    with closing(sqlite3.connect(folder / "store.sqlite", isolation_level=None)) as own:
        own.execute("PRAGMA journal_mode = WAL")  # as every store is once it was opened
        own.execute("UPDATE meta SET value = '{\"version\": 999}' WHERE key = 'schema'")
    return lambda: open_project(folder)


def newer_encoder(folder: Path) -> Any:
    (folder / "tagger.json").unlink()
    (folder / "adapt.json").write_text('{"format_version": 999, "base": "starter"}')
    return lambda: base_encoder(str(folder))


def newer_answers(folder: Path) -> Any:
    for path in folder.iterdir():
        path.unlink()
    file = File(folder)
    file.set("format_version", 999)
    file.close()
    return lambda: File(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("run", newer_run),
        ("model", newer_tagger),
        ("project", newer_settings),
        ("project", newer_store),
        ("model", newer_encoder),
        ("model", newer_answers),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_a_newer_seqmix_wrote_is_refused_by_readers_and_by_migrate_and_left_as_it_is(
    old, name: str, change
) -> None:
    folder = old(name)
    opened = change(folder)
    before = contents(folder)

    for attempt in (opened, lambda: migrated(folder)):
        with pytest.raises(SeqMixError, match=r"999.*upgrade seqmix") as refused:
            attempt()
        assert "\n" not in str(refused.value)
    assert {
        path: kept for path, kept in contents(folder).items() if "sqlite-" not in path
    } == before


# migrate


def test_migrate_brings_a_project_to_this_version_and_keeps_what_it_was(
    old, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = old("project")
    (folder / "store.sqlite").chmod(0o600)

    assert run(["migrate", str(folder)]) == 0
    assert f"from format 1 to {schema.SCHEMA}" in capsys.readouterr().out
    assert run(["migrate", str(folder)]) == 0
    assert (
        f"format {schema.SCHEMA}, which is this seqmix's own; there is nothing to do"
        in capsys.readouterr().out
    )

    backup = folder.with_name("project.v1-backup")
    assert [path.name for path in sorted(folder.parent.iterdir())] == [
        "project",
        "project.v1-backup",
    ]
    assert (backup / "store.sqlite").stat().st_mode & 0o777 == 0o600
    assert migrating._in_store(backup, schema.SCHEMA) == 1
    with open_project(folder) as new, open_project(backup) as kept:
        assert list(new.store.events()) == list(kept.store.events())


@pytest.mark.parametrize(("name", "kind"), [("run", "run"), ("model", "tagger")])
def test_migrate_leaves_alone_what_is_of_this_version(
    old, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = old(name)
    before = contents(folder)

    assert run(["migrate", str(folder)]) == 0
    assert f"a {kind} of format 1, which is this seqmix's own" in capsys.readouterr().out
    assert contents(folder) == before
    assert len(list(folder.parent.iterdir())) == 1


def test_migrate_says_what_it_knows_when_there_is_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        assert run(["migrate", str(place)]) == 2
        said = capsys.readouterr().err
        assert "nothing to migrate" in said and "run (config.toml)" in said


def test_every_step_from_every_version_there_was_is_registered() -> None:
    for kind in KINDS:
        assert [
            (kind.name, number)
            for number in range(1, kind.known())
            if (kind.name, number) not in STEPS
        ] == []


# a format that will be raised twice


TAGGER = Kind("tagger", "tagger.json", lambda: 3, migrating._in_json("tagger.json"))


def raised(to: int, **changes: Any) -> Callable[[Path], None]:
    def step(folder: Path) -> None:
        path = folder / "tagger.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes | {"format_version": to}))

    return step


def test_steps_are_taken_one_after_the_other(old) -> None:
    folder = old("model")
    steps = {("tagger", 1): raised(2, scheme="bio"), ("tagger", 2): raised(3, seen=["bio"])}

    assert "from format 1 to 3" in migrated(folder, (TAGGER,), steps)
    described = json.loads((folder / "tagger.json").read_text())
    assert (described["format_version"], described["scheme"], described["seen"]) == (
        3,
        "bio",
        ["bio"],
    )
    assert contents(folder.with_name("model.v1-backup")) == contents(V1 / "model")


def test_a_step_that_breaks_off_leaves_the_backup_and_is_done_again_from_where_it_stood(
    old,
) -> None:
    folder = old("model")

    def broken(folder: Path) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        migrated(folder, (TAGGER,), {("tagger", 1): raised(2), ("tagger", 2): broken})
    assert contents(folder.with_name("model.v1-backup")) == contents(V1 / "model")

    assert "from format 2 to 3" in migrated(
        folder, (TAGGER,), {("tagger", 1): broken, ("tagger", 2): raised(3)}
    )
    assert folder.with_name("model.v2-backup").is_dir()


def test_a_run_that_is_being_worked_in_is_not_migrated(old) -> None:
    folder = old("run")
    kind = Kind("run", "config.toml", lambda: 2, migrating._in_rounds, worked_in=True)

    with locked(folder), pytest.raises(RunError, match="another process is working"):
        migrated(folder, (kind,), {("run", 1): lambda folder: pytest.fail("a step was taken")})
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


def test_an_older_backup_is_never_written_over(old) -> None:
    folder = old("model")
    for _ in range(2):
        raised(1)(folder)
        migrated(folder, (TAGGER,), {("tagger", 1): raised(2), ("tagger", 2): raised(3)})

    assert sorted(path.name for path in folder.parent.iterdir()) == [
        "model",
        "model.v1-backup",
        "model.v1-backup-2",
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_without_room_for_a_backup_nothing_is_changed(old) -> None:
    folder = old("model")
    folder.parent.chmod(0o500)
    try:
        with pytest.raises(DataError, match="cannot write here"):
            migrated(folder, (TAGGER,), {("tagger", 1): raised(2), ("tagger", 2): raised(3)})
        assert contents(folder) == contents(V1 / "model")
    finally:
        folder.parent.chmod(0o700)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format_version": "new"}', "null"])
def test_a_damaged_description_is_told_in_one_line(old, text: str) -> None:
    folder = old("model")
    (folder / "tagger.json").write_text(text)

    with pytest.raises((DataError, ModelError, RunError)) as refused:
        migrated(folder)
    assert "\n" not in str(refused.value) and not folder.with_name("model.v1-backup").exists()
