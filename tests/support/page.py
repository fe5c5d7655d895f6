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

try:
    from playwright.sync_api import expect
except ImportError:  # whoever asks for a browser is skipped
    expect = None

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


def each_has(found: Any, attribute: str, *values: str) -> None:
    """Wait until there are just these elements, each with its value of the attribute."""
    expect(found).to_have_count(len(values))
    for at, value in enumerate(values):
        expect(found.nth(at)).to_have_attribute(attribute, value)


def heard(page: Any) -> None:
    """Wait until the annotation page has drawn the status that it asks for when it opens."""
    expect(page.locator("#count")).not_to_be_empty()


class Line:
    """The line from a page to some addresses of the server.

    While it is `cut`, what the page asks there fails; if `one_way`, the server has heard it.
    subtle: chromium may miss or lose a request when a route is set or unset under an open page.
    So the page is loaded again, with a route that stays.
    """

    def __init__(self, page: Any, addresses: str, one_way: bool = False) -> None:
        self.cut, self.one_way = False, one_way
        page.route(addresses, self._carry)
        page.reload()

    def _carry(self, route: Any) -> None:
        if not self.cut:
            return route.continue_()
        if self.one_way:
            route.fetch()
        return route.abort()


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
