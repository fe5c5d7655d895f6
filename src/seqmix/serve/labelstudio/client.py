"""Label Studio's own API, for what its ML backend protocol cannot do.

Label Studio 1.23 orders tasks by the scores of predictions whose version is the project's
`model_version`, and asks a backend for predictions only when somebody opens a task or presses a
button. So each new order is put there as predictions, the project is set to their version, and
older ones are taken away. The address and the key come from whoever starts the server, never from
a request.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from http.client import HTTPException
from itertools import islice
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from seqmix.errors import ConfigError, SeqMixError
from seqmix.serve.labelstudio.predictions import TaskPrediction
from seqmix.serve.labelstudio.tasks import Json

_PAGE = 200
_TIMEOUT = 60.0
_FRESH = 240.0  # seconds; a token given for a personal access token lives for five minutes


class LabelStudioError(SeqMixError):
    """Label Studio's API cannot be reached, or refuses."""


class _NoRedirects(HTTPRedirectHandler):
    """Follow no redirect: urllib would send the key to wherever it points."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class LabelStudioClient:
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
                f"--url must look like http://localhost:8080, without a password; got {url!r}"
            )
        if not key or not key.isascii() or not key.isprintable():
            raise ConfigError(
                "LABEL_STUDIO_API_KEY must be a key of Label Studio, "
                "which shows yours under Account & Settings"
            )
        self.url, self._key = url.rstrip("/"), key
        self._opener = build_opener(_NoRedirects)
        self._access = ("", 0.0)  # what a personal access token was exchanged for, and when

    def push(self, project: int, version: str, predictions: Iterable[TaskPrediction]) -> None:
        """Put predictions there."""
        waiting = iter(predictions)
        while batch := list(islice(waiting, _PAGE)):
            body = [{**asdict(prediction), "model_version": version} for prediction in batch]
            self._ask("POST", f"/api/projects/{project}/import/predictions", body)

    def use(self, project: int, version: str, prefix: str) -> None:
        """Order the project's tasks by this version's scores, and delete older predictions."""
        self._ask("PATCH", f"/api/projects/{project}", {"model_version": version})
        versions = self._ask("GET", f"/api/projects/{project}/model-versions/")
        for old in versions if isinstance(versions, dict) else ():
            if old.startswith(prefix) and old != version:
                self.forget(project, old)

    def forget(self, project: int, version: str) -> None:
        """Take away the predictions of a version."""
        self._ask("DELETE", f"/api/projects/{project}/model-versions/", {"model_version": version})

    def pages(self, project: int) -> Iterator[tuple[int, Sequence[Json]]]:
        """Yield the project's tasks page by page, each with how many tasks there are."""
        number, seen = 1, 0
        while True:
            page = self._ask(
                "GET",
                f"/api/tasks?project={project}&page={number}&page_size={_PAGE}"
                "&fields=all&resolve_uri=false",
            )
            tasks = page.get("tasks") if isinstance(page, dict) else None
            if not isinstance(tasks, list):
                raise LabelStudioError(
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
            reasons = {
                401: "the key is not accepted",
                403: "the key's owner may not do this",
                404: "there is no such project",
            }
            body = error.read(300).decode("utf-8", "replace")
            raise LabelStudioError(
                f"Label Studio at {self.url} answered {error.code} to {method} {path}: "
                f"{reasons.get(error.code, body)}"
            ) from error
        except (URLError, HTTPException, OSError, ValueError, RecursionError) as error:
            raise LabelStudioError(
                f"cannot talk to Label Studio at {self.url}: {getattr(error, 'reason', error)}"
            ) from error

    def _authorization(self) -> str:
        """Return the header: a legacy token, or a short-lived one for a personal one."""
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
