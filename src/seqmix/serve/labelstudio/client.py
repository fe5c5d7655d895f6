"""Label Studio's own API, for what its ML backend protocol cannot do.

Label Studio 1.23 orders tasks by the scores of predictions whose version is the project's `model_version`, and asks a backend for
predictions only when somebody opens a task or presses a button. So after each round its predictions are put there, the project is set to
their version, and those of the round before are taken away. The address and the key come from whoever starts the server, never from a
request.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from http.client import HTTPException
from itertools import islice
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from seqmix.data.formats.records import is_deep
from seqmix.errors import ConfigError, SeqMixError
from seqmix.serve.labelstudio.answers import Answers
from seqmix.serve.labelstudio.rounds import Rank
from seqmix.serve.labelstudio.tasks import Json, annotations_of, data_of, id_of

_PAGE = 200
_TIMEOUT = 60.0
_FRESH = 240.0  # seconds; the tokens that Label Studio gives for a personal access token live for five minutes


class LinkError(SeqMixError):
    """Label Studio's API cannot be reached, or says no."""


class _NoRedirects(HTTPRedirectHandler):
    """subtle: urllib would carry the key along to wherever a redirect points."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class Link:
    """A Label Studio server and a key to it: a legacy token or a personal access token."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.username
            or parts.query
            or parts.fragment
        ):
            raise ConfigError(
                f"--url is {url!r}; it looks like http://localhost:8080, without a password in it"
            )
        if not key or not key.isascii() or not key.isprintable():
            raise ConfigError(
                "LABEL_STUDIO_API_KEY is empty or no key; Label Studio shows yours under Account & Settings"
            )
        self.url, self._key = url.rstrip("/"), key
        self._opener = build_opener(_NoRedirects)
        self._access = ("", 0.0)  # what a personal access token was exchanged for, and when

    def fetch(self, project: int, answers: Answers, control: str) -> int:
        """Take over every task and annotation the project has, and forget those it has no more."""
        before, tasks, annotations, totals = answers.moment(), set[int](), set[int](), set[int]()
        for total, page in self._pages(project):
            kept = [(id_of(task, "a task"), task) for task in page]
            shallow = [
                (id, task) for id, task in kept if not is_deep(task)
            ]  # one that is nested too deep must not keep all others out
            own = [one for _, task in shallow for one in annotations_of(task, control)]
            answers.keep([(id, data_of(task)) for id, task in shallow], own)
            tasks |= {id for id, _ in kept}
            annotations |= {one.id for one in own}
            totals.add(total)
        if (
            totals == {len(tasks)}
        ):  # subtle: a task deleted between two pages moves another one past us, which is still there
            answers.forget_missing(tasks, annotations, before)
        return len(tasks)

    def push(self, project: int, version: str, ranks: Iterable[Rank]) -> int:
        """Put predictions there."""
        total, waiting = 0, iter(ranks)
        while batch := list(islice(waiting, _PAGE)):
            body = [
                {"task": r.task, "result": r.result, "score": r.score, "model_version": version}
                for r in batch
            ]
            self._ask("POST", f"/api/projects/{project}/import/predictions", body)
            total += len(batch)
        return total

    def use(self, project: int, version: str, prefix: str) -> None:
        """Order the project's tasks by this version's scores, and take away our older predictions."""
        self._ask("PATCH", f"/api/projects/{project}", {"model_version": version})
        known = self._ask("GET", f"/api/projects/{project}/model-versions/")
        for old in known if isinstance(known, dict) else ():
            if old.startswith(prefix) and old != version:
                self.forget(project, old)

    def forget(self, project: int, version: str) -> None:
        """Take away the predictions of a version."""
        self._ask("DELETE", f"/api/projects/{project}/model-versions/", {"model_version": version})

    def _pages(self, project: int) -> Iterator[tuple[int, Sequence[Json]]]:
        number, seen = 1, 0
        while True:
            page = self._ask(
                "GET",
                f"/api/tasks?project={project}&page={number}&page_size={_PAGE}&fields=all&resolve_uri=false",
            )
            tasks = page.get("tasks") if isinstance(page, dict) else None
            if not isinstance(tasks, list):
                raise LinkError(
                    f"{self.url} did not answer with tasks; is it a Label Studio server?"
                )
            total = int(page.get("total") or 0)
            yield total, tasks
            number, seen = number + 1, seen + len(tasks)
            if not tasks or seen >= total:
                return

    def _ask(self, method: str, path: str, body: Any = None, authorized: bool = True) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            **({"Authorization": self._authorization()} if authorized else {}),
        }
        try:
            with self._opener.open(
                Request(self.url + path, data, headers, method=method), timeout=_TIMEOUT
            ) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            why = {
                401: "the key is not accepted",
                403: "the key's owner may not do this",
                404: "there is no such project",
            }
            said = error.read(300).decode("utf-8", "replace")
            raise LinkError(
                f"Label Studio at {self.url} answered {error.code} to {method} {path}: {why.get(error.code, said)}"
            ) from error
        except (URLError, HTTPException, OSError, ValueError, RecursionError) as error:
            raise LinkError(
                f"cannot talk to Label Studio at {self.url}: {getattr(error, 'reason', error)}"
            ) from error

    def _authorization(self) -> str:
        """A legacy token is sent as it is; a personal access token (a JWT) is exchanged for one that lives a few minutes."""
        if self._key.count(".") != 2:
            return f"Token {self._key}"
        if not self._access[0] or time.monotonic() - self._access[1] > _FRESH:
            answer = self._ask(
                "POST", "/api/token/refresh/", {"refresh": self._key}, authorized=False
            )
            self._access = (
                str(answer.get("access", "")) if isinstance(answer, dict) else "",
                time.monotonic(),
            )
        return f"Bearer {self._access[0]}"
