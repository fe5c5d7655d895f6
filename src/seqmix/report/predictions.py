"""What runs predicted, sentence by sentence: tests over seeds and sentences, and calibration."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqmix.errors import RunError
from seqmix.report.curves import Run
from seqmix.report.statistics import Interval

Counts = NDArray[np.int64]  # [n_sentences, 3]: spans in the gold, predicted, correct
_BINS = 10


@dataclass(frozen=True)
class Predicted:
    """What the last round of a run predicted for a split."""

    counts: Counts
    probabilities: NDArray[np.float64]  # [n_sentences]: of the predicted tags
    exact: NDArray[np.bool_]  # [n_sentences]: whether all of them are right

    @property
    def calibration_error(self) -> float:
        """The mean distance, over ten bins, between probability and share of exact sentences."""
        bins = np.minimum((self.probabilities * _BINS).astype(int), _BINS - 1)
        size = np.bincount(bins, minlength=_BINS)
        sure = np.bincount(bins, self.probabilities, _BINS)
        right = np.bincount(bins, self.exact, _BINS)
        return float(np.abs(sure - right).sum() / max(1, size.sum()))


def read_predicted(run: Run, split: str) -> Predicted | None:
    """Return what the last round predicted; None where a run has not kept it."""
    path = run.path / "rounds" / f"{run.rounds[-1].number:03d}" / f"{split}.jsonl.gz"
    if not path.is_file():
        return None
    try:
        with gzip.open(path, "rt", encoding="utf-8", errors="surrogatepass") as file:
            records = [json.loads(line) for line in file]
        gold = [{tuple(span) for span in record["gold"]} for record in records]
        spans = [{tuple(span) for span in record["spans"]} for record in records]
        probabilities = np.array([record["p"] for record in records], dtype=np.float64)
    except (OSError, EOFError, ValueError, TypeError, KeyError) as error:
        raise RunError(f"{path} is damaged; remove it, and the report does without it") from error
    counts = [(len(a), len(b), len(a & b)) for a, b in zip(gold, spans, strict=True)]
    exact = np.array([a == b for a, b in zip(gold, spans, strict=True)], dtype=bool)
    return Predicted(np.array(counts, dtype=np.int64).reshape(-1, 3), probabilities, exact)


def interval_over_seeds_and_sentences(
    pairs: Sequence[tuple[Counts, Counts]],
    rng: np.random.Generator,
    draws: int = 2000,
    level: float = 0.95,
) -> Interval:
    """Return the mean difference in F1 of paired runs, with a percentile bootstrap interval.

    Each draw takes other seeds and other sentences, the same for both sides.
    """
    if len({counts.shape for pair in pairs for counts in pair}) > 1:
        raise RunError("the runs were scored on different sentences and cannot be paired")
    a, b = (  # [n_pairs, n_sentences, 3]
        np.stack([pair[side] for pair in pairs]).astype(np.float64) for side in (0, 1)
    )
    n_pairs, n_sentences = a.shape[:2]
    differences = np.empty(draws)
    for draw in range(draws):
        seeds = rng.integers(n_pairs, size=n_pairs)
        weights = np.bincount(rng.integers(n_sentences, size=n_sentences), minlength=n_sentences)
        sums = (np.einsum("psc,s->pc", side, weights)[seeds] for side in (a, b))
        differences[draw] = np.subtract(*(_f1(side).mean() for side in sums))
    low, high = np.quantile(differences, [(1 - level) / 2, (1 + level) / 2])
    mean = float((_f1(a.sum(axis=1)) - _f1(b.sum(axis=1))).mean())
    return Interval(mean, float(low), float(high), n_pairs)


def _f1(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    whole = counts[:, 0] + counts[:, 1]
    return np.divide(2 * counts[:, 2], whole, out=np.zeros(len(counts)), where=whole > 0)
