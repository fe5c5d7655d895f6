"""What the tests of the page share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqmix.data.sentence import Sentence

TAGS = ("PER", "ORG", "LOC", "MISC")


@dataclass(frozen=True)
class Served:
    """A project being served, and the link that lets its first annotator in."""

    url: str
    link: str
    project: Any

    def invite(self, name: str, admin: bool = False) -> str:
        return f"{self.url}/login?token={self.project.store.add_annotator(name, admin)}"


def lines(*texts: str) -> list[Sentence]:
    """Sentences s0, s1, … of tokens between spaces."""
    return [Sentence(f"s{i}", tuple(text.split())) for i, text in enumerate(texts)]


def ranked(
    served: Served,
    suggestions: dict[str, list[dict[str, Any]]] | None = None,
    number: int = 1,
    **more: Any,
) -> None:
    """Publish a ranking: the sentences as they came, with what a model would suggest."""
    from seqmix.serve.store.records import Generation, Rank

    ids = [sentence.id for sentence in served.project.store.sentences()]
    found = suggestions or {}
    ranks = [
        Rank(id, 1.0, {"spans": found[id], "confidence": 0.62} if id in found else None)
        for id in ids
    ]
    served.project.store.publish(Generation(number, labeled=number * 10), ranks, **more)


def stored(served: Served) -> dict[str, tuple[list[tuple[int, int, str]], Any]]:
    """What the store holds: the marks and the sure part by sentence."""
    return {
        answer.sentence_id: ([tuple(mark) for mark in answer.spans], answer.sure)
        for answer in served.project.store.answers()
    }


def shown(page: Any, id: str) -> None:
    """Wait until this sentence is on the page and can be answered."""
    page.wait_for_selector(f'#work:not([aria-busy]) #sentence[data-id="{id}"]')


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def answer_as(served: Served, name: str, id: str, *marks: tuple[int, int, str]) -> None:
    """Somebody answers the sentence that comes next for them, which is the one with this id."""
    from seqmix.serve.store.queue import next_sentence
    from seqmix.serve.store.records import Mark

    store = served.project.store
    person = store.annotator(name).id
    given = next_sentence(store, person, served.project.rules)
    assert given is not None
    assert given.sentence.id == id
    store.save(id, person, "label", [Mark(*mark) for mark in marks], version=given.version)
