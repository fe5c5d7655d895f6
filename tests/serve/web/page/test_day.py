"""An annotator's day in the real browser, with the real commands and the real trainer: sources, thirty answers, a server that is killed in the middle, mark all, a doubt, a tag renamed and another split, the review, a bulk acceptance, the export."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import seqmix
from seqmix.data.scheme import tag
from seqmix.data.spans import Span
from seqmix.serve.project import Project, open_project
from seqmix.serve.review.doubts import gold_events, write_doubts
from seqmix.serve.review.evidence import Doubt
from seqmix.serve.review.model_answers import ModelAnswer as Prediction
from seqmix.serve.review.model_answers import ModelAnswers as Predictions
from seqmix.serve.review.model_answers import write_model_answers as write_predictions
from seqmix.serve.sources.stored import stored_marks
from seqmix.serve.store.annotators import list_annotators
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.bulk import bulk_ids, untouched
from seqmix.serve.store.queue import in_order
from seqmix.serve.store.rankings import read_generations
from seqmix.serve.store.records import Mark
from seqmix.serve.store.sentences import read_audit_sentences, read_sentences
from tests.support.page import expect, press
from tests.support.waiting import PATIENCE, until

pytestmark = pytest.mark.ci
spacy = pytest.importorskip("spacy", reason="needs the extra spacy")

TAGS = ("PER", "ORG", "LOC")
PEOPLE = ("Lena", "Ada", "Bo", "Eve", "Zoe", "Omar", "Kim", "Tao", "Ines", "Per")
CITIES = ("Oslo", "Turin", "Accra", "Lima")
RIVERS = ("Thames", "Volta")
FIRMS = ("Acme", "Nordbank")
WANTED = 30
SENTENCES, AUDIT_SHARE = 440, 0.4  # enough audit answers for a guarantee of 5 %
FORGOTTEN = "Oslo"  # the annotator does not mark it before noticing


def texts() -> list[str]:
    found = []
    for i in range(SENTENCES // 4):
        name, year = PEOPLE[i % 10], 1700 + i
        city, river, firm = CITIES[i % 4], RIVERS[i % 2], FIRMS[i % 2]
        found += [
            f"{name} left {city} for {CITIES[(i + 1) % 4]} in {year} .",
            f"{firm} sold {name} a mill on the {river} in {year} .",
            f"{name} works for {firm} in {city} since {year} .",
            f"{name} swam in the {river} near {city} in {year} .",
        ]
    return found


def meant(tokens: tuple[str, ...], split: bool) -> list[Span]:
    """What is to be marked, with the tags of the end or of the beginning."""
    kinds = dict.fromkeys(PEOPLE, "Person" if split else "PER")
    kinds |= dict.fromkeys(CITIES, "City" if split else "LOC")
    kinds |= dict.fromkeys(RIVERS, "River" if split else "LOC")
    kinds |= dict.fromkeys(FIRMS, "ORG")
    return [Span(at, at + 1, kinds[token]) for at, token in enumerate(tokens) if token in kinds]


def seqmix_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seqmix", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


@dataclass
class Day:
    """What the annotator has done, and what was suggested."""

    answered: dict[str, tuple[str, ...]] = field(default_factory=dict)
    suggested: set[str] = field(default_factory=set)
    slip: str | None = None  # the answer with a wrong tag


class Server:
    """`seqmix annotate` on one port, to be killed and started again."""

    def __init__(self, project: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.project, self.process = project, None

    def start(self) -> str:
        """The link it prints."""
        command = [sys.executable, "-m", "seqmix", "annotate", str(self.project)]
        command += ["--port", str(self.port), "--no-browser"]
        env = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env)
        said: list[str] = []
        errors = self.process.stderr
        self.reader = threading.Thread(target=lambda: said.extend(errors or ()), daemon=True)
        self.reader.start()
        link = re.compile(r"http://\S+/login\?token=\S+")
        return until(lambda: next((m[0] for line in said if (m := link.search(line))), None))

    def end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.reader.join(30)  # the trainer ends after the server, and has the same output
            if self.process.stderr is not None and not self.reader.is_alive():
                self.process.stderr.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """`seqmix init`, a dictionary and a spaCy pipeline; small trainings, since this is about the page."""
    folder = tmp_path / "names"
    (tmp_path / "notes.txt").write_text("\n".join(texts()), encoding="utf-8")
    seqmix_command(
        "init",
        folder,
        "--set",
        "rate=0.5",
        "--text",
        tmp_path / "notes.txt",
        "--tags",
        ",".join(TAGS),
        *("--set", "batch=8", "--set", f"audit_share={AUDIT_SHARE}"),
    )
    quick = "[training]\nepochs = 3\nmin_steps = 18\n\n[adapt]\nepochs = 0\n"
    (folder / "training.toml").write_text(
        f"{quick}\n[self_training]\nteachers = 0\n", encoding="utf-8"
    )
    (tmp_path / "firms.tsv").write_text(
        "".join(f"{name}\tORG\n" for name in FIRMS), encoding="utf-8"
    )
    seqmix_command(
        "project", folder, "source", "add", "firms", "dictionary", tmp_path / "firms.tsv"
    )
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "GPE", "pattern": name} for name in CITIES[1:]])
    nlp.to_disk(tmp_path / "ruler")
    seqmix_command(
        "project", folder, "source", "add", "ruler", "tagger", f"spacy:{tmp_path / 'ruler'}:GPE=LOC"
    )
    return folder


@pytest.fixture
def server(project: Path) -> Iterator[Server]:
    running = Server(project)
    yield running
    running.end(signal.SIGTERM)


def tokens(page: Any) -> tuple[str, ...]:
    script = "nodes => nodes.map(n => n.textContent)"
    return tuple(page.eval_on_selector_all("#sentence .token", script))


def ready(page: Any) -> None:
    page.wait_for_selector("#work:not([aria-busy]) #sentence .token")


def mark(page: Any, wanted: list[Span], names: tuple[str, ...]) -> None:
    press(page, "Shift+X", "Home")
    at = 0
    for span in wanted:
        press(page, *["ArrowRight"] * (span.start - at), str(names.index(span.type) + 1))
        at = span.end - 1


def label(page: Any, day: Day, save: bool = True) -> str:
    """Answer the sentence on the page, but not what is forgotten outside the audit; one firm is taken for a person."""
    ready(page)
    day.suggested |= set(page.locator("#sentence .mark .source").all_inner_texts())
    id, words = page.get_attribute("#sentence", "data-id"), tokens(page)
    day.answered[id] = words
    audit = page.inner_text("#stream").startswith("Audit")
    wanted = [s for s in meant(words, False) if audit or words[s.start] != FORGOTTEN]
    if day.slip is None and not audit and any(span.type == "ORG" for span in wanted):
        day.slip = id
        wanted = [Span(s.start, s.end, "PER" if s.type == "ORG" else s.type) for s in wanted]
    mark(page, wanted, TAGS)
    if save:
        press(page, "Enter")
        page.wait_for_selector(f'#work:not([aria-busy]) #sentence:not([data-id="{id}"])')
    return id


def changed(page: Any, url: str, button: str, names: str) -> None:
    page.goto(f"{url}/tags.html")
    page.get_by_role("button", name=button, exact=True).click()
    page.locator("#fields input").first.fill(names)
    page.locator("#touched", has_text="This affects").wait_for()
    page.locator("#sure:not([disabled])").click()
    page.locator("#status", has_text="Done:").wait_for()


def has_read_ahead(opened: Project) -> bool:
    """Whether the pipeline has suggested something for the first sentences."""
    ids = in_order(opened.store, AUDIT_SHARE)[:10]
    return any(any(stored_marks(opened.store, id).values()) for id in ids)


def audited(opened: Project) -> dict[str, tuple[str, ...]]:
    """Answer all audit sentences; return them."""
    store = opened.store
    (me,) = list_annotators(store)
    sentences = {s.id: s.tokens for s in read_audit_sentences(store)}
    for id in sentences.keys() - gold_events(store).keys():
        marks = [Mark(s.start, s.end, s.type) for s in meant(sentences[id], True)]
        save_answer(store, id, me.id, "label", marks)
    return sentences


def predicted(opened: Project, audit: dict[str, tuple[str, ...]]) -> None:
    """Write what a model says that is right where it is sure, and wrong in every twentieth sentence."""
    store = opened.store
    free = {s.id: s.tokens for s in read_sentences(store, sorted(untouched(store)))}

    def said(sentences: dict[str, tuple[str, ...]]) -> Iterator[Prediction]:
        for at, (id, words) in enumerate(sorted(sentences.items())):
            marks = tuple(Mark(s.start, s.end, s.type) for s in meant(words, True))
            yield Prediction(id, 0.98, marks) if at % 20 else Prediction(id, 0.4, ())

    newest = store.tag_history().newest
    made = Predictions(1.0, WANTED, newest, list(said(audit)), list(said(free)))
    write_predictions(opened.models, made)


def test_an_annotators_day(
    project: Path, server: Server, visit: Callable[..., Any], tmp_path: Path
) -> None:
    link = server.start()
    url = link.partition("/login")[0]
    with open_project(project) as opened:
        until(lambda: has_read_ahead(opened))
    page = visit(link)
    day = Day()
    answered = day.answered
    for _ in range(14):
        label(page, day)

    # the server is killed while an answer is on its way; the marks stay, and so does what was saved
    held = label(page, day, save=False)
    server.end(signal.SIGKILL)
    press(page, "Enter")
    page.locator("#trouble", has_text="Not saved.").wait_for()
    page.goto(server.start())
    ready(page)
    page.wait_for_selector(f'#sentence[data-id="{held}"]')
    expect(page.locator("#status")).to_contain_text("Your unsaved marks are back.")
    press(page, "Enter")
    page.wait_for_selector(f'#work:not([aria-busy]) #sentence:not([data-id="{held}"])')
    while len(answered) < WANTED:
        label(page, day)
    assert all(any(name in source for source in day.suggested) for name in ("firms", "ruler"))
    page.locator("#model", has_text="trained on").wait_for(timeout=PATIENCE * 1000)

    # mark one, mark all
    forgotten = next(id for id, words in answered.items() if FORGOTTEN in words)
    page.goto(f"{url}/#id={forgotten}")
    page.wait_for_selector(f'#work:not([aria-busy]) #sentence[data-id="{forgotten}"]')
    mark(page, meant(answered[forgotten], False), TAGS)
    at = answered[forgotten].index(FORGOTTEN)
    press(page, "Home", *["ArrowRight"] * at, "x", "3")
    page.locator("#same", has_text="of yours without it").wait_for()
    press(page, "m")
    page.locator("#status", has_text="Marked all").wait_for()
    press(page, "Enter")
    page.wait_for_selector(f'#work:not([aria-busy]) #sentence:not([data-id="{forgotten}"])')

    # the wrong tag is in doubt: other answers and a model have another
    assert day.slip is not None
    right = [(s.start, s.end, s.type, 0.97) for s in meant(answered[day.slip], False)]
    with open_project(project) as opened:
        doubts = [Doubt(day.slip, "model", 0.97, {"spans": right})]
        write_doubts(opened.store, "model", doubts, gold_events(opened.store))
    page.goto(f"{url}/review.html")
    page.wait_for_selector(f'#review:not([aria-busy]) #sentence[data-id="{day.slip}"]')
    expect(page.locator("#reasons")).to_contain_text("97% sure")
    expect(page.locator("#reasons")).to_contain_text("marked PER here and mostly marked ORG")
    press(page, "m")
    page.locator("#status", has_text="Corrected.").wait_for()
    page.locator("#summary", has_text="No answer is in doubt.").wait_for()

    # one tag is renamed, another split, and each span of it is chosen
    changed(page, url, "Rename PER", "Person")
    changed(page, url, "Split LOC", "City River")
    page.get_by_role("link", name="Review them").click()
    page.locator("#summary", has_text="in doubt").wait_for()
    while "No answer is in doubt" not in page.inner_text("#summary"):
        page.wait_for_selector("#review:not([hidden]):not([aria-busy])")
        id = page.get_attribute("#sentence", "data-id")
        assert id in answered
        for choice in page.locator(".choice").all():
            word = re.search("“(.+?)”", choice.inner_text())
            now = "River" if word and word[1] in RIVERS else "City"
            choice.get_by_role("button", name=now, exact=True).click()
        press(page, "Enter" if page.locator(".choice").count() else "k")
        page.locator("#status", has_text=re.compile("Corrected|Kept")).wait_for()
        done = f'#review[hidden], #sentence:not([data-id="{id}"])'
        page.wait_for_selector(done, state="attached")

    # what a model is sure of is accepted at an error rate of 5 %, taken back, and accepted again
    with open_project(project) as opened:
        audit = audited(opened)
        predicted(opened, audit)
        answered |= audit
        page.reload()
        accept = page.get_by_role("button", name=re.compile(r"^Accept \d+ sentences"))
        accept.click()
        page.locator("#bulk-status", has_text="sentences accepted.").wait_for()
        accepted = bulk_ids(opened.store)
        assert len(accepted) > 100
        page.get_by_role("button", name="Take back").click()
        page.locator("#bulk-status", has_text="sentences taken back.").wait_for()
        assert bulk_ids(opened.store) == set()
        accept.click()
        page.locator("#bulk-status", has_text="sentences accepted.").wait_for()
        assert bulk_ids(opened.store) == accepted
        answered |= {s.id: s.tokens for s in read_sentences(opened.store, sorted(accepted))}

    seqmix_command("export", project, "--to", "conll", "--out", tmp_path / "labels.conll")
    exported = {s.tokens: tuple(s.tags) for s in seqmix.read(tmp_path / "labels.conll")}
    assert exported == {w: tuple(tag(meant(w, True), len(w))) for w in answered.values()}
    assert len(exported) == len(answered)

    # a model with the tags of now is trained without more answers
    with open_project(project) as opened:
        until(lambda: read_generations(opened.store, 1)[0].notes.tag_change == 2)
    newest = project / "models" / (project / "models" / "latest").read_text().strip()
    learned = set(json.loads((newest / "tagger.json").read_text())["tags"])
    assert {"B-Person", "B-City", "B-River", "B-ORG"} <= learned
    assert learned.isdisjoint({"B-PER", "B-LOC"})
