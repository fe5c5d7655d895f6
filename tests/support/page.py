"""What the tests of the page share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from seqmix.data.sentence import Sentence
from seqmix.serve.store.annotators import add_annotator, find_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.sentences import read_sentences

TAGS = ("PER", "ORG", "LOC", "MISC")


@dataclass(frozen=True)
class Served:
    """A project being served, and the link that lets its first annotator in."""

    url: str
    link: str
    project: Any

    def invite(self, name: str, admin: bool = False) -> str:
        return f"{self.url}/login?token={add_annotator(self.project.store, name, admin)}"


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

    ids = [sentence.id for sentence in read_sentences(served.project.store)]
    found = suggestions or {}
    ranks = [
        Rank(id, 1.0, {"spans": found[id], "confidence": 0.62} if id in found else None)
        for id in ids
    ]
    publish_generation(served.project.store, Generation(number, labeled=number * 10), ranks, **more)


def stored(served: Served) -> dict[str, tuple[list[tuple[int, int, str]], Any]]:
    """What the store holds: the marks and the sure part by sentence."""
    return {
        answer.sentence_id: ([tuple(mark) for mark in answer.spans], answer.sure)
        for answer in current_answers(served.project.store)
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
    person = find_annotator(store, name).id
    given = next_sentence(store, person, served.project.rules)
    assert given is not None
    assert given.sentence.id == id
    save_answer(store, id, person, "label", [Mark(*mark) for mark in marks], version=given.version)
