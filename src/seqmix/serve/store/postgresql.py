"""A store in PostgreSQL: which URLs may name one, whom we send a password to, and how long we wait for each other.

project.toml may come from a stranger, so a database is used only where this user has said so before: with `init --store`, with
`seqmix project --trust`, or with SEQMIX_TRUST_STORE. Which ones is kept in known_databases in the user's folder for settings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from seqmix.data.files import make_folder
from seqmix.data.plain_files import open_plain
from seqmix.errors import ConfigError, DataError, StoreError

TRUST = "SEQMIX_TRUST_STORE"
_DRIVERS = ("postgresql", "postgres", "postgresql+psycopg")
_OPTIONS = {
    "host",
    "port",
    "sslmode",
    "sslrootcert",
    "application_name",
    "target_session_attrs",
    "connect_timeout",
}  # these reach no file
_LOCK = 0x5E91  # writers of one database take turns by this number, as SQLite's do by itself
_TURN, _SILENT = (
    30_000,
    15_000,
)  # milliseconds: a wait for a turn is given up, a transaction that says nothing is ended
_REQUIRES_AUTH = 160_000  # libpq that can refuse ways to send a password


def check_url(url: str) -> None:
    """Refuse what is no database of a project: any file, any other driver, options that read or write files."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigError("store must be postgresql://user@host/database; found no URL") from None
    if parsed.drivername not in _DRIVERS:
        raise ConfigError(
            f"store must be postgresql://user@host/database, or left out for a file of its own; found {parsed.drivername}:"
        )
    if other := sorted(set(parsed.query) - _OPTIONS):
        raise ConfigError(
            f"store may have the options {', '.join(sorted(_OPTIONS))}; found {other[0]!r}"
        )
    if any(c.isspace() or not c.isprintable() for c in place(url)):
        raise ConfigError("store must name a host without white space")


def place(url: str) -> str:
    """Whom a URL has us talk to: host and port."""
    parsed = make_url(url)
    parts = []
    for key, given, usual in (("host", parsed.host, "local"), ("port", parsed.port, "5432")):
        named = parsed.query.get(key, ())
        every = [
            *((str(given),) if given else ()),
            *((named,) if isinstance(named, str) else named),
        ]
        parts.append(",".join(every).lower() or usual)
    return ":".join(parts)


def need_trust(url: str, folder: Path) -> None:
    """Refuse a database that this user has not used before: a password could go to a stranger."""
    wanted = place(url)
    if wanted in os.environ.get(TRUST, "").split():
        return
    with suppress(FileNotFoundError), open_plain(_known(), "rb") as file:
        if wanted in file.read().decode("utf-8", "replace").split("\n"):
            return
    raise StoreError(
        f"{folder} has its store at {wanted}, a database you have not used before; if you know it, say so with: "
        f"seqmix project {folder} --trust (or {TRUST}={wanted})"
    )


def trust(url: str) -> None:
    """Note that this user knows a database."""
    try:
        with suppress(StoreError):
            need_trust(url, Path())
            return
        make_folder(_known().parent)
        with open_plain(_known(), "ab", 0o600) as file:
            file.write(f"{place(url)}\n".encode())
    except OSError as error:
        raise DataError(
            f"cannot note that you know this database: {error.strerror}; set {TRUST}={place(url)} instead",
            _known(),
        ) from error


def connect_args(url: URL) -> dict[str, Any]:
    """How to reach a server. subtle: a password from the environment or a password file is not sent in the clear, nor as MD5."""
    import psycopg

    found: dict[str, Any] = {
        "connect_timeout": 10,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
    }
    found["tcp_user_timeout"] = _TURN
    if (
        url.password is None
        and "PGREQUIREAUTH" not in os.environ
        and psycopg.pq.version() >= _REQUIRES_AUTH
    ):
        found["require_auth"] = "!password,!md5"
    return found


def on_connect(new: bool, dbapi: Any, _: object) -> None:
    """A server set to lose the last answers in a power cut is told not to; one of us that is frozen must not stop the others for long."""
    limits: Mapping[str, int] = {
        "lock_timeout": _TURN,
        **({} if new else {"idle_in_transaction_session_timeout": _SILENT}),
    }
    with dbapi.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        for name, milliseconds in limits.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, str(milliseconds)))
    dbapi.commit()


def on_begin(conn: Connection) -> None:
    """Writers wait for their turn at the start."""
    writes = conn.get_execution_options().get("seqmix_writes")
    if writes:
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if writes != "durable":
            conn.exec_driver_sql("SET LOCAL synchronous_commit = off")


def _known() -> Path:
    return (
        Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        / "seqmix"
        / "known_databases"
    )
