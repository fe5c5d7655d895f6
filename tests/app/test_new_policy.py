"""A new policy is one function and one line in the table: then everything that asks can use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from seqmix.app.cli import run
from seqmix.data.samples import sample
from seqmix.data.tagset import TagSet
from seqmix.protocols import PoolView
from seqmix.query.policies import POLICIES
from seqmix.query.spec import PolicySpec
from seqmix.serve.project import TRAIN_NOW, create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator, annotator_by_token
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.trainer.trainer import Trainer
from seqmix.tagger import Settings, Tagger
from tests.support import tiny


def longest(view: PoolView) -> Iterator[tuple[str, float]]:
    """Ask for long sentences."""
    return ((sentence.id, float(len(sentence))) for sentence in view.sentences())


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "longest", PolicySpec(longest))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny.write_bert(tmp_path_factory.mktemp("encoder") / "bert")


def test_simulate_asks_by_it(encoder: str, tmp_path: Path) -> None:
    changes = {
        "tagger.encoder": json.dumps(encoder), "query.policy": "longest", "query.size": 5,
        "loop.seed_size": 8, "loop.slice": 40, "loop.rounds": 1, "training.epochs": 1,
        "augment.variant": "none",
    }  # fmt: skip
    options = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]

    assert run(["simulate", "--data", "gazette", "--out", str(tmp_path / "run"), *options]) == 0

    line = json.loads((tmp_path / "run" / "rounds.jsonl").read_text().splitlines()[1])
    lengths = {sentence.id: len(sentence) for sentence in sample("gazette:train")}
    assert line["arm"] == "longest"
    assert line["scores"] == [lengths[id] for id in line["chosen"]]
    assert line["scores"] == sorted(line["scores"], reverse=True)


def test_a_projects_trainer_asks_by_it(encoder: str, tmp_path: Path) -> None:
    from seqmix.app.trainer_process import build_parts

    corpus = [sentence for sentence in sample("gazette:train") if len(sentence) < 25][:40]
    tags = TagSet.of(corpus).types
    settings = ProjectSettings("names", tags, audit_share=0.0, encoder=encoder, policy="longest")
    create_project(tmp_path / "names", corpus[8:], settings, seed_labels=corpus[:8])
    (tmp_path / "names" / "training.toml").write_text("[training]\nepochs = 1\n")
    with open_project(tmp_path / "names") as project:
        project.store.write_note(TRAIN_NOW, 1)
        assert Trainer(project, build_parts(project)).step()
        ada = annotator_by_token(project.store, add_annotator(project.store, "Ada")).id
        first = next_sentence(project.store, ada, project.rules)

    assert first.generation == 1
    assert len(first.sentence) == max(len(sentence) for sentence in corpus[8:])


def test_rank_scores_by_it(encoder: str, tmp_path: Path) -> None:
    tagger = Tagger(encoder, settings=Settings(steps=2), device="cpu")
    tagger.fit(tiny.toy(), np.random.default_rng(0)).save(tmp_path / "model")
    out, options = tmp_path / "top.jsonl", ["--policy", "longest", "--top", "5", "--device", "cpu"]

    assert (
        run(
            ["rank", "gazette:dev", "--model", str(tmp_path / "model"), "--out", str(out), *options]
        )
        == 0
    )

    ranked = [json.loads(line) for line in out.read_text().splitlines()]
    lengths = sorted((len(sentence) for sentence in sample("gazette:dev")), reverse=True)
    assert [row["score"] for row in ranked] == [float(length) for length in lengths[:5]]
