"""Databases of other people: which a project may name, who gets a password, and a frozen server."""

from __future__ import annotations

import socket
import sqlite3
import struct
import threading
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError, StoreError
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings, read_settings
from seqmix.serve.store.database import postgresql as remote
from seqmix.serve.store.store import create_store, open_store
from tests.support.postgres import wipe
from tests.support.stores import TAGS


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A user who knows no database."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "seqmix" / "known_databases"


def sent(folder: Path, store: str) -> Path:
    """A project folder of a stranger."""
    folder.mkdir()
    (folder / "project.toml").write_text(
        f'format_version = 1\nname = "n"\ntags = ["PER"]\nstore = "{store}"\n'
    )
    return folder


@pytest.mark.parametrize(
    "store",
    [
        "sqlite:///{home}/cookies.sqlite",
        "sqlite:///:memory:",
        "sqlite://",
        "{home}/cookies.sqlite",
        "mysql://a@b/c",
        "postgresql+psycopg2://a@b/c",
        "postgresql://a@b/c?passfile=/home/me/.pgpass",
        "postgresql://a@b/c?service=mine",
        "postgresql://a@b/c?sslkey=/home/me/key",
        "postgresql://a@b/c?options=-csearch_path%3Dx",
        "postgresql://a@b/d?host=b%0Ac",
    ],
)
def test_a_project_names_its_own_file_or_postgresql_and_nothing_that_reads_files(tmp_path, store):
    with sqlite3.connect(tmp_path / "cookies.sqlite") as db:
        db.execute("CREATE TABLE cookies (name)")
    db.close()
    before = (tmp_path / "cookies.sqlite").read_bytes()
    folder = sent(tmp_path / "p", store.format(home=tmp_path))

    with pytest.raises(ConfigError, match=r"project\.toml: store m"):
        open_project(folder)
    assert (tmp_path / "cookies.sqlite").read_bytes() == before


def test_a_file_that_is_no_store_keeps_its_journal_mode(tmp_path):
    create_project(
        tmp_path / "p", [Sentence.from_text("Lena left", "a")], ProjectSettings("n", TAGS)
    )
    (tmp_path / "p" / "store.sqlite").unlink()
    with sqlite3.connect(tmp_path / "p" / "store.sqlite") as db:
        db.execute("CREATE TABLE cookies (name)")
    db.close()

    with pytest.raises(StoreError, match="is not a store of seqmix"):
        open_project(tmp_path / "p")
    with sqlite3.connect(tmp_path / "p" / "store.sqlite") as db:
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    db.close()


class Fake:
    """Somebody who listens where a database could be, and asks for a password in the clear."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                line, _ = self.listener.accept()
                with line:
                    line.settimeout(5)
                    self.heard.append(line.recv(struct.unpack(">I", line.recv(4))[0] - 4))
                    line.sendall(b"R" + struct.pack(">II", 8, 3))
                    self.heard.append(line.recv(1000))
            except OSError:
                return


@pytest.fixture
def fake():
    found = Fake()
    yield found
    found.listener.close()


def test_a_new_database_is_not_even_asked_and_a_trusted_one_gets_no_password_in_the_clear(
    tmp_path, home, fake, monkeypatch, capfd
):
    monkeypatch.setenv("PGPASSWORD", "my-real-db-password")
    folder = sent(tmp_path / "p", f"postgresql://victim@127.0.0.1:{fake.port}/db?sslmode=disable")

    for command in (
        ["info", str(folder)],
        ["project", str(folder)],
        ["export", str(folder), "--out", str(tmp_path / "x.conll")],
    ):
        assert run(command) == 2
        said = capfd.readouterr().err
        assert (
            said.count("\n") == 1
            and f"127.0.0.1:{fake.port}" in said
            and f"seqmix project {folder} trust" in said
        )
    assert fake.heard == []

    assert run(["project", str(folder), "trust"]) == 0
    assert home.read_text() == f"127.0.0.1:{fake.port}\n" and home.stat().st_mode & 0o777 == 0o600
    assert run(["info", str(folder)]) == 2
    assert fake.heard and b"my-real-db-password" not in b"".join(fake.heard)


def test_the_environment_can_say_that_a_database_is_known(tmp_path, home, monkeypatch):
    with pytest.raises(StoreError, match="not used before"):
        remote.need_trust("postgresql://a@DB.example/x", tmp_path)
    monkeypatch.setenv("SEQMIX_TRUST_STORE", "other:1 db.example:5432")
    remote.need_trust("postgresql://a@DB.example/x", tmp_path)
    with pytest.raises(StoreError, match=r"db\.example,evil:5432"):
        remote.need_trust("postgresql://a@db.example/x?host=evil", tmp_path)


def test_a_database_named_to_init_is_known_from_then_on(database, tmp_path, home):
    wipe(database)
    create_project(
        tmp_path / "p", [Sentence.from_text("Lena left", "a")], ProjectSettings("n", TAGS, database)
    )
    assert home.read_text() == f"{remote.host_and_port(database)}\n"
    remote.trust(database)
    assert home.read_text().count("\n") == 1
    open_project(tmp_path / "p").close()
    assert read_settings(tmp_path / "p").store == database

    home.unlink()
    with pytest.raises(StoreError, match="a database you have not used before"):
        open_project(tmp_path / "p")


def test_a_server_that_is_frozen_in_the_middle_of_a_turn_loses_it(database, monkeypatch):
    wipe(database)
    create_store(database, TAGS).close()
    monkeypatch.setattr(remote, "IDLE_WAIT", 100)
    with open_store(database) as frozen, open_store(database) as other:
        with pytest.raises(StoreError), frozen.writing() as conn:
            other.write_note(
                "x", 1
            )  # waits for the turn, which ends when the first one has said nothing for too long
            conn.exec_driver_sql("SELECT 1")
        assert other.read_note("x") == 1
        frozen.write_note("x", 2)  # thawed, it goes on
        assert other.read_note("x") == 2


def test_a_wait_for_a_turn_is_given_up_after_a_while(database, monkeypatch):
    wipe(database)
    create_store(database, TAGS).close()
    with open_store(database) as busy:
        monkeypatch.setattr(remote, "LOCK_WAIT", 100)
        with (
            open_store(database) as other,
            busy.writing(),
            pytest.raises(StoreError, match="lock timeout"),
        ):
            other.write_note("x", 1)


def test_lost_connections_are_noticed_in_seconds(database):
    with open_store(database) as store, store.reading() as conn:
        given = conn.connection.driver_connection.info.get_parameters()
    assert given["keepalives_idle"] == "10" and given["tcp_user_timeout"] == "30000"
