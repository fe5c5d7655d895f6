"""A browser, and servers for it to look at: the real application on a real store, in a thread."""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from seqmix.data.sentence import Sentence
from seqmix.serve.store.annotators import add_annotator
from tests.support.page import TAGS, Served
from tests.support.waiting import until

PATIENCE = 60_000  # milliseconds, on a machine with other work
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium. subtle: a module at a time, since an open Playwright holds this thread's event loop."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright drives the page and is not installed"
    )
    if not Path(CHROMIUM).exists():
        pytest.skip("there is no chromium on this machine")
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a link in a new context, light and 1280 wide unless told. A script error or anything refused by the policy fails the test."""
    contexts, complaints = [], []

    def opened(link: str, width: int = 1280, height: int = 860, **options: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console", lambda said: complaints.append(said.text) if said.type == "error" else None
        )
        page.goto(link)
        return page

    yield opened
    for context in contexts:
        for page in context.pages:
            page.unroute_all(behavior="ignoreErrors")
        context.close()
    assert [said for said in complaints if "Failed to load resource" not in said] == []


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Serve sentences as a project; lena is let in as its admin."""
    import uvicorn

    from seqmix.serve.project import create_project, open_project
    from seqmix.serve.settings import ProjectSettings
    from seqmix.serve.web.app import create_app

    running = []

    def started(
        sentences: Sequence[Sentence], guidelines: str | None = None, **settings: Any
    ) -> Served:
        folder = tmp_path / f"project{len(running)}"
        create_project(
            folder,
            sentences,
            ProjectSettings(**{"name": "Names", "tags": TAGS, "audit_share": 0.0, **settings}),
            guidelines,
        )
        project = open_project(folder)
        token = add_annotator(project.store, "lena", admin=True)
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(
                create_app(project), log_level="error", access_log=False, ws="none", lifespan="off"
            )
        )
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        running.append((server, thread, listening, project))
        until(lambda: server.started)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        return Served(url, f"{url}/login?token={token}", project)

    yield started
    for server, thread, listening, project in running:
        server.should_exit = True
        thread.join(10)
        listening.close()
        project.close()
