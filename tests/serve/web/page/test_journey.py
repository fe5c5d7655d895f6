"""A new user, from a file of text to labels in CoNLL: the real commands, the real trainer, a real browser, and only the keyboard."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seqmix
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.data.text import CharSpan, tags_from_text
from tests.support.page import TAGS, press
from tests.support.waiting import PATIENCE, until

WANTED = 30


def in_text(sentence: Sentence) -> Sentence:
    """The sentence as raw text cut anew, with the names where they are."""
    text, offsets = sentence.located()
    names = [
        CharSpan(offsets[span.start][0], offsets[span.end - 1][1], span.type)
        for span in spans(sentence.tags)
    ]
    bare = Sentence.from_text(text, sentence.id)
    return bare.with_tags(tags_from_text(bare.offsets or (), names, "expand", Counter(), text))


def seqmix_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "seqmix", *arguments], capture_output=True, text=True, check=True
    )


@pytest.fixture(scope="module")
def gold() -> dict[str, Sentence]:
    """What the user knows: the names in 70 sentences of middling length, by their text."""
    chosen = [
        in_text(s)
        for s in seqmix.sample("gazette:train")
        if 5 <= len(s) <= 16 and any(t != "O" for t in s.tags)
    ][:70]
    return {" ".join(sentence.tokens): sentence for sentence in chosen}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, gold: dict[str, Sentence]) -> Path:
    """`seqmix init` on a file of raw text; small trainings, since this is about the page."""
    folder = tmp_path_factory.mktemp("journey")
    (folder / "notes.txt").write_text(
        "\n".join(str(sentence.text) for sentence in gold.values()), encoding="utf-8"
    )
    seqmix_command(
        "init",
        str(folder / "names"),
        "--text",
        str(folder / "notes.txt"),
        "--tags",
        ",".join(TAGS),
        "--set",
        "batch=8",
        "--set",
        "rate=0.5",
    )
    quick = "[training]\nepochs = 3\nmin_steps = 18\n\n[augment]\nscore_range = 'off'\n"
    quick += "\n[adapt]\nepochs = 0\n"
    (folder / "names" / "training.toml").write_text(quick, encoding="utf-8")
    return folder / "names"


@pytest.fixture(scope="module")
def link(project: Path) -> Iterator[str]:
    """`seqmix annotate`, and the link it prints."""
    command = [
        sys.executable,
        "-m",
        "seqmix",
        "annotate",
        str(project),
        "--port",
        "0",
        "--no-browser",
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True)
    thread.start()
    yield until(
        lambda: next(
            (
                found[0]
                for line in said
                if (found := re.search(r"http://\S+/login\?token=\S+", line))
            ),
            None,
        )
    )
    process.send_signal(signal.SIGTERM)
    process.wait(60)
    thread.join(5)
    if process.stderr:
        process.stderr.close()


def order(project: Path) -> list[str]:
    """The sentences nobody has answered, in the order in which they will be asked."""
    with sqlite3.connect(project / "store.sqlite") as store:
        rows = store.execute(
            "select sentence_id from queue where stream = 'active' and state = 'free' order by generation desc, rank"
        )
        return [id for (id,) in rows]


def tokens(page: Any) -> tuple[str, ...]:
    return tuple(
        page.eval_on_selector_all("#sentence .token", "nodes => nodes.map(n => n.textContent)")
    )


def label(page: Any, gold: dict[str, Sentence]) -> Sentence:
    """Answer the sentence on the page, whatever is suggested, with keys alone."""
    page.wait_for_selector("#work:not([aria-busy])")
    shown = page.get_attribute("#sentence", "data-id")
    known = gold[" ".join(tokens(page))]
    press(page, "Shift+X", "Home")
    at = 0
    for span in spans([str(row) for row in known.tags]):
        press(
            page,
            *["ArrowRight"] * (span.start - at),
            *["Shift+ArrowRight"] * (span.end - 1 - span.start),
        )
        press(page, str(TAGS.index(span.type) + 1))
        at = span.end - 1
    press(page, "Enter")
    page.wait_for_selector(f'#work:not([aria-busy]) #sentence:not([data-id="{shown}"])')
    return known


def generated(page: Any) -> int:
    """How many generated sentences the page shows now."""
    page.reload()
    page.locator("#summary:not(:empty)").wait_for()
    return page.locator(".card").count()


def test_a_new_user_labels_trains_undoes_vetoes_and_exports(
    project: Path, link: str, gold: dict[str, Sentence], visit: Any, tmp_path: Path
) -> None:
    page = visit(link)
    page.wait_for_selector("#sentence .token")
    with sqlite3.connect(project / "store.sqlite") as store:
        until(
            lambda: store.execute("select count(*) from generations").fetchone()[0]
        )  # the first order stands
    before = order(project)

    # label, until there is enough for a training, and on while it trains
    given = [label(page, gold) for _ in range(10)]
    page.locator("#model", has_text="trained on").wait_for(timeout=PATIENCE * 1000)
    after = order(project)
    assert [id for id in before if id in after] != after, (
        "a new model puts the sentences in a new order"
    )
    given += [label(page, gold) for _ in range(WANTED - len(given))]
    page.locator("#stream", has_text="The model").or_(
        page.locator("#stream", has_text="Audit")
    ).wait_for()
    page.locator("#goal", has_text="more answers (about").wait_for()
    assert len({sentence.id for sentence in given}) == WANTED

    # take the last answer back, spoil it, undo that, give it again
    press(page, "z")
    page.locator("#status", has_text="Answer taken back.").wait_for()
    assert gold[" ".join(tokens(page))] == given[-1]
    press(page, "End", "4", "z")
    assert label(page, gold) == given[-1]

    # veto a generated sentence
    page.goto(link.partition("/login")[0] + "/generated.html")
    until(lambda: generated(page))
    vetoed = page.locator(".card .made").first.inner_text()
    page.locator(".card").first.get_by_role("button").click()
    page.locator(".card.vetoed", has_text=vetoed).wait_for()

    # export, from the page and from the command line
    page.goto(link.partition("/login")[0])
    with page.expect_download() as download:
        page.get_by_role("link", name="Export as CoNLL").last.click()
    download.value.save_as(tmp_path / "page.conll")
    seqmix_command(
        "export", str(project), "--to", "conll", "--out", str(tmp_path / "command.conll")
    )
    expected = {(sentence.tokens, sentence.tags) for sentence in given}
    for name in ("page.conll", "command.conll"):
        exported = list(seqmix.read(tmp_path / name))
        assert {(sentence.tokens, sentence.tags) for sentence in exported} == expected
        assert len(exported) == WANTED
