"""Ask a running server what its OpenAPI schema allows, and more: never a 5xx, never a hang.

    python bench/http_schema.py [--requests 5000] [--seed 0] [--model TAGGER]

Schemathesis makes the requests, half of them good and half of them bad, for every operation the
schema has. The server is a real one on this machine, with the token given and the rate limit off,
which would answer most of them with 429. Each request is then sent again by a stranger, who must
hear 401 and nothing else.
"""

from __future__ import annotations

import argparse
import secrets
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from schemathesis import GenerationMode
from starlette.types import ASGIApp

from seqmix.app.commands.train.serve import load_model
from seqmix.data.samples import sample
from seqmix.serve.predictor import app as predictor
from seqmix.serve.predictor.model import ServedModel
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.app import create_app
from seqmix.serve.web.security import Limits

PATIENCE = 20.0  # seconds for one answer
LIMITS = Limits(rate=1e9, burst=1e9)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """A project of the gazette, served by `seqmix annotate`; where, and the token of an admin."""
    create_project(
        folder,
        (s.unlabeled() for s in sample("gazette:train")[:200]),
        ProjectSettings("schema", ("PER", "LOC")),
    )
    with open_project(folder) as project:
        token = add_annotator(project.store, "Ada", admin=True)
        found = find_annotator(project.store, "Ada")
        assert found is not None
        own = secrets.token_urlsafe(32), Annotator(found.id, "Ada", admin=True)
        with running(create_app(project, own, limits=LIMITS)) as url:
            yield url, token


@contextmanager
def served_tagger(folder: Path) -> Iterator[tuple[str, str]]:
    """A tagger, served as `seqmix serve` serves it; where, and its token."""
    token = secrets.token_urlsafe(32)
    app = predictor.create_app(ServedModel(folder, load_model), token, limits=LIMITS)
    with running(app) as url:
        yield url, token


@contextmanager
def running(app: ASGIApp) -> Iterator[str]:
    """Serve an application on a free port, and yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, http="h11", ws="none", log_level="warning", access_log=False)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def ask_all(
    url: str, token: str, requests: int, first_seed: int = 0
) -> tuple[Counter[int], Counter[int], list[str]]:
    """Statuses to somebody with a token, statuses to a stranger, and what went wrong."""
    own = {"Authorization": f"Bearer {token}"}
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", headers=own)
    operations = [found.ok() for found in schema.get_all_operations()]
    mine: Counter[int] = Counter()
    strangers: Counter[int] = Counter()
    wrong: list[str] = []

    def ask(case: Any) -> None:
        if mine.total() >= requests:
            return
        case.headers = {
            k: v
            for k, v in (case.headers or {}).items()
            if k.lower() not in ("authorization", "cookie")
        }
        case.cookies = {}
        answer = case.call(base_url=url, headers=own, timeout=PATIENCE)
        mine[answer.status_code] += 1
        if answer.status_code >= 500:
            wrong.append(f"{answer.status_code} to {case.as_curl_command()[:500]}")
        answer = case.call(base_url=url, timeout=PATIENCE)
        strangers[answer.status_code] += 1
        if answer.status_code != 401:
            wrong.append(f"{answer.status_code} to a stranger's {case.as_curl_command()[:500]}")

    share = -(-requests // (2 * len(operations)))
    for number in range(20):
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                _each(operation.as_strategy(generation_mode=mode), ask, share, first_seed + number)
        if mine.total() >= requests:
            break
    return mine, strangers, wrong


def _each(strategy: Any, ask: Any, examples: int, number: int) -> None:
    """So many different requests; fewer where an operation has no bad or few different ones."""

    @seed(number)
    @settings(
        max_examples=examples, deadline=None, database=None, phases=(Phase.generate,),
        verbosity=Verbosity.quiet, suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def many(case: Any) -> None:
        ask(case)

    try:
        many()
    except schemathesis.errors.SchemathesisError:
        return
    except Exception as error:
        if "Unsatisfiable" not in type(error).__name__:
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description="Requests after the server's own schema.")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", type=Path, help="ask `seqmix serve` with this tagger instead")
    given_ones = parser.parse_args()
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        served_tagger(given_ones.model)
        if given_ones.model
        else served(Path(folder) / "project") as (url, token),
    ):
        mine, strangers, wrong = ask_all(url, token, given_ones.requests, given_ones.seed)
    print(
        f"{mine.total()} requests with a token: "
        + ", ".join(f"{n} × {status}" for status, n in sorted(mine.items()))
    )
    print(
        f"{strangers.total()} by a stranger: "
        + ", ".join(f"{n} × {status}" for status, n in sorted(strangers.items()))
    )
    print(f"{len(wrong)} wrong, {time.monotonic() - start:.0f} s")
    for line in wrong[:20]:
        print(line)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
