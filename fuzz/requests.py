"""Target: the server, asked in the same process; and the same request by a stranger."""

from __future__ import annotations

import asyncio
import json
import secrets
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fuzz.readers import gazette
from fuzz.target import Finding, Target
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.app import create_app
from seqmix.serve.web.security import Limits

_HOST = b"127.0.0.1:8765"
_ANNOTATION = {
    "id": "g:0",
    "version": 0,
    "spans": [{"start": 0, "end": 1, "tag": "PER"}],
    "sure": [[0, 2]],
    "seconds": 1.5,
}
_SEEDS: tuple[tuple[str, Any], ...] = (
    ("POST /api/annotations", _ANNOTATION),
    ("POST /api/adjudications", {"id": "g:1", "version": 0, "spans": []}),
    ("POST /api/reviews/keep", {"id": "g:1", "seq": 1, "keep": True}),
    ("POST /api/reviews/mend", {"id": "g:1", "seq": None, "version": 0, "spans": []}),
    ("GET /api/same?id=g:0&start=0&end=1&tag=PER", None),
    ("POST /api/same", {"id": "g:0", "start": 0, "end": 1, "tag": "PER", "endings": True}),
    ("POST /api/batches/1/undo", {}),
    ("POST /api/comments", {"id": "g:0", "text": "a name?"}),
    ("POST /api/comments/1/resolved", {"resolved": True}),
    ("GET /api/comments/g:0", None),
    ("POST /api/tags/preview", {"kind": "rename", "tag": "PER", "into": ["A"]}),
    ("POST /api/tags", {"kind": "split", "tag": "LOC", "into": ["A", "B"], "newest": 0}),
    ("GET /api/tags?since=0", None),
    ("POST /api/skip", {"id": "g:2", "version": 0, "seconds": 0}),
    ("POST /api/undo", {"seq": 1}),
    ("POST /api/generated/x/veto", {"veto": True}),
    ("POST /api/annotators", {"name": "Bo"}),
    ("GET /api/sentences/g:0", None),
    ("GET /api/neighbors/g:3", None),
    ("GET /api/generated?offset=0&limit=5", None),
    ("GET /api/export?format=conll", None),
    ("GET /api/next", None),
    ("GET /api/status", None),
    ("GET /api/conflicts", None),
    ("GET /index.html", None),
    ("GET /login?token=aaaaaaaaaaaaaaaaaaaaaaaaaa", None),
)


def targets() -> list[Target]:
    """The server's interface."""
    return [Target("api", _ask, lambda: [_spelled(line, body) for line, body in _SEEDS], 0.2)]


def _spelled(line: str, body: Any) -> bytes:
    return f"{line}\n\n{'' if body is None else json.dumps(body)}".encode()


def _ask(data: bytes, folder: Path) -> None:
    """One request: whoever has a token never gets a 5xx, and a stranger always gets 401."""
    line, headers, body = _request(data)
    if b"authorization" not in headers:
        status, _ = _server().answer(line, headers, body)
        if status != 401:
            raise Finding(f"a stranger was answered with {status}: {line!a}")
    status, said = _server().answer(
        line, {**headers, b"authorization": b"Bearer " + _server().token}, body
    )
    if status >= 500:
        raise Finding(f"{status} to {line!a}: {said[:200]!a}")
    if status >= 400 and not isinstance(json.loads(said).get("error"), str):
        raise Finding(f"{status} without a sentence: {said[:200]!a}")


def _request(data: bytes) -> tuple[bytes, dict[bytes, bytes], bytes]:
    """A request line, headers as HTTP has them, the body; what no server passes on is mended."""
    head, _, body = data.partition(b"\n\n")
    line, *rest = head.split(b"\n")
    headers = {b"host": _HOST, b"content-type": b"application/json"}
    for row in rest[:20]:
        name, _, value = row.partition(b":")
        headers[name.strip().lower()] = value.strip()
    return line, headers, body


async def asked(
    app: Any, line: bytes, headers: Mapping[bytes, bytes], body: bytes
) -> tuple[int, bytes]:
    """The answer of an application to one request: its status and its body."""
    method, _, target = line.partition(b" ")
    path, _, query = target.partition(b"?")
    scope = {
        "type": "http", "http_version": "1.1", "scheme": "http", "root_path": "",
        "server": ("127.0.0.1", 8765), "client": ("127.0.0.1", 1),
        "method": method.decode("latin-1").upper() or "GET",
        "path": unquote(path.decode("latin-1")) or "/", "raw_path": path, "query_string": query,
        "headers": [(name, value) for name, value in headers.items() if name],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        raise Finding("no answer")
    return int(sent[0]["status"]), b"".join(message.get("body", b"") for message in sent[1:])


class _Server:
    """A project with a few sentences, in a loop of its own."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        place = Path(self._folder.name) / "project"
        create_project(
            place, (s.unlabeled() for s in gazette(40)), ProjectSettings("fuzz", ("PER", "LOC"))
        )
        self._project = open_project(place)
        self.token = secrets.token_urlsafe(32).encode()
        add_annotator(self._project.store, "Ada", admin=True)
        found = find_annotator(self._project.store, "Ada")
        assert found is not None
        own = (self.token.decode(), Annotator(found.id, "Ada", admin=True))
        self._app = create_app(self._project, own, limits=Limits(rate=1e9, burst=1e9))
        self._loop = asyncio.new_event_loop()

    def answer(self, line: bytes, headers: dict[bytes, bytes], body: bytes) -> tuple[int, bytes]:
        return self._loop.run_until_complete(asked(self._app, line, headers, body))


@cache
def _server() -> _Server:
    return _Server()
