"""The results of sweeps as one table: a row for each round of each finished run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from seqmix.app.config import load_config
from seqmix.app.provenance import DATA, MODELS, summary
from seqmix.app.sweep.spec import Experiment, Job
from seqmix.data.files import write_text
from seqmix.errors import DataError, RunError
from seqmix.loop.rounds import read_object, read_rounds, read_timings
from seqmix.loop.run_inputs import read_inputs

Row = dict[str, Any]
Runs = dict[tuple[str, str, int], list[Row]]  # by experiment, arm and seed

DIGESTS = ("data_digest", "models_digest")
_LATER = (*DIGESTS, "pieces")  # columns that older tables lack
_RENAMED = {("preset", "best"): "few-labels", ("variant", "best"): "mention+sub"}  # old rows
_TEXT = (
    "experiment",
    "arm",
    "config",
    "data",
    "preset",
    "policy",
    "variant",
    "encoder",
    *DIGESTS,
    "device",
    "finished",
)
_WHOLE = (
    *("seed", "round", "labeled", "tokens", "spans", "generated", "asked", "steps", "pieces"),
    "workers",
)
COLUMNS = (
    "experiment", "arm", "seed", "config", "data", "preset", "policy", "variant", "encoder",
    *DIGESTS,
    "round", "labeled", "tokens", "spans", "generated", "asked", "accepted",
    "dev_f1", "test_f1", "dev_precision", "dev_recall", "test_precision", "test_recall",
    "steps", "pieces", "seconds", "device", "workers", "finished",
)  # fmt: skip


def rows_of(job: Job, folder: Path) -> list[Row]:
    """Return the rows of a finished run; one with other settings is refused."""
    rounds, timings = read_rounds(folder), read_timings(folder)
    config = load_config(None, folder / "config.toml")
    if config != job.config or rounds[0].names.get("data", job.arm.data) != job.arm.data:
        raise RunError(
            f"{folder} was run with another config or other data than {job} has now; "
            "give another --out, or move it away"
        )
    about, inputs = read_object(folder / "environment.json"), read_inputs(folder)
    ended = datetime.fromtimestamp((folder / "rounds.jsonl").stat().st_mtime, UTC).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    rows: list[Row] = []
    asked = 0
    for record in rounds:
        asked += record.augmentation["asked"]
        figures = {
            f"{split}_{name}": scores.get(name)
            for split, scores in record.results.items()
            for name in ("f1", "precision", "recall")
        }
        row = {
            "experiment": job.experiment, "arm": job.arm.name, "seed": job.seed,
            "config": job.arm.digest, "data": job.arm.data, "preset": job.arm.preset,
            "policy": config.query.policy, "variant": config.augment.variant,
            "encoder": config.tagger.encoder,
            "data_digest": summary(inputs, DATA), "models_digest": summary(inputs, MODELS),
            "round": record.number, "labeled": record.labeled, "tokens": record.tokens,
            "spans": record.spans, "generated": record.generated, "asked": asked,
            "accepted": _digits(record.acceptance, 4),
            **{name: _digits(value, 6) for name, value in figures.items()},
            "steps": record.steps, "pieces": record.pieces,
            "seconds": _digits(sum(timings.get(record.number, {}).values()), 2),
            "device": about.get("device"), "workers": about.get("workers"), "finished": ended,
        }  # fmt: skip
        rows.append({name: row.get(name) for name in COLUMNS})
    return rows


def read_results(paths: Iterable[Path]) -> list[Row]:
    """Return the rows of several tables; a run in more than one is taken from the latest."""
    runs: Runs = {}
    for path in paths:
        for key, rows in read_runs(path).items():
            if key not in runs or str(runs[key][0]["finished"]) <= str(rows[0]["finished"]):
                runs[key] = rows
    return ordered(runs)


def read_runs(path: Path) -> Runs:
    """Return the rows of a table by run."""
    runs: Runs = {}
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the results: {error}", path) from error
    for number, record in enumerate(csv.DictReader(io.StringIO(text)), 2):
        try:
            row = {
                name: _value(name, record.get(name, "") if name in _LATER else record[name])
                for name in COLUMNS
            }
            row |= {name: int(record[name]) for name in ("seed", "round")}  # never empty
            row |= {
                name: _RENAMED.get((name, row[name]), row[name]) for name in ("preset", "variant")
            }
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"expected the results of a sweep, with the columns {', '.join(COLUMNS)}",
                path,
                number,
                str(error),
            ) from error
        runs.setdefault((row["experiment"], row["arm"], row["seed"]), []).append(row)
    return runs


def ordered(
    runs: Mapping[tuple[str, str, int], Sequence[Row]], experiment: Experiment | None = None
) -> list[Row]:
    """Return all rows by arm, as the sweep file has them, then seed, then round."""
    names = dict.fromkeys(
        [(experiment.name, arm.name) for arm in experiment.arms] if experiment is not None else []
    )
    names |= dict.fromkeys((name, arm) for name, arm, _ in runs)
    place = {name: number for number, name in enumerate(names)}
    keys = sorted(runs, key=lambda key: (place[key[0], key[1]], key[2]))
    return [row for key in keys for row in sorted(runs[key], key=lambda row: int(row["round"]))]


def write_results(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, out.getvalue())


def _value(name: str, text: str) -> Any:
    if name in _TEXT:
        return text or None
    return None if text == "" else int(text) if name in _WHOLE else float(text)


def _digits(value: float | None, digits: int) -> float | None:
    return None if value is None else round(float(value), digits)
