"""From a config to a plan: the parts of the recipe beside policy and augmentation."""

from __future__ import annotations

import json
import shutil
from collections import Counter

import numpy as np
import pytest
import torch

from seqmix.app.commands.simulate.simulate import training_runs
from seqmix.app.config import load_config, parse_changes
from seqmix.app.plan import build_plan
from seqmix.app.reading.data import read_splits
from seqmix.augment.score_range import ScoreRange, parse_score_range
from seqmix.data.augmented import Augmented, new_tokens
from seqmix.errors import ConfigError, RunError
from seqmix.loop.events import PhaseStarted
from seqmix.loop.run import run
from seqmix.starter import load_encoder
from seqmix.tagger import Tagger
from seqmix.tagger.ensemble.averaged import AveragedTagger
from seqmix.tagger.training import loop as training_loop
from tests.support import tiny

SMALL = [
    "loop.seed_size=20",
    "loop.rounds=1",
    "query.size=5",
    "loop.slice=30",
    "training.epochs=1",
    "augment.variant=none",
]


@pytest.fixture(scope="module")
def masked(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("masked")
    model, tokenizer = load_encoder(tiny.write_bert(folder / "bare"), masked_lm=True)
    model.save_pretrained(folder / "bert")
    tokenizer.save_pretrained(folder / "bert")
    return str(folder / "bert")


def plan(changes, place=None):
    config = load_config("demo", changes=parse_changes([*SMALL, "tagger.device=cpu", *changes]))
    splits = {
        name: own[:30] if name != "train" else own
        for name, own in read_splits("gazette", config).items()
    }
    return build_plan(config, splits, place)


def test_the_encoder_is_adapted_once_for_all_runs_with_the_same_text(tmp_path, masked):
    changes = [f"tagger.encoder={masked}", "adapt.epochs=1"]
    run(plan(changes, tmp_path / "encoders"), tmp_path / "one")
    (made,) = [folder for folder in (tmp_path / "encoders").iterdir() if folder.suffix != ".lock"]
    written = (made / "model.safetensors").stat().st_mtime_ns

    run(plan([*changes, "augment.rate=0.1"], tmp_path / "encoders"), tmp_path / "two")

    assert (made / "model.safetensors").stat().st_mtime_ns == written
    assert (made / "adapt.json").exists()


def test_another_seed_adapts_an_encoder_of_its_own(tmp_path, masked):
    """Else ten seeds of a comparison share the luck of one encoder."""
    changes = [f"tagger.encoder={masked}", "adapt.epochs=1"]
    for seed in (0, 1):
        run(plan([*changes, f"seed={seed}"], tmp_path / "encoders"), tmp_path / str(seed))

    weights = {
        (folder / "model.safetensors").read_bytes()
        for folder in (tmp_path / "encoders").iterdir()
        if folder.suffix != ".lock"
    }
    assert len(weights) == 2


def test_adapting_needs_a_place(masked):
    with pytest.raises(ConfigError, match="needs a folder"):
        plan([f"tagger.encoder={masked}", "adapt.epochs=1"])


def test_a_student_is_trained_on_the_pool_and_the_run_repeats(tmp_path, masked):
    changes = [
        f"tagger.encoder={masked}",
        "self_training.teachers=2",
        "self_training.sentences=40",
        "self_training.steps=4",
    ]

    both = [run(plan(changes), tmp_path / name) for name in ("one", "two")]

    assert both[0] == both[1]
    plain = run(plan(changes[:1]), tmp_path / "plain")
    assert plain[0].results["test"] != both[0][0].results["test"], "the student is another tagger"


def test_generations_reach_the_student_and_repeat(tmp_path, masked):
    changes = [
        f"tagger.encoder={masked}",
        "self_training.teachers=2",
        "self_training.sentences=40",
        "self_training.steps=4",
    ]
    changes += ["augment.variant=mention", "training.lr=0.01"]
    further = {
        "one": [],
        "two": ["self_training.generations=2"],
        "again": ["self_training.generations=2"],
    }
    for name, more in further.items():
        run(plan([*changes, *more]), tmp_path / name)
    learned = {
        name: (tmp_path / name / "model" / "model.safetensors").read_bytes() for name in further
    }

    assert learned["two"] == learned["again"] != learned["one"]


def test_a_warm_start_leaves_the_last_tagger_as_it_was_so_that_teachers_differ(masked):
    made = plan([f"tagger.encoder={masked}", "training.lr=0.01"])
    fit, rng = made.learner.keywords["tagger"], np.random.default_rng
    first = fit(made.seed_set, 2, rng(0), None)
    before = [p.clone() for p in first.network.parameters()]
    one, two = (fit(made.seed_set, 2, rng(seed), first) for seed in (1, 2))

    weights = [
        torch.cat([p.flatten() for p in tagger.network.parameters()])
        for tagger in (first, one, two)
    ]
    assert all(torch.equal(a, b) for a, b in zip(before, first.network.parameters(), strict=True))
    assert not torch.equal(weights[0], weights[1]) and not torch.equal(weights[1], weights[2])


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("0,500", ScoreRange(0, 500)),
        ("0x,400x", ScoreRange(0, 400, relative=True)),
        ("5%,95%", ScoreRange(0.05, 0.95, True)),
        ("off", None),
    ],
)
def test_score_ranges_are_read(text, means):
    assert parse_score_range(text) == means


@pytest.mark.parametrize(
    "text",
    ["~500", "500", "5%,95", "0,many", "400x", "0,400x", "5%,9x", "0x,x"],
)
def test_other_score_ranges_are_refused(text):
    with pytest.raises(ConfigError, match=r"score.range"):
        parse_score_range(text)


TEACHERS = ["self_training.teachers=2", "self_training.sentences=10", "self_training.steps=1"]


@pytest.mark.parametrize(
    "changes",
    [
        ["query.policy=qbc"],
        ["query.policy=qbc", *TEACHERS],
        [*TEACHERS, "self_training.generations=2"],
        ["training.members=3", "query.policy=qbc"],
        ["augment.variant=mention", "augment.rate=0.5", "augment.guard=2"],
        [
            "augment.variant=mention+sub",
            "augment.rate=0.5",
            "augment.score_range=off",
            "augment.table=trained",
        ],
    ],
)
def test_the_number_of_trainings_is_told_beforehand(changes, tmp_path, masked, monkeypatch):
    changes, trained = [f"tagger.encoder={masked}", *changes], []
    fit = Tagger.fit
    monkeypatch.setattr(
        Tagger, "fit", lambda self, *given, **named: trained.append(1) or fit(self, *given, **named)
    )
    run(plan(changes), tmp_path / "run")

    assert training_runs(load_config("demo", changes=parse_changes([*SMALL, *changes]))) == len(
        trained
    )


@pytest.mark.parametrize("warm", ["loop.warm=false", "loop.warm=true"])
def test_averaged_taggers_differ_and_a_run_with_them_resumes_with_the_same_bytes(
    tmp_path, masked, warm
):
    changes = [f"tagger.encoder={masked}", "training.members=2", "tagger.head=crf", warm]
    run(plan(changes), tmp_path / "whole")

    class Killed(BaseException):
        pass

    def kill(event):
        if event == PhaseStarted(1, "evaluate"):
            raise Killed

    with pytest.raises(Killed):
        run(plan(changes), tmp_path / "broken", kill)
    run(plan(changes), tmp_path / "broken")

    for name in ("rounds.jsonl", "model/0/model.safetensors", "model/1/model.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes()
    first, second = AveragedTagger.load(tmp_path / "whole" / "model").members
    weights = [tagger.network.classifier.weight for tagger in (first, second)]
    assert not torch.equal(*weights)


def test_members_and_teachers_are_refused_together(masked):
    with pytest.raises(ConfigError, match=r"members needs self_training.teachers = 0.*got 3"):
        plan(["training.members=3", *TEACHERS])


def read_by_fits(monkeypatch) -> list[int]:
    """Collect what each training of a tagger reads, counted from its batches."""
    read, step = [], training_loop.plan_steps

    def watched(data, *rest):
        steps = step(data, *rest)
        sizes = [sum(len(window.ids) for window in windows) for windows in data.windows]
        read.append(sum(sizes[i] for one in steps for i in one.chosen))
        return steps

    monkeypatch.setattr(training_loop, "plan_steps", watched)
    return read


@pytest.mark.parametrize(
    "changes",
    [
        [],
        ["training.members=2"],
        ["query.policy=qbc", "training.steps=3"],
        [*TEACHERS, "adapt.epochs=2"],
        ["augment.variant=mention", "augment.rate=0.5", "augment.guard=2"],
    ],
)
def test_a_round_counts_the_pieces_that_all_its_trainings_read(
    changes, tmp_path, masked, monkeypatch
):
    changes, read = [f"tagger.encoder={masked}", *changes], read_by_fits(monkeypatch)

    done = run(plan(changes, tmp_path / "encoders"), tmp_path / "run")

    adapted = [json.loads(path.read_text()) for path in tmp_path.glob("encoders/*/adapt.json")]
    assert len(adapted) == ("adapt.epochs=2" in changes)
    assert sum(line.pieces for line in done) == sum(read) + sum(a["pieces_read"] for a in adapted)
    for described in adapted:
        held_out = described["text"]["pieces"] - described["pieces_read"] / 2
        assert 0 <= held_out < 0.2 * described["text"]["pieces"]


@pytest.mark.parametrize("changes", [["query.policy=qbc"], [*TEACHERS, "adapt.epochs=1"]])
@pytest.mark.parametrize("at", [(0, "evaluate"), (1, "augment"), (1, "evaluate")])
def test_an_interrupted_run_counts_the_same_pieces(changes, at, tmp_path, masked):
    changes = [f"tagger.encoder={masked}", *changes]
    done = run(plan(changes, tmp_path / "encoders"), tmp_path / "whole")

    class Killed(BaseException):
        pass

    def kill(event):
        if event == PhaseStarted(*at):
            raise Killed

    with pytest.raises(Killed):
        run(plan(changes, tmp_path / "others"), tmp_path / "broken", kill)
    again = run(plan(changes, tmp_path / "others"), tmp_path / "broken")

    assert [line.pieces for line in again] == [line.pieces for line in done]
    assert all(line.pieces > 0 for line in done)


def test_pieces_are_unknown_where_an_older_encoder_or_round_does_not_tell(tmp_path, masked):
    changes = [f"tagger.encoder={masked}", "adapt.epochs=1"]
    run(plan(changes, tmp_path / "encoders"), tmp_path / "one")
    (path,) = tmp_path.glob("encoders/*/adapt.json")
    described = json.loads(path.read_text())
    del described["pieces_read"]
    path.write_text(json.dumps(described))

    first, second = run(plan(changes, tmp_path / "encoders"), tmp_path / "two")

    assert first.pieces is None and second.pieces > 0
    (tmp_path / "two" / "rounds" / "001" / "training.json").write_text('{"pieces": "many"}')
    lines = (tmp_path / "two" / "rounds.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "two" / "rounds.jsonl").write_text(lines[0])
    shutil.copytree(tmp_path / "two" / "model", tmp_path / "two" / "rounds" / "001" / "model")
    with pytest.raises(RunError, match=r"training.json is damaged: expected pieces"):
        run(plan(changes, tmp_path / "encoders"), tmp_path / "two")


def test_steps_have_a_floor(masked):
    learner = plan([f"tagger.encoder={masked}", "training.min_steps=50"]).learner
    steps = learner.keywords["steps"]

    assert steps(32) == 50
    assert steps(32 * 60) == 60


@pytest.mark.parametrize("table", ["encoder", "trained", "contextual"])
def test_every_table_knows_the_words_of_later_rounds(table, tmp_path, masked):
    changes = [
        f"tagger.encoder={masked}",
        "augment.variant=sub",
        "augment.score_range=off",
        f"augment.table={table}",
    ]

    rounds = run(plan(changes), tmp_path / "run")

    assert [record.generated > 0 for record in rounds] == [True, True]


@pytest.mark.parametrize(
    "narrow", ["augment.seen=true", "augment.alphabetic=true", "augment.min_count=3"]
)
def test_a_loop_generates_only_the_words_it_may(narrow, tmp_path, masked):
    changes = [f"tagger.encoder={masked}", "augment.variant=sub", "augment.score_range=off"]
    run(plan(changes), tmp_path / "all")
    run(plan([*changes, narrow]), tmp_path / "few")

    counts = Counter(
        token
        for sentence in read_splits("gazette", load_config("demo"))["train"]
        for token in sentence.tokens
    )
    allowed = {
        "seen": lambda word: counts[word] > 0,
        "alphabetic": str.isalpha,
        "min_count": lambda word: counts[word] >= 3,
    }
    fits = allowed[narrow.split(".")[1].split("=")[0]]
    words = {
        name: new_tokens(
            Augmented.from_record(json.loads(line))
            for line in (tmp_path / name / "generated.jsonl").read_text().splitlines()
        )
        for name in ("all", "few")
    }
    assert words["few"] and all(map(fits, words["few"])) and not all(map(fits, words["all"]))
