"""A PostgreSQL of our own: in a temporary folder, on loopback, gone when the tests are done."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import URL

_USER = "postgres"  # the server refuses to run as root


@contextmanager
def server() -> Iterator[str]:
    """The URL of a running server without a database; skips with a reason where none can start."""
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        pytest.skip("PostgreSQL is not installed: initdb and pg_ctl are not on the PATH")
    pytest.importorskip(
        "psycopg", reason="psycopg is not installed: pip install 'seqmix[postgres]'"
    )
    user = _unprivileged()
    folder = Path(
        tempfile.mkdtemp(prefix="seqmix-pg-")
    )  # subtle: pytest's own folders are closed to other users
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        _run(
            user,
            "initdb",
            "-D",
            folder / "data",
            "-U",
            _USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        )
        options = (
            f"-c listen_addresses=127.0.0.1 -p {port} -k {folder} "
            "-c fsync=off -c max_connections=200"
        )
        _run(
            user,
            "pg_ctl",
            "-D",
            folder / "data",
            "-w",
            "-o",
            options,
            "-l",
            folder / "log",
            "start",
        )
        try:
            yield f"postgresql://{_USER}@127.0.0.1:{port}"
        finally:
            _run(user, "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(url: str, name: str) -> str:
    """The URL of a new, empty database on the server."""
    import psycopg

    with psycopg.connect(f"{url}/postgres", autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE "{name}"')
    return f"{url}/{name}"


def wipe(url: str | URL) -> None:
    """Empty a database: quicker than a new one."""
    if not isinstance(url, str):
        for end in ("", "-wal", "-shm"):
            Path(f"{url.database}{end}").unlink(missing_ok=True)
        return
    import psycopg

    hang_up(url)  # on a test that failed, and holds locks
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("DROP SCHEMA public CASCADE")
        conn.execute("CREATE SCHEMA public")


def hang_up(url: str) -> None:
    """End every connection to a database, as a restart of the server does."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as conn:
        others = (
            "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        conn.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}")


def _unprivileged() -> str | None:
    """The user to run the server as; None for the one we are."""
    if os.geteuid() != 0:
        return None
    try:
        pwd.getpwnam(_USER)
    except KeyError:
        pytest.skip(f"PostgreSQL does not run as root, and there is no user {_USER!r}")
    return _USER


def _run(user: str | None, *command: object) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        user=user,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    if done.returncode:
        pytest.skip(f"PostgreSQL cannot be started: {(done.stderr or done.stdout).strip()[-300:]}")
