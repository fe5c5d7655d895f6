"""A project folder: whole or not there, opened only when it is what it says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, DataError, StoreError, TagError
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings, change_settings, check_tags, read_settings
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.queue import Rules
from seqmix.serve.store.sentences import read_audit_sentences, read_labeled, read_sentences
from seqmix.serve.store.store import open_store
from tests.support.postgres import wipe
from tests.support.stores import TAGS, count_sentences, unlabeled

SETTINGS = ProjectSettings("notes", TAGS)


def text(n: int = 20) -> list[Sentence]:
    return [Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(n)]


def listed(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_project_is_a_folder_with_settings_guidelines_and_a_store(tmp_path):
    made = create_project(tmp_path / "new" / "p", text(), SETTINGS, "Mark **names**.\n")

    assert listed(tmp_path / "new" / "p") == ["guidelines.md", "project.toml", "store.sqlite"]
    assert (made.pool, made.audit, made.labeled, made.text.new) == (20, 2, 0, 20)
    with open_project(tmp_path / "new" / "p") as project:
        assert project.settings == SETTINGS
        assert project.guidelines == "Mark **names**.\n"
        assert project.store.tags == TAGS
        assert project.rules == Rules(0.1, 0.0)
        assert project.models == tmp_path / "new" / "p" / "models"
        assert [s.id for s in read_sentences(project.store)] == [f"s:{i}" for i in range(20)]


def test_settings_come_back_as_they_were(tmp_path):
    given = ProjectSettings(
        "Ünïcode «notes» 😀",
        ("PER", "Ort-1", "組織"),
        None,
        "mnlp",
        0.25,
        True,
        0.5,
        20,
        "rtl",
        "bert",
        "crf",
        "spacy:en",
        "none",
        0.0,
        7,
        "web",
    )
    create_project(tmp_path / "p", text(), given)

    assert read_settings(tmp_path / "p") == given


def test_seed_labels_and_labels_in_the_text_are_kept_and_their_duplicates_not_asked_again(tmp_path):
    seeds = [
        Sentence("seed:1", ("Lena", "0", "left", "Oslo", "."), ("B-PER", "O", "O", "B-LOC", "O"))
    ]
    labeled = Sentence("own", ("Bo", "left"), ("B-PER", "O"))
    made = create_project(
        tmp_path / "p", [*text(5), labeled], SETTINGS, None, seeds, keep_labels=True
    )

    assert (made.pool, made.labeled, made.text.duplicates) == (4, 2, 1)
    with open_project(tmp_path / "p") as project:
        assert [s.id for s in read_labeled(project.store)] == ["seed:1", "own"]


def test_labels_in_the_text_are_dropped_unless_asked_for(tmp_path):
    create_project(tmp_path / "p", [Sentence("own", ("Bo", "left"), ("B-PER", "O"))], SETTINGS)

    with open_project(tmp_path / "p") as project:
        assert [s.id for s in unlabeled(project.store)] + [
            s.id for s in read_audit_sentences(project.store)
        ] == ["own"]


def test_an_existing_project_is_left_alone(tmp_path):
    create_project(tmp_path / "p", text(), SETTINGS)
    before = (tmp_path / "p" / "store.sqlite").read_bytes()

    with pytest.raises(StoreError, match="is already a project"):
        create_project(tmp_path / "p", text(3), SETTINGS)
    assert (tmp_path / "p" / "store.sqlite").read_bytes() == before


@pytest.mark.parametrize("name", ["store.sqlite", "models"])
def test_a_folder_with_files_of_the_same_names_is_left_alone(tmp_path, name):
    (tmp_path / "p" / name).mkdir(parents=True)

    with pytest.raises(StoreError, match=f"holds a {name} without a project"):
        create_project(tmp_path / "p", text(), SETTINGS)
    assert listed(tmp_path / "p") == [name]


def test_a_folder_with_other_files_may_become_a_project(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "guidelines.md").write_text("mine")
    monkeypatch.chdir(tmp_path)
    create_project(Path(), text(), SETTINGS)

    assert listed(tmp_path) == ["guidelines.md", "notes.txt", "project.toml", "store.sqlite"]
    with open_project(Path()) as project:
        assert project.guidelines == "mine"


def test_other_guidelines_are_not_written_over(tmp_path):
    (tmp_path / "guidelines.md").write_text("mine")

    with pytest.raises(StoreError, match=r"guidelines\.md"):
        create_project(tmp_path, text(), SETTINGS, "other")
    create_project(tmp_path, text(), SETTINGS, "mine")


@pytest.mark.parametrize("given", [[], [Sentence.from_text(" ", "a")]])
def test_text_without_a_sentence_makes_no_project(tmp_path, given):
    with pytest.raises(DataError, match="nothing to label"):
        create_project(tmp_path / "new" / "p", given, SETTINGS)

    assert listed(tmp_path) == []


def test_text_that_breaks_off_makes_no_project(url, tmp_path):
    def broken():
        yield from text(700)
        raise DataError("broken", "notes.jsonl", 701)

    remote = url if isinstance(url, str) else None
    with pytest.raises(DataError, match=r"notes\.jsonl:701: broken"):
        create_project(tmp_path / "p", broken(), ProjectSettings("notes", TAGS, remote))

    assert not (tmp_path / "p").exists()
    create_project(
        tmp_path / "p", text(), ProjectSettings("notes", TAGS, remote)
    )  # nothing stands in the way of a second try


KILLED = """
import os, signal, sys
from pathlib import Path
from seqmix.data.sentence import Sentence
from seqmix.serve.project import create_project
from seqmix.serve.settings import ProjectSettings
def text():
    for i in range(2000):
        yield Sentence.from_text(f"Lena {i}", f"s:{i}")
        if i == 1500:
            os.kill(os.getpid(), signal.SIGKILL)
settings = ProjectSettings("notes", ("PER", "LOC"), sys.argv[2] or None)
create_project(Path(sys.argv[1]), text(), settings)
"""


def test_a_kill_while_it_is_made_stands_in_the_way_of_nothing(url, tmp_path):
    remote = url if isinstance(url, str) else ""
    ended = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "p", remote], check=False)
    assert ended.returncode == -9

    with pytest.raises(StoreError, match="seqmix init creates one"):
        open_project(tmp_path / "p")
    create_project(tmp_path / "p", text(), ProjectSettings("notes", TAGS, remote or None))
    with open_project(tmp_path / "p") as project:
        assert count_sentences(project.store) == 20


def test_a_team_keeps_its_store_in_postgresql_and_a_password_is_for_the_owner_only(
    database, tmp_path
):
    wipe(database)
    url = database.replace("postgres@", "postgres:secret@")
    create_project(tmp_path / "p", text(), ProjectSettings("notes", TAGS, url))

    assert listed(tmp_path / "p") == ["project.toml"]
    assert (tmp_path / "p" / "project.toml").stat().st_mode & 0o777 == 0o600
    with open_project(tmp_path / "p") as project:
        assert count_sentences(project.store) == 20
        assert "secret" not in project.store.place
    with pytest.raises(StoreError, match="already holds a project"):
        create_project(tmp_path / "q", text(), ProjectSettings("notes", TAGS, url))
    assert listed(tmp_path) == ["p"]
    change_settings(tmp_path / "p", batch=5)
    assert (tmp_path / "p" / "project.toml").stat().st_mode & 0o777 == 0o600


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("x")

    with pytest.raises(DataError, match="cannot write here"):
        create_project(tmp_path / "file" / "p", text(), SETTINGS)


def test_a_folder_without_settings_is_no_project(tmp_path):
    with pytest.raises(StoreError, match="seqmix init creates one"):
        open_project(tmp_path)


def test_a_project_without_its_store_says_so(tmp_path):
    create_project(tmp_path / "p", text(), SETTINGS)
    (tmp_path / "p" / "store.sqlite").unlink()

    with pytest.raises(StoreError, match="is incomplete"):
        open_project(tmp_path / "p")
    assert not (tmp_path / "p" / "store.sqlite").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("format_version = 2", "upgrade seqmix"),
        ('format_version = "1"', "format_version"),
        ("colour = 1", "colour: there is no such key; there are name, tags"),
        ('batch = "ten"', "batch must be a whole number; got 'ten'"),
        ("batch = true", "batch must be a whole number; got True"),
        ("batch = 0", "batch must be at least 1; got 0"),
        ("audit_share = 1.5", "audit_share must be at most 0.9; got 1.5"),
        ("overlap_share = -0.1", "overlap_share must be at least 0; got -0.1"),
        ('direction = "up"', "direction must be 'auto', 'ltr' or 'rtl'; got 'up'"),
        ('tags = ["PER", "LOC", "PER"]', "named twice"),
        ("tags = [1]", "tags must be text; got 1"),
        ('name = ""', "name of a project"),
        ("what", "project.toml"),
    ],
)
def test_settings_that_make_no_sense_are_one_line_that_names_the_file(tmp_path, line, message):
    create_project(tmp_path / "p", text(), SETTINGS)
    path = tmp_path / "p" / "project.toml"
    key = line.split(" =")[0]
    kept = [own for own in path.read_text().splitlines() if not own.startswith(f"{key} =")]
    path.write_text("\n".join([*kept, line]))

    with pytest.raises(ConfigError, match=message) as error:
        open_project(tmp_path / "p")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_tags_can_be_added_but_not_taken_away(tmp_path):
    create_project(tmp_path / "p", text(), SETTINGS)
    change_settings(tmp_path / "p", tags=(*TAGS, "ORG"))
    with open_project(tmp_path / "p") as project:
        assert project.store.tags == ("PER", "LOC", "ORG")
        add_annotator(project.store, "anna")
        save_answer(project.store, "s:1", 1, "label", [(0, 1, "ORG")])

    change_settings(tmp_path / "p", tags=TAGS)
    with pytest.raises(
        ConfigError,
        match="the tag 'ORG' is missing; put it back, and seqmix project FOLDER tag retire ORG",
    ):
        open_project(tmp_path / "p")


def test_settings_are_checked_before_they_are_written(tmp_path):
    create_project(tmp_path / "p", text(), SETTINGS)
    with pytest.raises(ConfigError):
        change_settings(tmp_path / "p", overlap_share=2.0)

    assert read_settings(tmp_path / "p") == SETTINGS


@pytest.mark.parametrize(
    "tags",
    [
        (),
        ("",),
        ("A B",),
        ("A\tB",),
        ("O",),
        ("_",),
        ("A", "A"),
        ("B-PER",),
        ("x" * 65,),
        ("a\u202eb",),
    ],
)
def test_tags_that_cannot_be_used_are_refused(tags):
    with pytest.raises(TagError):
        check_tags(tags)


def test_thirty_five_tags_are_as_many_as_there_are_keys():
    check_tags([f"T{i}" for i in range(35)])
    with pytest.raises(TagError, match="at most 35 tags, since each has a key; found 36"):
        check_tags([f"T{i}" for i in range(36)])


def test_the_store_of_a_project_can_be_opened_twice(tmp_path):
    create_project(tmp_path / "p", text(), SETTINGS)
    with open_project(tmp_path / "p") as project, open_project(tmp_path / "p") as again:
        add_annotator(project.store, "anna")

        assert find_annotator(again.store, "anna") is not None


def test_the_serving_parts_without_a_model_load_no_torch():
    code = (
        "import sys, seqmix.serve.project, seqmix.serve.progress.estimates; "
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False, env=os.environ).returncode == 0


def test_a_store_may_be_opened_by_its_url_alone(database, tmp_path):
    wipe(database)
    create_project(tmp_path / "p", text(), ProjectSettings("notes", TAGS, database))

    with open_store(database) as store:
        assert store.tags == TAGS


def test_what_a_new_project_holds_is_for_its_owner_only(tmp_path):
    (tmp_path / "there").mkdir(mode=0o755)
    for name in ("new", "there"):
        create_project(tmp_path / name, text(), SETTINGS)
        with open_project(tmp_path / name) as project:
            add_annotator(project.store, "anna")
            modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / name).iterdir()}
        assert modes.keys() >= {"store.sqlite", "store.sqlite-wal", "project.toml"}
        assert set(modes.values()) == {0o600}
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "there").stat().st_mode & 0o777 == 0o755  # it is not ours


KILLED_AT = """
import os, signal, sys
from pathlib import Path
from seqmix.data.sentence import Sentence
from seqmix.serve import project
from seqmix.serve.store.store import Store
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[3] == "settings":
    project.write_settings = die
elif sys.argv[3] == "commit":  # of PostgreSQL, when the folder is in its place
    place = project.building
    from contextlib import contextmanager
    @contextmanager
    def placed(*given):
        with place(*given) as part:
            yield part
        die()
    project.building = placed
settings = project.ProjectSettings("notes", ("PER", "LOC"), sys.argv[2] or None)
sentences = (Sentence.from_text(f"Lena {i}", f"s:{i}") for i in range(20))
project.create_project(Path(sys.argv[1]), sentences, settings, "Mark names.")
"""


@pytest.mark.parametrize(("at", "there"), [("settings", False), ("commit", True)])
def test_a_kill_at_the_end_of_init_stands_in_the_way_of_nothing(url, tmp_path, at, there):
    remote, folder = url if isinstance(url, str) else "", tmp_path / "p"
    if there:
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    ended = subprocess.run([sys.executable, "-c", KILLED_AT, folder, remote, at], check=False)
    assert ended.returncode == -9

    if remote or at == "settings":
        with pytest.raises(StoreError, match="seqmix init creates one"):
            open_project(folder)
        create_project(
            folder, text(), ProjectSettings("notes", TAGS, remote or None), "Mark names."
        )
    with open_project(folder) as project:
        assert count_sentences(project.store) == 20
    assert listed(folder) == sorted(
        {
            "guidelines.md",
            "project.toml",
            *(["notes.txt"] if there else []),
            *(["store.sqlite"] if not remote else []),
        }
    )
    assert listed(tmp_path) == ["p"]


def test_files_of_a_killed_init_are_told_from_the_users_own(tmp_path):
    create_project(tmp_path / "whole", text(), SETTINGS)
    (tmp_path / "p" / ".init.part").mkdir(parents=True)
    (tmp_path / "p" / ".init.part" / "moving").write_text("store.sqlite\nproject.toml\n")
    (tmp_path / "p" / ".init.part" / "project.toml").write_text("")
    (tmp_path / "p" / "store.sqlite").write_bytes(
        (tmp_path / "whole" / "store.sqlite").read_bytes()
    )
    (tmp_path / "p" / "guidelines.md").write_text("mine")
    create_project(tmp_path / "p", text(5), SETTINGS)

    with open_project(tmp_path / "p") as project:
        assert count_sentences(project.store) == 5
        assert project.guidelines == "mine"
    assert not (tmp_path / "p" / ".init.part").exists()


def test_a_commit_that_fails_leaves_no_folder(database, tmp_path):
    wipe(database)

    def fail(conn):
        assert (tmp_path / "p" / "project.toml").exists()
        raise StoreError("the connection is gone")

    event.listen(Engine, "commit", fail)
    try:
        with pytest.raises(StoreError, match="connection is gone"):
            create_project(
                tmp_path / "p", text(), ProjectSettings("notes", TAGS, database), "Mark names."
            )
    finally:
        event.remove(Engine, "commit", fail)
    assert listed(tmp_path) == []
    create_project(tmp_path / "p", text(), ProjectSettings("notes", TAGS, database))
