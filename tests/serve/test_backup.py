"""A backup is a project that opens and holds all that was acknowledged before it began.

Others go on writing meanwhile.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from seqmix.app.cli import run
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.serve.backup import back_up
from seqmix.serve.project import create_project, open_project
from seqmix.serve.settings import ProjectSettings, read_settings
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import current_answers
from seqmix.serve.store.events import read_events
from seqmix.serve.store.sentences import read_sentences
from tests.support.stores import TAGS, count_sentences, rebuild
from tests.support.waiting import until


@pytest.fixture
def folder(url, tmp_path) -> Path:
    remote = url if isinstance(url, str) else None
    create_project(
        tmp_path / "p",
        [Sentence.from_text(f"Lena {i} left Oslo .", f"s:{i}") for i in range(600)],
        ProjectSettings("n", TAGS, remote),
        "Rules.",
    )
    (tmp_path / "p" / "training.toml").write_text("[training]\nepochs = 1\n")
    (tmp_path / "p" / "models" / "001").mkdir(parents=True)
    (tmp_path / "p" / "models" / "001" / "tagger.json").write_text("{}")
    (tmp_path / "p" / "models" / "lock").touch()
    return tmp_path / "p"


def test_every_answer_acknowledged_before_the_backup_began_is_in_it(folder, tmp_path):
    acknowledged: list[tuple[int, str]] = []
    stop = threading.Event()
    with open_project(folder) as own:
        add_annotator(own.store, "anna")

        def answer() -> None:
            for i in range(599):
                if stop.is_set():
                    return
                acknowledged.append(
                    (save_answer(own.store, f"s:{i}", 1, "label", [(0, 1, "PER")]).seq, f"s:{i}")
                )

        writer = threading.Thread(target=answer)
        writer.start()
        try:
            until(lambda: len(acknowledged) > 20)
            with open_project(folder) as other:
                before = list(acknowledged)
                last = back_up(other, tmp_path / "copy")
        finally:
            stop.set()
            writer.join()
    with open_project(tmp_path / "copy") as copy:
        there = [(event.seq, event.sentence_id) for event in read_events(copy.store)]
        assert set(before) <= set(there)
        assert (
            there == acknowledged[: len(there)] and last == there[-1][0]
        )  # a moment, not a mixture
        assert (
            count_sentences(copy.store) == 600
            and copy.store.tags == TAGS
            and copy.guidelines == "Rules."
        )
        seen = len(current_answers(copy.store))
        rebuild(copy.store)
        assert len(current_answers(copy.store)) == seen == len(there)
        nxt = save_answer(copy.store, "s:599", 1, "label", [(0, 1, "LOC")]).seq
        assert nxt > last  # it goes on
    assert read_settings(tmp_path / "copy").store is None
    names = sorted(path.name for path in (tmp_path / "copy").iterdir())
    assert names == ["guidelines.md", "models", "project.toml", "store.sqlite", "training.toml"]
    assert (tmp_path / "copy" / "models" / "001" / "tagger.json").read_text() == "{}"
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700 and (
        tmp_path / "copy" / "store.sqlite"
    ).stat().st_mode & 0o777 == 0o600


def test_a_backup_of_a_backup_is_the_same_and_none_is_written_over(tmp_path, capfd):
    create_project(
        tmp_path / "p", [Sentence.from_text("Lena left", "a")], ProjectSettings("n", TAGS)
    )
    assert run(["project", str(tmp_path / "p"), "backup", str(tmp_path / "one")]) == 0
    assert "1 sentences and all answers up to event 0" in capfd.readouterr().out
    with open_project(tmp_path / "one") as own:
        back_up(own, tmp_path / "two")
        with pytest.raises(DataError, match="backups never overwrite anything"):
            back_up(own, tmp_path / "p")
    with open_project(tmp_path / "two") as two:
        assert [sentence.id for sentence in read_sentences(two.store)] == ["a"]
