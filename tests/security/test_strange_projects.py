"""A project, a run or a folder of serve that a stranger sent.

Opening it runs, empties, deletes and reads nothing outside of it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.app.sweep.state import SweepState
from seqmix.data.files import locked
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, RunError, SeqMixError, StoreError
from seqmix.loop import run as loop
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings, read_settings
from seqmix.serve.trainer.supervisor import Supervisor
from tests.support.labelstudio_fakes import backend
from tests.support.waiting import until

SECRET = "a private key\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    create_project(
        tmp_path / "p",
        [Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(12)],
        ProjectSettings("notes", ("PER", "LOC")),
    )
    return tmp_path / "p"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "id_rsa").write_text(SECRET)
    return tmp_path / "home" / "id_rsa"


NAMES = (
    "project.toml", "guidelines.md", "training.toml", "trainer.log", "lock",
    "models", "models/lock", "models/005", "models/005/tagger.json",
    "store.sqlite", "store.sqlite-wal", "store.sqlite-shm", "store.sqlite-journal",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_link_under_a_name_of_ours_is_refused_and_nothing_changes_behind_it(
    project: Path, private: Path, name: str
) -> None:
    link = project / name
    link.parent.mkdir(parents=True, exist_ok=True)
    behind = private.parent if name in ("models", "models/005") else private
    if link.exists():
        behind = private.with_name(link.name)
        link.rename(behind)
    link.symlink_to(os.path.relpath(behind, link.parent))
    before = {path: path.read_bytes() for path in private.parent.iterdir()}

    with pytest.raises(DataError, match="expected a plain file or folder") as error:
        open_project(project)
    assert str(link) in str(error.value)
    assert {path: path.read_bytes() for path in private.parent.iterdir()} == before


def test_a_pipe_in_a_project_keeps_nobody_waiting(project: Path) -> None:
    os.mkfifo(project / "guidelines.md")

    with pytest.raises(DataError, match=r"guidelines\.md: expected a plain file"):
        read_settings(project)


def test_guidelines_that_become_a_link_while_the_server_runs_are_not_shown(
    project: Path, private: Path
) -> None:
    with open_project(project) as own:
        (project / "guidelines.md").write_text("Mark\r\nnames.")
        assert own.guidelines == "Mark\nnames."
        (project / "guidelines.md").unlink()
        assert own.guidelines == ""
        (project / "guidelines.md").symlink_to(private)
        with pytest.raises(DataError, match="expected a plain file"):
            assert own.guidelines


def schema(*statements: str) -> Callable[[Path], None]:
    def change(store: Path) -> None:
        with sqlite3.connect(store) as db:
            for statement in statements:
                db.execute(statement)
        db.close()

    return change


HARMFUL = {
    "trigger": schema(
        "CREATE TRIGGER x BEFORE INSERT ON meta WHEN NEW.key='trainer' "
        "BEGIN SELECT RAISE(ABORT,';touch PWNED;#'); END"
    ),
    "our trigger with other words": schema(
        "DROP TRIGGER events_no_update",
        "CREATE TRIGGER events_no_update BEFORE INSERT ON events "
        "BEGIN SELECT RAISE(ABORT, ';touch PWNED;#'); END",
    ),
    "view": schema("CREATE VIEW v AS SELECT * FROM events"),
    "view in place of a table": schema(
        "ALTER TABLE generated RENAME TO hidden",
        "CREATE VIEW generated AS SELECT *, randomblob(1) FROM hidden",
    ),
    "virtual table": schema("CREATE VIRTUAL TABLE v USING fts5(t)"),
    "computed column": schema("ALTER TABLE meta ADD COLUMN more TEXT AS (upper(key))"),
    "default": schema("ALTER TABLE meta ADD COLUMN more TEXT DEFAULT ';'"),
    "check": schema(
        "DROP TABLE generated",
        "CREATE TABLE generated (id TEXT CONSTRAINT ';touch PWNED;#' CHECK (0))",
    ),
    "computed index": schema("CREATE INDEX x ON meta (upper(key))"),
    "partial index": schema("CREATE INDEX x ON meta (key) WHERE length(value) > 1"),
    "other table": schema("CREATE TABLE cookies (name)"),
}


@pytest.mark.parametrize("harm", HARMFUL)
def test_a_store_with_anything_that_acts_by_itself_is_refused(project: Path, harm: str) -> None:
    HARMFUL[harm](project / "store.sqlite")

    with pytest.raises(
        StoreError, match=r"is not a store of seqmix: it has the (trigger|view|table|index) "
    ):
        open_project(project)


def test_a_journal_that_names_a_file_to_delete_is_not_played_back(
    project: Path, private: Path
) -> None:
    """A rollback journal may end with the name of another file, which SQLite deletes after it."""
    store = project / "store.sqlite"
    with sqlite3.connect(store) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    name, pages = os.fsencode(private), store.stat().st_size // 4096
    header = (
        bytes.fromhex("d9d505f920a163d7")
        + bytes(8)
        + pages.to_bytes(4, "big")
        + (512).to_bytes(4, "big")
        + (4096).to_bytes(4, "big")
    )
    end = (
        (0).to_bytes(4, "big")
        + name
        + len(name).to_bytes(4, "big")
        + sum(name).to_bytes(4, "big")
        + bytes.fromhex("d9d505f920a163d7")
    )
    (project / "store.sqlite-journal").write_bytes(header.ljust(512, b"\0") + end)

    with pytest.raises(StoreError, match="has a rollback journal"):
        open_project(project)
    assert private.read_text() == SECRET


@pytest.mark.parametrize(
    "change",
    [
        "tokens = 'no JSON'", "tokens = '" + "[" * 5000 + "]" * 5000 + "'", "tokens = '{}'",
        "tokens = '[1, 2]'", "tokens = x'00ff'",
        "text = '[1]'", "offsets = '5'", "offsets = '[[1, 2, 3]]'", "offsets = '[[\"a\", {}]]'",
    ],
)  # fmt: skip
def test_values_that_we_did_not_write_are_one_line(
    project: Path, change: str, capfd: pytest.CaptureFixture[str]
) -> None:
    schema(f"UPDATE sentences SET {change}")(project / "store.sqlite")

    assert (
        run(
            [
                "export",
                str(project),
                "--split",
                "all",
                "--out",
                str(project.parent / "x.jsonl"),
                "--to",
                "jsonl-tokens",
            ]
        )
        == 2
    )
    said = capfd.readouterr().err
    assert said.splitlines()[-1].startswith("error: the store holds a ") and "Traceback" not in said


def test_what_the_store_may_compute_is_not_trusted(project: Path) -> None:
    with open_project(project) as own, own.store.reading() as conn:
        assert conn.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
        assert conn.exec_driver_sql("PRAGMA cell_size_check").scalar() == 1


def test_a_lock_is_never_emptied_and_never_a_link(tmp_path: Path, private: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "lock").symlink_to(private)
    with pytest.raises(DataError, match="expected a plain file"), locked(tmp_path / "run"):
        pass
    (tmp_path / "run" / "lock").unlink()
    (tmp_path / "run" / "lock").write_text("kept")
    with (
        locked(tmp_path / "run"),
        pytest.raises(RunError, match="another process"),
        locked(tmp_path / "run"),
    ):
        pass

    assert private.read_text() == SECRET
    assert (tmp_path / "run" / "lock").read_text() == "kept"


def test_the_log_of_the_trainer_is_never_a_link(tmp_path: Path, private: Path) -> None:
    (tmp_path / "trainer.log").symlink_to(private)
    watched = Supervisor([sys.executable, "-c", "print('; touch PWNED')"], tmp_path / "trainer.log")
    watched.start()
    until(lambda: watched.trouble())
    watched.stop()

    assert "expected a plain file" in str(watched.trouble())
    assert private.read_text() == SECRET


def test_the_log_of_a_sweep_is_never_a_link(tmp_path: Path, private: Path) -> None:
    (tmp_path / "sweep.log").symlink_to(private)
    state = SweepState.__new__(SweepState)
    state.out = tmp_path

    with pytest.raises(DataError, match="expected a plain file"):
        state.report("hello")
    assert private.read_text() == SECRET


@pytest.mark.parametrize("name", ["models", "lock", "store.sqlite", "models/start"])
def test_a_link_in_the_folder_of_a_label_studio_backend_is_refused(
    project: Path, private: Path, name: str
) -> None:
    link = project / name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(private.parent if "models" in name else private)

    with pytest.raises(DataError, match="expected a plain file"):
        backend(project).start()
    assert private.read_text() == SECRET


@pytest.mark.parametrize("harm", HARMFUL)
def test_a_label_studio_backend_refuses_anything_that_acts_by_itself(
    project: Path, harm: str
) -> None:
    HARMFUL[harm](project / "store.sqlite")

    with pytest.raises(StoreError, match="is not a store of seqmix"):
        backend(project).start()


@pytest.mark.parametrize("name", ["rounds", "model", "rounds/000"])
def test_old_models_of_a_run_are_removed_only_below_its_own_folders(
    tmp_path: Path, private: Path, name: str
) -> None:
    link = tmp_path / "run" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(private.parent)

    with pytest.raises(SeqMixError, match="expected a plain file"):
        loop.run(None, tmp_path / "run")  # type: ignore[arg-type]  it is refused before its plan is looked at


def test_annotate_refuses_a_project_with_links_in_one_line(
    project: Path, private: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "trainer.log").symlink_to(private)

    assert run(["annotate", str(project), "--port", "0", "--no-browser"]) == 2
    said = capfd.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1
    assert private.read_text() == SECRET
