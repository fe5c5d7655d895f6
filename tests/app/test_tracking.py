"""Tracking with the real MLflow and TensorBoard."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seqmix.app.config import Config
from seqmix.app.tracking import tracker
from seqmix.errors import ConfigError, MissingExtraError
from seqmix.loop.round_record import RoundRecord
from tests.support.waiting import until

RECORDS = [
    RoundRecord(
        n, 0, {}, 10 * n, 90 * n, 7 * n, n, None, [], [], {"asked": n}, None, None,
        {"test": {"f1": 0.3 * n, "precision": 0.4, "recall": 0.5, "macro_f1": 0.2}},
        stop=None if n == 1 else "done",
    )
    for n in (1, 2)
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_tensorboard_gets_the_curve(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs the extra track")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    track = tracker("tensorboard", tmp_path, Config())
    for record in RECORDS:
        track(record)

    found = {}
    for file in (tmp_path / "tensorboard").iterdir():
        events = EventAccumulator(str(file))
        events.Reload()
        found |= {event.step: round(event.value, 3) for event in events.Scalars("test/f1")}
    assert found == {10: 0.3, 20: 0.6}


@pytest.mark.filterwarnings("ignore")
def test_mlflow_gets_the_curve_and_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow", reason="needs the extra track")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())

    track = tracker("mlflow", tmp_path, Config())
    for record in RECORDS:
        track(record)

    client = mlflow.MlflowClient()
    (experiment,) = [e for e in client.search_experiments() if e.name.startswith("seqmix")]
    (run,) = client.search_runs([experiment.experiment_id])
    assert [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, "test_f1")] == [
        (10, 0.3),
        (20, 0.6),
    ]
    assert run.data.params["augment.rate"] == "0.2" and run.info.status == "FINISHED"


def entries(file: Path) -> Iterator[Any]:
    """What Weights & Biases has written into its file so far."""
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    store = DataStore()
    store.open_for_scan(str(file))
    while (data := store.scan_data()) is not None:
        yield Record.FromString(data)


@pytest.mark.filterwarnings("ignore")
def test_wandb_gets_the_curve_and_the_settings_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="needs the extra track")
    monkeypatch.setenv("WANDB_MODE", "offline")
    for name in ("WANDB_CACHE_DIR", "WANDB_CONFIG_DIR", "WANDB_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "settings"))

    track = tracker("wandb", tmp_path, Config())
    assert not (tmp_path / "wandb").exists()  # a run directory must be empty before it starts
    for record in RECORDS:
        track(record)

    (file,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    until(lambda: any(e.WhichOneof("record_type") == "exit" for e in entries(file)))
    config = {
        item.key: json.loads(item.value_json)
        for entry in entries(file)
        for item in entry.run.config.update
    }
    logged = [
        {
            (item.key or "/".join(item.nested_key)): json.loads(item.value_json)
            for item in entry.history.item
        }
        for entry in entries(file)
        if entry.history.item
    ]
    curve = [(values["_step"], values["test/f1"], values["generated"]) for values in logged]
    assert curve == [(10, 0.3, 1.0), (20, 0.6, 2.0)]
    assert config["augment"]["rate"] == 0.2


def test_wandb_without_an_account_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="needs the extra track")
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_MODE", "online")
    code = (
        "import sys, pathlib; from seqmix.app.config import Config; "
        "from seqmix.app.tracking import tracker; "
        "tracker('wandb', pathlib.Path(sys.argv[1]), Config())"
    )

    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )

    assert "run wandb login, or set WANDB_MODE=offline" in ended.stderr


def test_off_does_nothing_and_an_unknown_tracker_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker("none", tmp_path, Config())(RECORDS[0])
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="none, mlflow, tensorboard, wandb; got 'wanda'"):
        tracker("wanda", tmp_path, Config())
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"seqmix\[track\]"):
        tracker("mlflow", tmp_path, Config())
