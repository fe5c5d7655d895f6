"""Does the guarantee of bulk acceptance hold, and how much may be accepted?

python bench/certify.py FOLDER [--alphas 0.02 0.05 0.1] [--audits 300 1000] [--splits 200]

FOLDER is what bench/predicted.py wrote. Each split draws audit sentences at random; the others are
open, but for those that the first tagger was as unsure of as of the sentences chosen for labeling:
they would have been asked. Held: splits in which at most alpha of what was accepted is wrong. Sets:
how often the conformal set of taggings, at most ten, holds the right one, and its size.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from common import show
from seqmix.serve.review.guarantee import (
    Judged,
    calibration,
    guarantee,
)

SETS = 0.1  # the error rate of the conformal sets


@dataclass(frozen=True)
class Predicted:
    """A file of bench/predicted.py."""

    head: dict
    paths: np.ndarray  # [sentences, taggings], best first; 0 where there is none
    place: np.ndarray  # of the right tagging; -1: not among them
    asked: np.ndarray  # whether it would have been chosen for labeling

    @property
    def case(self) -> list[object]:
        """What the tables call it."""
        return [self.head["corpus"], "active" if self.head["active"] else "random"]

    def splits(self, audits: int, n: int):
        """Yield n times which sentences are audited and which are open."""
        rng = np.random.default_rng(0)
        for _ in range(n):
            order = rng.permutation(len(self.place))
            yield order[:audits], order[audits:][~self.asked[order[audits:]]]

    def judged(self, audit: np.ndarray) -> list[Judged]:
        """The audit answers as the guarantee takes them."""
        return [Judged(float(self.paths[i, 0]), bool(self.place[i] == 0)) for i in audit]


def read(file: Path) -> Predicted:
    """Read a file of bench/predicted.py."""
    head, *sentences = [json.loads(line) for line in file.read_text().splitlines()]
    paths = np.zeros((len(sentences), max(len(s["paths"]) for s in sentences)))
    for at, sentence in enumerate(sentences):
        paths[at, : len(sentence["paths"])] = sentence["paths"]
    asked = np.array([head["active"] and s["doubt"] >= head["asked_from"] for s in sentences])
    return Predicted(head, paths, np.array([s["right"] for s in sentences]), asked)


def bulk(said: Predicted, audits: int, alpha: float, n: int) -> list[object]:
    """How often the guarantee held, and what was accepted."""
    held, shares, errors = 0, [], []
    for audit, rest in said.splits(audits, n):
        sure = said.paths[rest, 0]
        result = guarantee(said.judged(audit), sure.tolist(), alpha, asked=said.asked.mean())
        chosen = rest[sure >= (math.inf if result.threshold is None else result.threshold)]
        wrong = (said.place[chosen] != 0).mean() if len(chosen) else 0.0
        held += wrong <= alpha
        shares.append(len(chosen) / len(rest))
        errors += [wrong] * bool(len(chosen))
    mean = f"{np.mean(errors):.3f}" if errors else "–"
    row = [
        *said.case,
        said.head["labeled"],
        f"{(said.place == 0).mean():.2f}",
        audits,
        f"{alpha:g}",
    ]
    return [*row, f"{held / n:.3f}", f"{np.mean(shares):.2f}", mean]


def calibrated(said: Predicted, audits: int, n: int) -> list[object]:
    """Calibration error before and after, and the coverage and size of conformal sets."""
    raw, fitted, covered, sizes = [], [], [], []
    for audit, rest in said.splits(audits, n):
        sure, right = said.paths[rest, 0], said.place[rest] == 0
        raw.append(calibration_error(sure, right))
        fitted.append(calibration_error(calibration(said.judged(audit))(sure), right))
        pairs = zip(said.paths[audit].tolist(), said.place[audit].tolist(), strict=True)
        least = least_probability(list(pairs), SETS)
        size = np.maximum(1, (said.paths[rest] >= least).sum(axis=1))
        covered.append(((said.place[rest] >= 0) & (said.place[rest] < size)).mean())
        sizes.append(size.mean())
    errors = [f"{np.mean(values):.3f}" for values in (raw, fitted)]
    return [*said.case, audits, *errors, f"{np.mean(covered):.3f}", f"{np.mean(sizes):.2f}"]


def least_probability(audit_paths: Sequence[tuple[Sequence[float], int]], alpha: float) -> float:
    """Return the least probability of a tagging in a conformal set.

    Such a set holds the right tagging in all but `alpha` of the sentences. Each audit answer is the
    probabilities of its most probable taggings and the place of the right one (-1: not among them).
    0: no list of taggings is sure to hold it.
    """
    right = sorted(0.0 if place < 0 else paths[place] for paths, place in audit_paths)
    rank = math.floor((len(right) + 1) * alpha)
    return right[rank - 1] if rank else 0.0


def calibration_error(confidence, right, bins: int = 10) -> float:
    """Mean distance between confidence and share of right answers, over bins of equal size."""
    parts = np.array_split(np.argsort(confidence), bins)
    return float(np.mean([abs(confidence[part].mean() - right[part].mean()) for part in parts]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.02, 0.05, 0.1])
    parser.add_argument("--audits", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--splits", type=int, default=200)
    args = parser.parse_args()
    files = [read(file) for file in sorted(args.folder.glob("*.jsonl"))]
    cases = [(said, n) for said in files for n in args.audits if n < 0.7 * len(said.place)]
    rows = [bulk(*case, alpha, args.splits) for alpha in args.alphas for case in cases]
    head = ["corpus", "chosen", "labeled", "right", "audit answers", "α"]
    show([*head, "held", "accepted", "error"], rows)
    print()
    head = ["corpus", "chosen", "audit answers", "calibration error", "calibrated", "in the set"]
    show([*head, "taggings"], [calibrated(*case, args.splits) for case in cases])
