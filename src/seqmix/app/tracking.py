"""Send the figures of a run to MLflow, TensorBoard or Weights & Biases (extra `track`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from seqmix.app.config import Config
from seqmix.errors import ConfigError, MissingExtraError
from seqmix.extras import import_extra
from seqmix.loop.round_record import RoundRecord

TRACKERS = ("none", "mlflow", "tensorboard", "wandb")
Track = Callable[[RoundRecord], None]


def tracker(kind: str, folder: Path, config: Config) -> Track:
    """Return a function to call with each finished round.

    TensorBoard writes into the run directory, Weights & Biases keeps its copy there, MLflow writes
    where its settings say.
    """
    if kind == "none":
        return lambda record: None
    if kind == "tensorboard":
        return _tensorboard(folder / "tensorboard")
    if kind == "mlflow":
        return _mlflow(config)
    if kind == "wandb":
        return _wandb(folder, config)
    raise ConfigError(f"--track must be one of {', '.join(TRACKERS)}; got {kind!r}")


def figures(record: RoundRecord) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a round worth a curve."""
    for split, scores in record.results.items():
        for name in ("f1", "precision", "recall", "macro_f1"):
            yield f"{split}/{name}", float(scores[name])
    for name in ("labeled", "tokens", "spans", "generated"):
        yield name, float(getattr(record, name))


def _tensorboard(folder: Path) -> Track:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("track", "tracking with TensorBoard") from None

    def track(record: RoundRecord) -> None:
        with SummaryWriter(str(folder)) as writer:
            for name, value in figures(record):
                writer.add_scalar(name, value, record.labeled)

    return track


def _mlflow(config: Config) -> Track:
    try:
        import mlflow
    except ImportError:
        raise MissingExtraError("track", "tracking with MLflow") from None
    client = mlflow.MlflowClient()
    name = f"seqmix {config.digest}"
    earlier = client.get_experiment_by_name(name)
    experiment = client.create_experiment(name) if earlier is None else earlier.experiment_id
    run = client.create_run(experiment, run_name=f"{config.arm} seed {config.seed}").info.run_id
    for section, values in config.model_dump().items():
        for key, value in values.items() if isinstance(values, dict) else [("", values)]:
            client.log_param(run, f"{section}.{key}".rstrip("."), value)

    def track(record: RoundRecord) -> None:
        for name, value in figures(record):
            client.log_metric(run, name.replace("/", "_"), value, step=record.labeled)
        if record.stop is not None:
            client.set_terminated(run)

    return track


def _wandb(folder: Path, config: Config) -> Track:
    wandb = import_extra("wandb", "track", "tracking with Weights & Biases")
    if wandb.setup().settings.mode == "online" and not wandb.api.api_key:
        raise ConfigError(
            "Weights & Biases does not know you: run wandb login, "
            "or set WANDB_MODE=offline to keep the figures in the run directory"
        )
    runs: list[Any] = []  # begun with the first round, when there is a directory

    def track(record: RoundRecord) -> None:
        if not runs:
            runs.append(
                wandb.init(
                    project="seqmix",
                    group=f"{config.arm} {config.digest}",
                    name=f"{config.arm} seed {config.seed}",
                    config=config.model_dump(mode="json"),
                    dir=str(folder),
                    settings=wandb.Settings(
                        silent=True, console="off", disable_git=True, save_code=False
                    ),
                )
            )
        runs[0].log(dict(figures(record)), step=record.labeled)
        if record.stop is not None:
            runs[0].finish()

    return track
