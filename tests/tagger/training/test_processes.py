"""One training in several processes: what `accelerate launch` starts learns what one process learns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seqmix.app.cli import run
from seqmix.data import formats
from seqmix.errors import ConfigError
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.training import loop as training
from seqmix.tagger.training import processes
from seqmix.tagger.training.processes import ALONE, Processes, joined, left_alone
from tests.support import tiny, together

STILL = [name for name, case in together.CASES.items() if not case.dropping]
LAUNCHER = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "ACCELERATE_USE_CPU",
)


@contextmanager
def launched(*command: object) -> Iterator[subprocess.Popen[str]]:
    """Two processes on the CPU. subtle: `--cpu` would start one; `--multi_gpu` starts two wherever it is."""
    pytest.importorskip("accelerate")
    how = (
        "--multi_gpu",
        "--num_processes",
        "2",
        "--num_machines",
        "1",
        "--mixed_precision",
        "no",
        "--dynamo_backend",
        "no",
    )
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "accelerate.commands.launch",
            *how,
            "--main_process_port",
            "0",
            *map(str, command),
        ],
        env={
            **{name: value for name, value in os.environ.items() if name not in LAUNCHER},
            "OMP_NUM_THREADS": "1",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def command(bert, tmp_path_factory):
    """`seqmix train` in two processes, and the folder it was given."""
    folder = tmp_path_factory.mktemp("command")
    data, out = folder / "data.conll", folder / "models" / "one"
    out.parent.mkdir()
    formats.write(tiny.toy(9), data)
    options = ("--encoder", bert, "--steps", 3, "--batch-size", 4, "--device", "cpu")
    with launched("-m", "seqmix", "train", data, "--out", out, "--dev", data, *options) as process:
        yield process, out


@pytest.fixture(scope="module")
def two(
    still_bert, bert, tmp_path_factory, command
):  # that one may start meanwhile: importing takes the time
    """What two processes trained, and what each of them saw."""
    out = tmp_path_factory.mktemp("two")
    with launched("-m", together.__name__, still_bert, bert, out) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return out, [json.loads((out / f"{index} of 2.json").read_text()) for index in range(2)]


@pytest.mark.parametrize("name", STILL)
def test_two_processes_learn_what_one_learns(name, two, still_bert):
    out, (told, _) = two
    alone, expected = together.train(together.CASES[name], {False: still_bert})

    assert told[name]["losses"] == pytest.approx(expected["losses"], rel=1e-5)
    assert len(told[name]["losses"]) == together.CASES[name].steps
    found = Tagger.load(out / name, "cpu")._network.state_dict()
    for key, weight in alone._network.state_dict().items():
        torch.testing.assert_close(found[key], weight, atol=1e-5, rtol=0, msg=key)


def test_all_processes_see_the_same_losses_and_end_with_the_same_bytes(two):
    _, (one, other) = two
    for name in together.CASES:
        assert one[name]["losses"] == other[name]["losses"]
        assert one[name]["weights"] == other[name]["weights"]


def test_the_same_seed_gives_the_same_bytes_with_dropout_too(two, bert):
    _, (told, _) = two
    _, alone = together.train(together.CASES["dropout"], {True: bert})

    assert told["dropout"] == told["dropout again"]
    assert (
        told["dropout"]["losses"] != alone["losses"]
    )  # the same batches; what drops out is drawn by other processes


def test_each_process_draws_its_own_dropout_from_the_runs_seed(two, bert):
    _, told = two
    _, alone = together.train(together.CASES["dropout"], {True: bert})
    (seed,) = alone["seeds"]

    assert [own["dropout"]["seeds"] for own in told] == [[seed], [seed + 1]]


def test_processes_that_read_different_data_are_refused(two):
    _, told = two
    for own in told:
        assert own["different data"]["error"].startswith(
            "the 2 processes have different data or seeds; give all machines"
        )


def test_the_command_trains_in_two_processes_and_one_of_them_speaks_and_writes(command):
    process, out = command
    result, said = process.communicate(timeout=300)

    assert process.returncode == 0, said
    assert said.count("with a linear head on 9 sentences, 3 steps on cpu, in 2 processes") == 1
    assert said.count("training: 3 of 3 steps") == said.count("written to") == 1
    assert result.count("accuracy") == 1
    assert [path.name for path in out.parent.iterdir()] == ["one"]
    assert len(list(Tagger.load(out, "cpu").predict(tiny.toy(2)))) == 2


@pytest.mark.slow
def test_an_error_ends_all_processes_and_is_said_once(tmp_path):
    with launched(
        "-m",
        "seqmix",
        "train",
        "gazette:train",
        "--out",
        tmp_path / "out",
        "--head",
        "none",
        "--device",
        "cpu",
    ) as process:
        _, said = process.communicate(timeout=300)

    assert process.returncode != 0
    assert said.count("error: there is no head 'none'") == said.count("error: ") == 1
    assert not (tmp_path / "out").exists()


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=9),
    st.integers(2, 5),
)
def test_the_shares_of_a_batch_add_up_to_it(labels, count):
    rows = [np.where(np.array(own)[:, None], [[0.5, 0.5]], np.nan) for own in labels]
    losses = [float(i + 1) * sum(own) for i, own in enumerate(labels)]  # a sum over labeled words
    batch = list(range(len(labels)))
    shares = [Processes(index, count).share(batch, rows) for index in range(count)]

    def mean(sentences):
        return sum(losses[i] for i in sentences) / max(1, sum(sum(labels[i]) for i in sentences))

    assert sum(mean(own) * weight for own, weight in shares) == pytest.approx(mean(batch))
    assert sorted(i for own, weight in shares if weight for i in own) == batch
    assert all(own for own, _ in shares)


@pytest.fixture
def environment(monkeypatch):
    for name in LAUNCHER:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(processes, "_PATIENCE", 0.0)
    return lambda **given: [monkeypatch.setenv(name, value) for name, value in given.items()]


def test_without_a_launcher_a_process_is_alone(environment):
    with joined("cpu") as found:
        assert found == Processes(0, 1, "cpu")
        assert found.share([3, 1, 2], []) == ([3, 1, 2], 1.0)
        assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(
    ("given", "device", "message"),
    [
        ({"WORLD_SIZE": "two"}, None, "WORLD_SIZE is 'two'; it must be a whole number"),
        (
            {"WORLD_SIZE": "2"},
            None,
            "WORLD_SIZE is set but RANK is not; start with `accelerate launch`, or unset WORLD_SIZE",
        ),
        (
            {"WORLD_SIZE": "2", "RANK": "0"},
            "cuda:1",
            "the device is 'cuda:1', but there are 2 processes, each with its own; give cpu or cuda",
        ),
        (
            {"WORLD_SIZE": "99", "RANK": "1", "LOCAL_WORLD_SIZE": "99"},
            "cuda",
            "99 processes want a GPU each and torch sees",
        ),
    ],
)
def test_an_environment_that_cannot_be_right_is_an_error_that_says_what_to_do(
    environment, given, device, message
):
    environment(**given)
    with pytest.raises(ConfigError) as caught, joined(device):
        pass

    assert message in str(caught.value)


def test_mixup_is_refused_in_several_processes():
    with pytest.raises(ConfigError, match=r"mixup is 8\.0 and there are 2 processes"):
        training.train(
            None,
            [],
            [],
            Settings(mixup=8.0),
            1e-3,
            np.random.default_rng(0),
            processes=Processes(0, 2),
        )


def test_a_launcher_that_starts_one_process_of_several_is_remarked(
    environment, bert, tmp_path, capfd
):
    """What `accelerate launch --cpu --num_processes 2` puts into the environment."""
    assert not left_alone()
    environment(ACCELERATE_USE_CPU="True", MASTER_PORT="29500")
    assert left_alone()

    formats.write(tiny.toy(4), tmp_path / "data.conll")
    assert (
        run(
            [
                "train",
                str(tmp_path / "data.conll"),
                "--out",
                str(tmp_path / "out"),
                "--encoder",
                bert,
                "--steps",
                "1",
            ]
        )
        == 0
    )
    assert "accelerate has started one process only" in capfd.readouterr().err


def test_alone_adding_up_changes_nothing():
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = gradient = torch.full((2,), 3.0)

    assert ALONE.add_up([weight], torch.tensor(2.0)) == 2
    assert weight.grad is gradient
