"""A project in a folder, served: the real store, the real application, people with tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from seqmix.data.sentence import Sentence
from seqmix.serve.project import Project, create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.web.app import create_app

WORDS = ["Lena", "left", "Oslo", "for", "Rome", "with", "Ada", "and", "Bo"]


def sentences(n: int = 30) -> list[Sentence]:
    """Different short sentences, every third with its raw text."""
    made = []
    for i in range(n):
        tokens = (*(WORDS[(i + j) % len(WORDS)] for j in range(4 + i % 3)), str(i), ".")
        if i % 3:
            made.append(Sentence(f"s{i}", tokens))
            continue
        text, offsets = "", []
        for token in tokens:
            text += "" if token == "." or not text else " "
            offsets.append((len(text), len(text) + len(token)))
            text += token
        made.append(Sentence(f"s{i}", tokens, (), text, tuple(offsets)))
    return made


def project(folder: Path, n: int = 30, **settings: Any) -> Project:
    """A new project, open."""
    given = {"name": "people", "tags": ("PER", "LOC"), "audit_share": 0.0, **settings}
    create_project(folder, sentences(n), ProjectSettings(**given), "Mark **names**.")
    return open_project(folder)


@dataclass(frozen=True)
class Person:
    """An annotator with a client of their own."""

    id: int
    token: str
    client: TestClient

    def get(self, path: str, **more: Any) -> Any:
        return self.client.get(path, headers=self.headers, **more)

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        return self.client.post(
            path, headers=self.headers, json={} if body is None else body, **more
        )

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True)
class Served:
    """A served project and its people: Ada is the admin."""

    project: Project
    client: TestClient
    ada: Person
    bo: Person


@contextmanager
def serve(given: Project, **settings: Any) -> Iterator[Served]:
    """The application, asked directly; a mistake of ours is a 500, as outside."""
    app = create_app(given, **settings)
    with TestClient(
        app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False, follow_redirects=False
    ) as client:
        people = []
        for name, admin in (("Ada", True), ("Bo", False)):
            token = add_annotator(given.store, name, admin)
            found = find_annotator(given.store, name)
            assert found is not None
            people.append(Person(found.id, token, client))
        yield Served(given, client, *people)
