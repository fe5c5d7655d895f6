"""The servers of a project: several may share a store, and each finds the others."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from seqmix.errors import StoreError
from seqmix.serve.store.store import Store

_NOTE = "servers"
_BEAT = 10.0  # seconds between heartbeats
_DEAD = 30.0  # seconds without a heartbeat after which a server counts as gone


@contextmanager
def known_server(store: Store, address: str) -> Iterator[list[str]]:
    """Register a server until the block ends, and yield the addresses of the others."""
    name, ended = f"{socket.gethostname()} {os.getpid()} {address}", threading.Event()

    def beat() -> None:
        while not ended.wait(_BEAT):
            with suppress(StoreError):  # the next heartbeat comes soon
                _register(store, name, address)

    others = _register(store, name, address)
    threading.Thread(target=beat, daemon=True).start()
    try:
        yield others
    finally:
        ended.set()
        with suppress(StoreError):
            _register(store, name, None)


def _register(store: Store, name: str, address: str | None) -> list[str]:
    """Note the address of a server, or None when it has gone; return those of the others."""
    now = time.time()
    with store.writing(durable=False):
        servers: dict[str, Any] = store.read_note(_NOTE) or {}
        others = {
            key: server
            for key, server in servers.items()
            if key != name and abs(now - server["at"]) < _DEAD
        }
        this = {} if address is None else {name: {"address": address, "at": now}}
        store.write_note(_NOTE, others | this)
    return sorted(server["address"] for server in others.values())
