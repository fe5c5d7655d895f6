"""Which servers a project has: several may share a store, and each is told of the others when it starts."""

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
_BEAT = 10.0  # seconds between two signs of life
_DEAD = 30.0  # … and after which a server that gave none is gone


@contextmanager
def known_server(store: Store, address: str) -> Iterator[list[str]]:
    """Be known as a server of this project until the block ends; where the others are."""
    name, ended = f"{socket.gethostname()} {os.getpid()} {address}", threading.Event()

    def beat() -> None:
        while not ended.wait(_BEAT):
            with suppress(StoreError):  # the next sign comes soon
                _change(store, name, address)

    others = _change(store, name, address)
    threading.Thread(target=beat, daemon=True).start()
    try:
        yield others
    finally:
        ended.set()
        with suppress(StoreError):
            _change(store, name, None)


def _change(store: Store, name: str, address: str | None) -> list[str]:
    """Note a server, or that it is gone (None); the addresses of the others."""
    with store.writing(durable=False):
        now = time.time()
        noted: dict[str, Any] = store.read_note(_NOTE) or {}
        others = {
            key: one for key, one in noted.items() if key != name and abs(now - one["at"]) < _DEAD
        }
        store.write_note(
            _NOTE, others if address is None else {**others, name: {"address": address, "at": now}}
        )
        return sorted(one["address"] for one in others.values())
