"""Connections of strangers: those that say nothing, half of something or no HTTP, and too many."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from seqmix.serve.labelstudio.app import create_app as create_backend_app
from seqmix.serve.web import http_server as connections
from seqmix.serve.web.http_server import Connections, QuietHandler, server
from tests.support.labelstudio_fakes import backend
from tests.support.waiting import until


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers at once, or with /body when the whole body is there."""
    if scope["type"] != "http":
        return
    if scope["path"] == "/body":
        while (message := await receive())["type"] == "http.request" and message.get("more_body"):
            pass
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def serving(
    most: int = 50, patience: float = 30.0, app: Any = application
) -> Iterator[tuple[int, Connections]]:
    connections = Connections(most, patience)
    running = server(app, 1, connections)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
        thread.start()
        until(lambda: running.started)
        try:
            yield port, connections
        finally:
            running.should_exit = True
            thread.join(10)


def line(port: int, said: bytes = b"") -> socket.socket:
    made = socket.create_connection(("127.0.0.1", port), timeout=20)
    made.sendall(said)
    return made


def heard(made: socket.socket) -> bytes:
    """All that comes until the other side hangs up."""
    parts = []
    try:
        while part := made.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def answered(made: socket.socket) -> None:
    said = b""
    while not said.endswith(b"ok"):
        part = made.recv(65536)
        assert part, f"it hung up after {said!r}"
        said += part


@pytest.mark.parametrize("said", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-a: "])
def test_a_connection_without_a_whole_request_is_closed_after_a_while(said: bytes) -> None:
    with serving(patience=0.05) as (port, connections), line(port, said) as made:
        assert heard(made) == b""
        until(lambda: not connections.waiting)


def test_the_time_for_headers_runs_for_each_request_and_trickling_bytes_do_not_stop_it() -> None:
    with (
        serving(patience=0.3) as (port, _),
        line(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n") as made,
    ):
        answered(made)
        made.sendall(b"GET / HTTP/1.1\r\nX: ")
        made.settimeout(0.02)
        for _ in range(500):
            try:
                made.sendall(b"a")
                if made.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except OSError:
                return
        raise AssertionError("it was never closed")


def test_a_body_that_takes_its_time_is_the_applications_to_wait_for() -> None:
    with (
        serving(patience=0.05) as (port, _),
        line(port, b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na") as made,
    ):
        threading.Event().wait(0.2)
        made.sendall(b"b")
        answered(made)


def test_a_body_that_nobody_reads_ends_the_connection() -> None:
    with (
        serving() as (port, _),
        line(
            port, b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
        ) as made,
    ):
        assert heard(made).endswith(b"ok")


def test_the_longest_waiting_goes_when_there_are_too_many_and_good_clients_are_answered() -> None:
    with (
        serving(most=20) as (port, connections),
        ExitStack() as lines,
        httpx.Client(base_url=f"http://127.0.0.1:{port}") as old,
    ):
        assert old.get("/").status_code == 200  # a line that stays open
        strangers = [lines.enter_context(line(port, b"GET / HTTP/1.1\r\nX: ")) for _ in range(60)]
        until(lambda: len(connections.waiting) <= 20)
        for _ in range(5):
            assert httpx.get(f"http://127.0.0.1:{port}/", timeout=20).status_code == 200
            assert old.get("/").status_code == 200
        assert heard(strangers[0]) == b""
        assert len(connections.waiting) <= 20


def test_idle_connections_go_when_nobody_waits() -> None:
    with serving(most=5) as (port, connections), ExitStack() as lines:
        for _ in range(20):
            made = lines.enter_context(line(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
            answered(made)
        assert len(connections.idle) <= 5


NO_HTTP = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    b"hello\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST /body HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 200_000,
)


@pytest.mark.parametrize("said", NO_HTTP, ids=range(len(NO_HTTP)))
def test_what_is_no_http_hears_one_sentence_and_is_not_worth_a_line(
    said: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving() as (port, _), line(port, said) as made:
        told = heard(made)
    head, _, body = told.partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 400 ") and b"nosniff" in head
    assert (
        b"server:" not in head.lower()
        and b"uvicorn" not in told.lower()
        and b"h11" not in told.lower()
    )
    assert json.loads(body) == {"error": "this is not a valid HTTP request"}
    assert capfd.readouterr().err == ""


def test_nonsense_after_an_answer_has_begun_ends_the_connection_quietly(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (
        serving() as (port, _),
        line(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n") as made,
    ):
        assert heard(made).startswith(b"HTTP/1.1 200")
    with (
        serving() as (port, _),
        line(
            port, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        ) as made,
    ):
        assert made.recv(65536).startswith(b"HTTP/1.1 200")
    assert capfd.readouterr().err == ""


def test_the_same_trouble_of_the_event_loop_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    loop, tell = asyncio.new_event_loop(), QuietHandler()
    full = {
        "message": "socket.accept() out of system resource",
        "exception": OSError(errno.EMFILE, "Too many open files"),
    }
    with caplog.at_level(logging.ERROR):
        for _ in range(100):
            tell(loop, full)
            tell(loop, {"message": "other", "exception": ValueError("x")})
    loop.close()

    assert [record.getMessage().splitlines()[0] for record in caplog.records] == [
        "no more connections can be accepted at the moment: Too many open files",
        "other",
    ]


def test_the_limit_stays_below_what_the_system_lets_us_open() -> None:
    most = server(application, 1).config.http.peers.most  # type: ignore[union-attr]

    assert 16 <= most <= connections.MOST_CONNECTIONS
    assert most + connections.BACKLOG < connections.open_file_limit()


def test_a_body_for_label_studio_that_does_not_arrive_is_given_up_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("seqmix.serve.labelstudio.app.PATIENCE", 0.05)
    head = (
        b"POST /setup HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    with serving(app=create_backend_app(backend(tmp_path))) as (port, _), line(port, head) as made:
        assert heard(made).startswith(b"HTTP/1.1 408 ")
