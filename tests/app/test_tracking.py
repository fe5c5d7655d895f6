"""Tracking with the real MLflow and TensorBoard."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from seqmix.app.config import Config
from seqmix.app.tracking import tracker
from seqmix.errors import ConfigError, MissingExtraError
from seqmix.loop.round_record import RoundRecord

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


def test_off_does_nothing_and_an_unknown_tracker_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker("none", tmp_path, Config())(RECORDS[0])
    assert not list(tmp_path.iterdir())
    with pytest.raises(ConfigError, match="none, mlflow, tensorboard"):
        tracker("wandb", tmp_path, Config())
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"seqmix\[track\]"):
        tracker("mlflow", tmp_path, Config())
