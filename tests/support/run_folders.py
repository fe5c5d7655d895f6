"""Run directories as the loop leaves them, made up: rising curves, a gain, generated sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.data.augmented import Augmented, Lineage
from seqmix.data.sentence import Sentence

TYPES = {"PER": 0.06, "ORG": -0.05, "LOC": 0.03, "MISC": -0.12}
PARENTS = [
    Sentence(
        "train:7",
        ("Lena", "Haug", "left", "Oslo", "for", "Rome", "."),
        ("B-PER", "I-PER", "O", "B-LOC", "O", "B-LOC", "O"),
    ),
    Sentence(
        "train:9",
        ("Acme", "hired", "Mary", "Smith", "in", "Bergen", "."),
        ("B-ORG", "O", "B-PER", "I-PER", "O", "B-LOC", "O"),
    ),
]


def run_directory(
    path: Path,
    arm: str = "nte",
    seed: int = 0,
    rounds: int = 6,
    gain: float = 0.0,
    variant: str = "none",
    test: bool = True,
) -> Path:
    """One run; `variant` other than "none" also leaves generated sentences behind."""
    rng = np.random.default_rng([seed, len(arm)])
    path.mkdir(parents=True)
    records, timings, generated = [], [], []
    for number in range(rounds):
        labeled, asked = 200 + 100 * number, 0 if variant == "none" else 20
        tokens = int(labeled * rng.normal(14.5, 0.4))
        f1 = 0.86 - 0.25 * np.exp(-0.45 * number) + gain + rng.normal(0, 0.008)
        scored = int(asked * rng.uniform(2, 3.4))
        records.append(
            {
                "format_version": 1,
                "round": number,
                "labeled": labeled,
                "tokens": tokens,
                "spans": int(tokens / 8.8),
                "generated": asked * (number + 1),  # so far, as the loop counts
                "steps": 40 * (number + 2),
                "policy": "nte",
                "variant": variant,
                "arm": arm,
                "seed": seed,
                "dev": _scores(f1 + 0.01, 300, rng),
                "test": _scores(f1, 500, rng) if test else None,
                "augmentation": {
                    "asked": asked,
                    "generated": asked,
                    "reason": None,
                    "counts": {"pairs": 60, "scored": scored, "out of range": scored - asked}
                    if asked
                    else {},
                    "largest_share": 0.03 + 0.01 * rng.random() if asked else None,
                    "skewness": 11 + 2 * rng.random() if asked else None,
                },
                "chosen": [f"train:{number}:{i}" for i in range(3)],
                "stop": "rounds" if number == rounds - 1 else None,
                "agreement": None,
                "guard": None,
                "forecast": None,
            }
        )
        timings.append(
            {
                "round": number,
                "seconds": {
                    "query": 0.0 if number == 0 else 1.2 + rng.random(),
                    "annotate": 0.0,
                    "augment": 3.4 * bool(asked),
                    "train": 12 + 3 * number,
                    "evaluate": 4.2,
                },
            }
        )
        generated += [_made(number, at, rng) for at in range(asked)]
    (path / "config.toml").write_text('[loop]\nrounds = 5\n[query]\npolicy = "nte"\n')
    (path / "environment.json").write_text(
        json.dumps({"seqmix": "0.1.0", "torch": "2.13.0", "cores": 2})
    )
    _write(path / "rounds.jsonl", records)
    _write(path / "timings.jsonl", timings)
    if generated:
        _write(path / "generated.jsonl", generated)
    return path


def _scores(f1: float, gold: int, rng: np.random.Generator) -> dict[str, Any]:
    by_type = {
        name: {
            "f1": float(np.clip(f1 + shift + rng.normal(0, 0.01), 0, 1)),
            "precision": f1,
            "recall": f1,
            "gold": gold // at,
            "found": gold,
        }
        for at, (name, shift) in enumerate(TYPES.items(), 1)
    }
    macro = sum(one["f1"] for one in by_type.values()) / len(by_type)
    return {
        "f1": float(f1),
        "precision": float(f1) + 0.01,
        "recall": float(f1) - 0.01,
        "macro_f1": macro,
        "by_type": by_type,
    }


def _made(number: int, at: int, rng: np.random.Generator) -> dict[str, Any]:
    weight, into = float(rng.beta(8, 8)), int(at % 2)
    windows = ((3, 6), (3, 6)) if at % 4 < 2 else ((0, 3), (2, 5))
    soft = (
        ({"B-LOC": weight, "I-PER": 1 - weight}, "O", "B-LOC")
        if at % 4 < 2
        else ({"B-PER": 1.0}, "I-PER", "O")
    )
    parent = PARENTS[into]
    start, end = windows[into]
    tokens = (*parent.tokens[:start], "Tromsø", "via", "Bodø", *parent.tokens[end:])
    lineage = Lineage(
        "sub",
        ("train:7", "train:9"),
        windows,
        into,
        weight,
        float(rng.lognormal(5.2, 0.5)),
        "e",
        (0.51, 0.62, 0.4),
    )
    sentence = Sentence(
        f"mix:{number}:{at}", tokens, (*parent.tags[:start], *soft, *parent.tags[end:])
    )
    return {**Augmented(sentence, lineage).to_record(), "round": number}


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records),
        encoding="utf-8",
    )
