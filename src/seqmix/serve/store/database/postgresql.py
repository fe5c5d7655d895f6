"""PostgreSQL: which URLs may name a store, which hosts get a password, and how long writers wait.

project.toml may come from a stranger, so a database is used only after this user allowed it: with
`init --store`, `seqmix project FOLDER trust` or SEQMIX_TRUST_STORE. The allowed ones are listed in
known_databases in the user's configuration folder.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError

from seqmix.data.files import make_folder, open_plain
from seqmix.errors import ConfigError, DataError, StoreError

TRUST = "SEQMIX_TRUST_STORE"
_DRIVERS = ("postgresql", "postgres", "postgresql+psycopg")
_OPTIONS = {  # none of these reads or writes a file
    "host",
    "port",
    "sslmode",
    "sslrootcert",
    "application_name",
    "target_session_attrs",
    "connect_timeout",
}
_LOCK = 0x5E91  # the advisory lock that makes writers of a database take turns
LOCK_WAIT = 30_000  # milliseconds after which waiting for a turn fails
IDLE_WAIT = 15_000  # milliseconds after which an idle transaction is ended
_REQUIRES_AUTH = 160_000  # the libpq that can refuse ways to send a password


def check_url(url: str) -> None:
    """Refuse a file, any other driver, and options that read or write files."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigError("store must be postgresql://user@host/database; found no URL") from None
    if parsed.drivername not in _DRIVERS:
        raise ConfigError(
            "store must be postgresql://user@host/database, or left out to use a file in the"
            f" project; found {parsed.drivername}:"
        )
    if unknown := sorted(set(parsed.query) - _OPTIONS):
        raise ConfigError(
            f"store may have the options {', '.join(sorted(_OPTIONS))}; found {unknown[0]!r}"
        )
    if any(c.isspace() or not c.isprintable() for c in host_and_port(url)):
        raise ConfigError("store must name a host without white space")


def host_and_port(url: str) -> str:
    """Return the host and port that a URL leads to, such as db.example:5432."""
    parsed = make_url(url)
    parts = []
    for key, value, default in (("host", parsed.host, "local"), ("port", parsed.port, "5432")):
        option = parsed.query.get(key, ())
        values = [
            *((str(value),) if value else ()),
            *((option,) if isinstance(option, str) else option),
        ]
        parts.append(",".join(values).lower() or default)
    return ":".join(parts)


def need_trust(url: str, folder: Path) -> None:
    """Refuse a database that this user has not allowed: a password could go to a stranger."""
    place = host_and_port(url)
    if place in os.environ.get(TRUST, "").split():
        return
    with suppress(FileNotFoundError), open_plain(_known_databases(), "rb") as file:
        if place in file.read().decode("utf-8", "replace").split("\n"):
            return
    raise StoreError(
        f"{folder} has its store at {place}, a database you have not used before;"
        f" if you know it, run: seqmix project {folder} trust (or set {TRUST}={place})"
    )


def trust(url: str) -> None:
    """Allow a database for this user."""
    try:
        with suppress(StoreError):
            need_trust(url, Path())
            return
        make_folder(_known_databases().parent)
        with open_plain(_known_databases(), "ab", 0o600) as file:
            file.write(f"{host_and_port(url)}\n".encode())
    except OSError as error:
        raise DataError(
            f"cannot note that you know this database: {error.strerror};"
            f" set {TRUST}={host_and_port(url)} instead",
            _known_databases(),
        ) from error


def _known_databases() -> Path:
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return folder / "seqmix" / "known_databases"


def connect_args(url: URL) -> dict[str, Any]:
    """Return how to reach a server.

    A password from the environment or a password file is not sent in the clear, nor as MD5.
    """
    import psycopg

    args: dict[str, Any] = {
        "connect_timeout": 10,
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": LOCK_WAIT,
    }
    if (
        url.password is None
        and "PGREQUIREAUTH" not in os.environ
        and psycopg.pq.version() >= _REQUIRES_AUTH
    ):
        args["require_auth"] = "!password,!md5"
    return args


def on_connect(new: bool, dbapi: Any, _: object) -> None:
    """Make commits durable, and limit how long a frozen server can stop the others."""
    limits = {"lock_timeout": LOCK_WAIT}
    if not new:
        limits["idle_in_transaction_session_timeout"] = IDLE_WAIT
    with dbapi.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        for name, milliseconds in limits.items():
            cursor.execute("SELECT set_config(%s, %s, false)", (name, str(milliseconds)))
    dbapi.commit()


def on_begin(conn: Connection) -> None:
    """Let writers wait for their turn at the start of a transaction."""
    writes = conn.get_execution_options().get("seqmix_writes")
    if writes:
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if writes != "durable":
            conn.exec_driver_sql("SET LOCAL synchronous_commit = off")
