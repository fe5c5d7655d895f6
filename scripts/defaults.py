"""The tables of docs/defaults.md: `python scripts/defaults.py` prints them.

They are made from results/defaults/*.csv.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from statistics import mean

import numpy as np

RESULTS = Path(__file__).parents[1] / "results" / "defaults"
CORPORA = {
    "conll03": "CoNLL-03",
    "wnut17": "WNUT-17",
    "genia2011": "GENIA",
    "btc": "BTC",
    "wikigold": "Wikigold",
    "m2e2": "M2E2",
}
SIZES, STEPS = (50, 100, 200, 700), (100, 300, 600, 1000)
LADDER = (
    "plain linear", "plain", "mention", "sub", "adapted", "self-training",
    "adapted + self-training", "adapted + self-training + mention",
    "adapted + self-training + mention and sub",
)  # fmt: skip
RATES = {"0.0001": "1e-4", "0.0002": "2e-4", None: "3e-4", "0.0006": "6e-4"}
Runs = dict[str, dict[int, float]]  # F1 by arm and seed


def read(name: str, split: str = "dev") -> Runs:
    """The F1 points of a sweep's runs."""
    runs: Runs = defaultdict(dict)
    with (RESULTS / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            runs[row["arm"]][int(row["seed"])] = 100 * float(row[f"{split}_f1"])
    return runs


def plain_table() -> list[str]:
    """Plain training by size, steps and head: the mean over corpora and seeds."""
    runs = read("defaults-plain")
    lines = [
        f"| sentences | head | {' | '.join(f'{steps} steps' for steps in STEPS)} |",
        "|---:|---|" + "---:|" * len(STEPS),
    ]
    for size in SIZES:
        for head in ("linear", "crf"):
            arms = [
                [f"{corpus} seed_size={size} min_steps={steps} head={head}" for corpus in CORPORA]
                for steps in STEPS
            ]
            cells = [
                f"{mean(f1 for arm in column for f1 in runs[arm].values()):.1f}" for column in arms
            ]
            lines.append(f"| {size} | {head} | {' | '.join(cells)} |")
    return lines


def rates_table() -> list[str]:
    """Return the dev F1 of plain training at 200 sentences by learning rate: mean over corpora."""
    plain, runs = read("defaults-plain"), read("defaults-rates")
    lines = ["| learning rate | 300 steps | 1000 steps |", "|---:|---:|---:|"]
    for rate, name in RATES.items():
        cells = []
        for steps in (300, 1000):
            arms = (
                [plain[f"{corpus} seed_size=200 min_steps={steps} head=crf"] for corpus in CORPORA]
                if rate is None
                else [runs[f"{corpus} lr={rate} min_steps={steps}"] for corpus in CORPORA]
            )
            cells.append(f"{mean(mean(arm.values()) for arm in arms):.1f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def sizes_table() -> list[str]:
    """Return what 1e-4 adds to 3e-4 in plain training by size and corpus: dev F1, one seed."""
    plain, runs = read("defaults-plain"), read("plain-sizes")
    head = ["sentences", "steps", *CORPORA.values(), "mean"]
    lines = [f"| {' | '.join(head)} |", "|" + "---:|" * len(head)]
    for size, steps in ((50, 300), (700, 600)):
        gains = [
            _gain(
                runs[f"{size} sentences + 1e-4 + {steps} steps data={corpus}"],
                plain[f"{corpus} seed_size={size} min_steps={steps} head=crf"],
            )
            for corpus in CORPORA
        ]
        cells = [f"{gain:+.1f}".replace("-", "−") for gain in (*gains, mean(gains))]
        lines.append(f"| {size} | {steps} | {' | '.join(cells)} |")
    return lines


def ladder_table(split: str) -> list[str]:
    """Each part of the recipe in turn, by corpus, at 50 and at 200 sentences."""
    runs = read("defaults", split)
    lines = ["| | " + " | ".join(CORPORA.values()) + " |", "|---|" + "---:|" * len(CORPORA)]
    for size in (50, 200):
        for part in LADDER:
            cells = [f"{mean(runs[f'{corpus} {size} {part}'].values()):.1f}" for corpus in CORPORA]
            lines.append(f"| {size}: {part} | {' | '.join(cells)} |")
    return lines


def gains_table() -> list[str]:
    """What a part adds to the arm before it: the mean of paired differences over corpora, dev."""
    runs = read("defaults")
    recipe = "adapted + self-training"
    steps = (
        ("a CRF", "plain", "plain linear"),
        ("mention", "mention", "plain"),
        ("sub", "sub", "plain"),
        ("adapting", "adapted", "plain"),
        ("self-training, on an adapted encoder", recipe, "adapted"),
        ("mention, in the recipe", f"{recipe} + mention", recipe),
        ("sub on spans, in the recipe", f"{recipe} + mention and sub", f"{recipe} + mention"),
    )
    lines = [
        f"| what is added | {' | '.join(f'{size}' for size in SIZES)} |",
        "|---|" + "---:|" * len(SIZES),
    ]
    for name, arm, control in steps:
        cells = []
        for size in SIZES:
            by_corpus = [
                _gain(runs[f"{corpus} {size} {arm}"], runs[f"{corpus} {size} {control}"])
                for corpus in CORPORA
            ]
            cells.append(
                f"{mean(by_corpus):+.1f} ({min(by_corpus):+.1f} to {max(by_corpus):+.1f})".replace(
                    "-", "−"
                )
            )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _gain(arm: dict[int, float], control: dict[int, float]) -> float:
    return mean(arm[seed] - control[seed] for seed in arm.keys() & control.keys())


def pairing_line() -> str:
    """How alike `none` and `sub` are over the seeds."""
    runs = read("pairing", "test")
    none, sub = (
        np.array([runs[arm][seed] for seed in sorted(runs["none"])]) for arm in ("none", "sub")
    )
    together, apart = np.corrcoef(none, sub)[0, 1], (sub - none).std(ddof=1)
    mean = f"{(sub - none).mean():+.2f}"
    line = f"correlation {together:.2f}, difference {mean} with a standard deviation of {apart:.2f}"
    return line.replace("-", "−")


if __name__ == "__main__":
    for lines in (
        plain_table(),
        rates_table(),
        sizes_table(),
        gains_table(),
        ladder_table("dev"),
        ladder_table("test"),
        [pairing_line()],
    ):
        print("\n".join(lines), end="\n\n")
