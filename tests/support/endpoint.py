"""A small server that answers as an endpoint would, or as none should."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]


@dataclass
class Endpoint:
    """Where it is, what it was asked, and how it answers."""

    url: str
    reply: Reply
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


def send(handler: BaseHTTPRequestHandler, content: bytes, status: int = 200, **more: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    for name, value in more.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(content)


def says(content: Any, **usage: Any) -> Reply:
    """An answer with this message; what is no text is sent as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    value = {"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage}
    return lambda handler, _: send(handler, json.dumps(value).encode())


@contextmanager
def endpoint(reply: Reply) -> Iterator[Endpoint]:
    """Serve on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            served.requests.append({"path": self.path, **json.loads(body)})
            served.headers.append(dict(self.headers))
            try:
                served.reply(self, served.requests[-1])
            except OSError:
                self.close_connection = True  # the client went away

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    served = Endpoint(f"http://127.0.0.1:{server.server_address[1]}/v1", reply)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
