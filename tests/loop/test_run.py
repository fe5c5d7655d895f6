"""Runs in a directory: the same bytes however often they were killed, and nobody else in there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from seqmix.augment.replacement import Replacement
from seqmix.data.files import locked
from seqmix.errors import RunError
from seqmix.loop.events import PhaseStarted
from seqmix.loop.pool import labels_of
from seqmix.loop.rounds import read_rounds
from seqmix.loop.run import Plan, run
from seqmix.loop.run_inputs import start_files
from seqmix.loop.stopping import Stopping, forecast, kappa
from seqmix.query.spec import PolicySpec
from seqmix.testing import WordTagger
from tests.support.small_loops import corpus, entropy_policy, small_learner

FILES = ("rounds.jsonl", "generated.jsonl")


LOOKING_BACK = PolicySpec(selector=entropy_policy, needs=frozenset({"history"}))


def plan(seed: int = 0, policy=entropy_policy, **changes) -> Plan:
    gold = corpus(80, 1)
    settings = {
        "learner": partial(
            small_learner, augmenter=Replacement("mention"), rate=0.5, policy=policy
        ),
        "seed_set": gold[:10],
        "pool": gold[10:60],
        "label": labels_of(gold),
        "splits": {"dev": gold[60:70], "test": gold[70:]},
        "sizes": lambda r: 5,
        "rounds": 4,
        "load_tagger": WordTagger.load,
        "names": {"arm": "nte+mention", "policy": "nte", "variant": "mention"},
        "seed": seed,
    }
    return Plan(**{**settings, **changes})


def test_a_run_leaves_what_it_promises(tmp_path: Path) -> None:
    done = run(plan(), tmp_path / "run")

    assert [line.labeled for line in done] == [10, 15, 20, 25, 30]
    assert done[-1].stop == "all 4 rounds are done" and all(line.stop is None for line in done[:-1])
    assert all(len(set(line.chosen)) == 5 == len(line.scores) for line in done[1:])
    asked = [id for line in done for id in line.chosen]
    assert len(set(asked)) == len(asked)
    assert read_rounds(tmp_path / "run") == done
    assert len((tmp_path / "run" / "timings.jsonl").read_text().splitlines()) == 5
    generated = [
        json.loads(line) for line in (tmp_path / "run" / "generated.jsonl").read_text().splitlines()
    ]
    assert {record["round"] for record in generated} == {0, 1, 2, 3, 4} and all(
        record["lineage"]["parents"] for record in generated
    )
    assert done[2].forecast.low <= done[2].forecast.gain <= done[2].forecast.high
    assert WordTagger.load(tmp_path / "run" / "model").counts


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(plan(seed), tmp_path / name)

    for file in FILES:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    assert (tmp_path / "a" / "rounds.jsonl").read_bytes() != (
        tmp_path / "c" / "rounds.jsonl"
    ).read_bytes()


class Killed(BaseException):
    """Stands for a kill at a phase: nothing may catch it."""


@pytest.mark.parametrize("policy", [entropy_policy, LOOKING_BACK])
@pytest.mark.parametrize("at", range(1, 26, 3))
def test_a_run_broken_off_at_any_phase_ends_with_the_same_bytes(
    tmp_path: Path, at: int, policy
) -> None:
    run(plan(policy=policy), tmp_path / "whole")
    count = 0

    def kill(event) -> None:
        nonlocal count
        count += 1
        if count == at:
            raise Killed

    with pytest.raises(Killed):
        run(plan(policy=policy), tmp_path / "broken", kill)
    run(plan(policy=policy), tmp_path / "broken")

    for file in FILES:
        assert (tmp_path / "broken" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_run_killed_with_signal_nine_again_and_again_ends_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    run(plan(), tmp_path / "whole")
    code = "import sys; from tests.loop.test_run import *; run(plan(), Path(sys.argv[1]))"
    rng = np.random.default_rng(0)
    kills = 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "killed")], stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + float(rng.uniform(0.3, 1.6))
        while process.poll() is None and time.monotonic() < deadline and kills < 6:
            time.sleep(0.005)
        if process.poll() is None and kills < 6:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        if process.wait() == 0:
            break

    for file in FILES:
        assert (tmp_path / "killed" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_start_that_was_killed_before_its_config_was_written_starts_again(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text("{")
    (tmp_path / ".config.toml.12.part").write_text("see")

    start_files(tmp_path, "seed = 0\n", {"python": "3"})

    assert (tmp_path / "config.toml").read_text() == "seed = 0\n" and json.loads(
        (tmp_path / "environment.json").read_text()
    )


def test_models_that_a_kill_left_in_earlier_rounds_are_cleared(tmp_path: Path) -> None:
    run(plan(rounds=1), tmp_path)
    (tmp_path / "rounds" / "000" / "model").mkdir()
    (tmp_path / "rounds" / ".000.12.part").mkdir()

    run(plan(rounds=1), tmp_path)

    assert not list(tmp_path.glob("rounds/*/model")) and not list(tmp_path.glob("rounds/.*"))


def broken_off(folder: Path, phase: str, **changes) -> None:
    """A run killed when round 2 came to a phase."""

    def kill(event) -> None:
        if event == PhaseStarted(2, phase):
            raise Killed

    with pytest.raises(Killed):
        run(plan(**changes), folder, kill)


@pytest.mark.parametrize(
    "name",
    ["001/generated.jsonl", "001/predictions.json", "002/chosen.json", "002/augmentation.json"],
)
@pytest.mark.parametrize("damage", ["gone", "half", "empty", "another", "zeros"])
def test_a_damaged_file_of_a_round_is_named_and_never_passed_over(
    tmp_path: Path, name: str, damage: str
) -> None:
    broken_off(tmp_path, "train", policy=LOOKING_BACK)
    path = tmp_path / "rounds" / name
    whole = path.read_text()
    path.write_text(
        {"half": whole[: len(whole) // 2], "another": "[]", "zeros": "\0" * len(whole)}.get(
            damage, ""
        )
    )
    if damage == "gone":
        path.unlink()

    if damage == "gone" and name.startswith("002"):  # not finished: done again
        assert run(plan(policy=LOOKING_BACK), tmp_path)[-1].stop
    else:
        with pytest.raises(RunError, match=rf"{name} is damaged: [^/]*; restore it"):
            run(plan(policy=LOOKING_BACK), tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "[1]\n",
        '{"format_version": 1, "round": 1}\n',
        "\xff\n",
        '{"format_version": 1, "round": 0}\n',
    ],
)
def test_rounds_that_are_not_whole_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "rounds.jsonl").write_bytes(text.encode("latin-1"))

    with pytest.raises(RunError, match=r"rounds\.jsonl is damaged"):
        read_rounds(tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("round", 0), ("round", "1"), ("labeled", "15"), ("tokens", None), ("generated", 1.5),
        ("chosen", "ab"), ("chosen", [1]), ("augmentation", {}), ("augmentation", []),
        ("stop", 5), ("agreement", "x"), ("forecast", {}), ("forecast", {"gain": 1, "low": 0}),
        ("forecast", ...), ("stop", ...), ("agreement", ...), ("dev", {"f1": "x"}), ("test", []),
    ],
)  # fmt: skip
def test_a_round_with_a_key_of_another_kind_is_named_by_line_and_key(
    tmp_path: Path, key: str, value: object
) -> None:
    run(plan(rounds=1), tmp_path)
    path = tmp_path / "rounds.jsonl"
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    second = {
        **{name: known for name, known in second.items() if name != key},
        **({} if value is ... else {key: value}),
    }
    path.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")

    with pytest.raises(RunError, match=f"line 2 has no round 1 with a good '{key}'"):
        read_rounds(tmp_path)


def test_the_seconds_of_the_phases_are_those_that_passed(tmp_path: Path) -> None:
    start = time.monotonic()
    run(plan(rounds=1), tmp_path)
    passed = time.monotonic() - start

    timings = [
        json.loads(line)["seconds"]
        for line in (tmp_path / "timings.jsonl").read_text().splitlines()
    ]
    seconds = [second for line in timings for second in line.values()]
    assert seconds and min(seconds) >= 0 and sum(seconds) <= passed + 0.001 * len(seconds)


def test_a_line_separator_inside_a_token_survives_a_kill(tmp_path: Path) -> None:
    gold = [
        replace(s, tokens=(*s.tokens[:-1], s.tokens[-1] + "\u2028"), id=s.id + "\x85")
        for s in corpus(80, 1)
    ]
    odd = {"seed_set": gold[:10], "pool": gold[10:60], "label": labels_of(gold)}
    run(plan(**odd), tmp_path / "whole")
    broken_off(tmp_path / "broken", "evaluate", **odd)

    run(plan(**odd), tmp_path / "broken")

    for file in FILES:
        assert (tmp_path / "broken" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    with locked(tmp_path / "run"), pytest.raises(RunError, match="another process is working"):
        run(plan(), tmp_path / "run")


def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    run(plan(), tmp_path / "run")
    before = (tmp_path / "run" / "rounds.jsonl").read_bytes()

    assert run(plan(), tmp_path / "run")[-1].stop == "all 4 rounds are done"
    assert (tmp_path / "run" / "rounds.jsonl").read_bytes() == before


def test_another_version_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    run(plan(), tmp_path / "run")
    path = tmp_path / "run" / "rounds.jsonl"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 99'))
    with pytest.raises(
        RunError, match=r"has format 99, written by a newer seqmix; .* upgrade seqmix"
    ):
        run(plan(), tmp_path / "run")
    path.write_text("{broken\n")
    with pytest.raises(RunError, match="is damaged"):
        run(plan(), tmp_path / "run")


def test_a_directory_with_another_config_or_other_files_is_refused(tmp_path: Path) -> None:
    start_files(tmp_path / "run", "seed = 0\n", {"python": "3"})
    start_files(tmp_path / "run", "seed = 0\n", {"python": "3"})
    with pytest.raises(RunError, match="another config"):
        start_files(tmp_path / "run", "seed = 1\n", {})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match="not empty"):
        start_files(tmp_path / "other", "seed = 0\n", {})


@pytest.mark.parametrize(
    ("stopping", "reason"),
    [
        (Stopping(sentences=20), "budget of 20 sentences"),
        (Stopping(tokens=60), "budget of 60 tokens"),
        (Stopping(agreement=0.01, patience=2), "predictions have settled"),
        (Stopping(uncertainty=5.0), "no uncertain sentence is left"),
    ],
)
def test_a_run_stops_early_and_says_why(tmp_path: Path, stopping: Stopping, reason: str) -> None:
    done = run(plan(stopping=stopping), tmp_path / "run")

    assert reason in done[-1].stop and len(done) < 5


def test_the_guard_turns_augmentation_off_when_it_hurts_and_says_so(tmp_path: Path) -> None:
    done = run(
        plan(guard=lambda labeled, number: {"helps": number % 2 == 0, "gain": -0.1}),
        tmp_path / "run",
    )

    assert [line.augmentation["generated"] > 0 for line in done] == [
        True,
        False,
        True,
        False,
        True,
    ]
    assert done[1].guard["gain"] == -0.1


def test_kappa_is_one_for_equal_zero_for_chance() -> None:
    assert kappa(["O", "B"], ["O", "B"]) == 1 and kappa(["O"], ["O"]) == 1 and kappa([], []) == 1
    assert kappa(["O", "O", "B", "B"], ["O", "B", "O", "B"]) == pytest.approx(0)


def test_the_forecast_finds_a_power_law_again() -> None:
    n = [200, 300, 400, 500]
    f1 = [0.9 - 5 * x**-0.5 for x in n]
    made = forecast(n, f1, 600, np.random.default_rng(0))

    assert made.gain == pytest.approx((0.9 - 5 * 600**-0.5) - f1[-1], abs=1e-6)
    assert forecast(n[:2], f1[:2], 600, np.random.default_rng(0)) is None


@pytest.mark.parametrize("exponent", [0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0])
def test_the_forecast_of_an_exact_power_law_is_exact(exponent: float) -> None:
    labeled = [10, 20, 40, 80]

    found = forecast(
        labeled, [0.9 - 0.6 * n**-exponent for n in labeled], 160, np.random.default_rng(0)
    )

    assert found is not None and found.gain == pytest.approx(0.6 * (80**-exponent - 160**-exponent))


def test_a_description_that_asks_for_more_than_the_settings_is_refused(tmp_path: Path) -> None:
    def kill(event) -> None:
        if event == PhaseStarted(1, "train"):
            raise Killed

    with pytest.raises(Killed):
        run(plan(), tmp_path, kill)
    path = tmp_path / "rounds" / "001" / "augmentation.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text()), "asked": 10**9})
    )  # would be trained on for years

    with pytest.raises(
        RunError,
        match=r"augmentation\.json is damaged: "
        r"it was asked for 1000000000 sentences instead of 2; ",
    ):
        run(plan(), tmp_path)
