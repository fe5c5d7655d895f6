"""One request to an endpoint, limited in time and size; no redirect or proxy is followed."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from seqmix.errors import SeqMixError
from seqmix.serve.sources.llm.endpoint import Endpoint, key_for

PATIENCE = 120.0  # seconds for a response, all of it
_LARGEST = 1_000_000  # bytes of a response


class EndpointError(SeqMixError):
    """An endpoint does not answer, or refuses; `status` is 0 without a response."""

    def __init__(self, why: str, status: int = 0, wait: float = 0.0) -> None:
        super().__init__(why)
        self.status, self.wait = status, wait  # seconds, if it says how long


@dataclass(frozen=True)
class Response:
    """What an endpoint said."""

    value: Any
    tokens: int | None  # used, if it says so


def ask(endpoint: Endpoint, request: Mapping[str, Any], patience: float = PATIENCE) -> Response:
    """Send a request and return the response."""
    parts = urlsplit(endpoint.url)
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if (key := key_for(endpoint.origin)) is not None:
        headers["Authorization"] = f"Bearer {key}"
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=patience)
    late, opened = threading.Event(), list[socket.socket]()

    def give_up() -> None:  # subtle: a timeout of the socket begins again with every byte
        late.set()
        with suppress(OSError, IndexError):
            opened[0].shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(patience, give_up)
    timer.start()
    try:
        connection.connect()
        opened.append(connection.sock)
        path = f"{parts.path.rstrip('/')}/chat/completions"
        connection.request("POST", path, json.dumps(request).encode(), headers)
        response = connection.getresponse()
        content = response.read(_LARGEST + 1)
        status, wait = response.status, response.getheader("Retry-After") or ""
    except (OSError, HTTPException, ValueError) as error:
        why = f"no response within {patience:g} seconds" if late.is_set() else type(error).__name__
        raise EndpointError(f"{endpoint.origin} does not answer: {why}") from None
    finally:
        timer.cancel()
        connection.close()
    if late.is_set():
        raise EndpointError(f"{endpoint.origin} does not answer: it took over {patience:g} seconds")
    if status != 200:
        seconds = float(wait) if wait.isdecimal() and len(wait) < 5 else 0.0
        raise EndpointError(f"{endpoint.origin} refuses with status {status}", status, seconds)
    if len(content) > _LARGEST:
        raise EndpointError(f"{endpoint.origin} sent more than {_LARGEST:,} bytes", status)
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise EndpointError(f"{endpoint.origin} did not send JSON", status) from None
    return Response(value, _tokens(value))


def _tokens(value: Any) -> int | None:
    usage = value.get("usage") if isinstance(value, dict) else None
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if type(total) is int and 0 < total < 10**7 else None
