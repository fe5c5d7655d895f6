"""The sections of the report on F1: summary, paired tests, learning curves, entity types."""

from __future__ import annotations

import html
import math

import numpy as np

from seqmix.report import plots
from seqmix.report.comparison import Comparison
from seqmix.report.curves import COSTS, SPLITS, Run, band, curve, mean_curve
from seqmix.report.markup import interval, note, p_value, table, with_sign
from seqmix.report.predictions import interval_over_seeds_and_sentences, read_predicted
from seqmix.report.statistics import (
    Curve,
    area_under_curve,
    labels_saved,
    mean_interval,
    paired_interval,
    paired_permutation,
    wilcoxon,
)


def summary(comparison: Comparison) -> str:
    """Show the mean F1 of each arm, the area under its curve and the labels it saves."""
    several = len(comparison.arms) > 1
    curves = len(comparison.aligned[comparison.baseline][0].rounds) > 1
    reference = mean_curve(band(comparison.aligned[comparison.baseline], comparison.split))
    rounds = [round for run in comparison.runs for round in run.rounds]
    splits = [comparison.split] + [
        split
        for split in SPLITS
        if split != comparison.split and all(split in round.results for round in rounds)
    ]
    head = ["arm", "seeds", *(f"F1 on {split}" for split in splits)]
    head.append(f"area under the curve ({comparison.split})")
    rows = []
    for arm, runs in comparison.aligned.items():
        row = [comparison.label(arm), str(len(runs))]
        for split in splits:
            row.append(interval(mean_interval([run.rounds[-1].f1(split) for run in runs])))
        areas = [area_under_curve(curve(run, comparison.split)) for run in runs]
        row.append(interval(mean_interval(areas)) if curves else "–")
        if several:
            row.append(_saved(comparison, arm, runs, reference))
        rows.append(row)
    notes = [
        "Means over seeds with 95 % Student t intervals."
        if any(len(runs) > 1 for runs in comparison.arms.values())
        else "One seed: no interval."
    ]
    if several:
        head.append("labels saved")
        notes.append(
            "Labels saved: how many fewer labeled sentences the mean curve needs to reach the "
            f"final {comparison.split} F1 of <b>{html.escape(comparison.baseline)}</b> "
            f"({reference.y[-1]:.3f}), with straight lines between rounds."
        )
    if curves:
        notes.append(
            "The area is divided by the range of labeled sentences, "
            "so it is the mean F1 along the curve."
        )
    return "<h2>Summary</h2>" + table(head, rows) + note(notes)


def _saved(comparison: Comparison, arm: str, runs: list[Run], reference: Curve) -> str:
    if arm == comparison.baseline:
        return "baseline"
    saved = labels_saved(mean_curve(band(runs, comparison.split)), reference)
    return "not reached" if saved is None else with_sign(saved, 0)


def paired_tests(comparison: Comparison) -> str:
    """Show the gain of each arm over the baseline and its p-values; empty without pairs."""
    split = comparison.split
    baselines = {run.seed: run for run in comparison.aligned[comparison.baseline]}
    rows, pairs = [], 0
    for arm, runs in comparison.aligned.items():
        paired = [run for run in runs if run.seed in baselines]
        if arm == comparison.baseline or not paired:
            continue
        pairs = max(pairs, len(paired))
        references = [baselines[run.seed] for run in paired]
        finals, final_references = (
            [run.rounds[-1].f1(split) for run in side] for side in (paired, references)
        )
        points, reference_points = (
            mean_curve(band(side, split)).y for side in (paired, references)
        )
        tests = [math.nan, math.nan, math.nan]
        if len(paired) > 1:
            permutation = paired_permutation(finals, final_references, np.random.default_rng(0))
            tests[:2] = [permutation, wilcoxon(finals, final_references)]
        if len(points) > 1:
            tests[2] = wilcoxon(points, reference_points)
        gain = interval(paired_interval(finals, final_references), signed=True)
        rows.append([comparison.label(arm), str(len(paired)), gain, *map(p_value, tests)])
    if not rows:
        return ""
    head = [
        "arm",
        "pairs",
        f"gain in {split} F1",
        "permutation p",
        "Wilcoxon p, seeds",
        "Wilcoxon p, curve points",
    ]
    notes = [
        "Runs with the same seed are pairs. "
        f"The gain is at {comparison.last} labeled sentences, with its 95 % Student t interval; "
        "tests are two-sided.",
        "The points of one curve are not independent: "
        "the last column is shown because the paper has it.",
        f"With {pairs} pairs neither test over seeds can fall below p = {2 / 2**pairs:.2g}."
        if pairs > 1
        else "One pair: no test over seeds, no interval.",
    ]
    heading = f"<h2>Against {html.escape(comparison.baseline)}</h2>"
    return heading + table(head, rows) + note(notes)


def seeds_and_sentences(comparison: Comparison) -> str:
    """Show gains that count the sentences as drawn too, and how far probabilities are off."""
    split = comparison.split
    kept = {
        arm: {run.seed: read_predicted(run, split) for run in runs}
        for arm, runs in comparison.aligned.items()
    }
    baselines = kept[comparison.baseline]
    rows = []
    for arm, by_seed in kept.items():
        errors = [predicted.calibration_error for predicted in by_seed.values() if predicted]
        pairs = [
            (predicted.counts, baseline.counts)
            for seed, predicted in by_seed.items()
            if predicted and (baseline := baselines.get(seed))
        ]
        if not pairs or len(errors) < len(by_seed):
            return ""
        gain = "baseline"
        if arm != comparison.baseline:
            both = interval_over_seeds_and_sentences(pairs, np.random.default_rng(0))
            gain = interval(both, signed=True)
        rows.append([comparison.label(arm), gain, interval(mean_interval(errors))])
    head = ["arm", f"gain in {split} F1", "calibration error"]
    notes = [
        "The 95 % interval of the gain is a bootstrap over seeds and sentences: "
        "it says what other sentences like these would have shown.",
        "The calibration error is the mean distance between the probability of a sentence's tags "
        "and the share of sentences that are right, in ten bins.",
    ]
    return "<h2>Seeds and sentences</h2>" + table(head, rows) + note(notes)


def learning_curves(comparison: Comparison) -> str:
    """Show F1 against labeled sentences, tokens, spans and minutes."""
    heading = "<h2>Learning curves</h2>"
    if all(len(run.rounds) < 2 for run in comparison.runs):
        return f"{heading}<p>Only one round is finished; a curve needs two.</p>"
    drawn = []
    for against, name in COSTS.items():
        bands = {
            arm: band(runs, comparison.split, against) for arm, runs in comparison.arms.items()
        }
        shaded = any(point.f1.known for points in bands.values() for point in points)
        spread = "; shaded: 95 % interval over seeds" if shaded else ""
        figure = plots.learning_curves(bands, comparison.split, against, comparison.baseline)
        caption = f"F1 on {comparison.split} against {name}{spread}."
        drawn.append(comparison.draw(f"curve_{against}", figure, caption, against == "labeled"))
    return f"{heading}{drawn[0]}<div class=pair>{''.join(drawn[1:])}</div>"


def entity_types(comparison: Comparison) -> str:
    """Show F1 by entity type; empty where the runs have none."""
    values: dict[str, dict[str, list[float]]] = {arm: {} for arm in comparison.aligned}
    gold: dict[str, int] = {}
    for arm, runs in comparison.aligned.items():
        for run in runs:
            by_type = run.rounds[-1].results[comparison.split].get("by_type", {})
            for type, score in by_type.items():
                values[arm].setdefault(type, []).append(float(score["f1"]))
                gold[type] = max(gold.get(type, 0), int(score.get("gold", 0)))
    if not gold:
        return ""
    bars = {
        arm: {type: mean_interval(f1) for type, f1 in by_type.items()}
        for arm, by_type in values.items()
    }
    figure = plots.type_bars(bars, gold, comparison.split, comparison.baseline)
    caption = f"F1 on {comparison.split} by type at {comparison.last} labeled sentences."
    return "<h2>By entity type</h2>" + comparison.draw("types", figure, caption, large=True)
