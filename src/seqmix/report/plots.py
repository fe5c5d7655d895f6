"""The figures of the report, each made by one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seqmix.report.curves import COSTS, CurvePoint
from seqmix.report.drawing import (
    COLORS,
    INK,
    MARKERS,
    Figure,
    arm_colors,
    contrasting,
    legend_above,
    name_ends,
    new_figure,
    styled,
    ticker,
)
from seqmix.report.statistics import Interval

PHASES = {
    "query": "#56b4e9",
    "annotate": "#cc79a7",
    "augment": "#e69f00",
    "train": "#0072b2",
    "evaluate": "#009e73",
}


@styled
def learning_curves(
    bands: Mapping[str, Sequence[CurvePoint]],
    split: str,
    against: str = "labeled",
    baseline: str | None = None,
) -> Figure:
    """Draw the mean F1 of each arm with its interval."""
    large = against == "labeled"
    figure, axes = new_figure(6.6 if large else 5.4, 3.6 if large else 3.4)
    colors = arm_colors(bands, baseline)
    ends = []
    for at, (arm, points) in enumerate(bands.items()):
        color = colors[arm]
        x, y = [point.x for point in points], [point.f1.mean for point in points]
        if all(point.f1.known for point in points):
            low, high = [point.f1.low for point in points], [point.f1.high for point in points]
            axes.fill_between(x, low, high, color=color, alpha=0.16, linewidth=0)
            if len(x) == 1:
                spread = [[y[0] - low[0]], [high[0] - y[0]]]
                axes.errorbar(x, y, yerr=spread, color=color, capsize=3)
        dashes = "-" if at < len(COLORS) else "--"
        axes.plot(x, y, dashes, color=color, marker=MARKERS[at % len(MARKERS)], label=arm)
        ends.append((y[-1], x[-1], arm, color))
    if len({x for _, x, _, _ in ends}) == 1 or not large:
        name_ends(axes, ends)
    else:
        axes.legend(loc="lower right")
    axes.set_xlabel(COSTS[against])
    axes.set_ylabel(f"F1 on {split}")
    axes.xaxis.set_major_locator(ticker().MaxNLocator(6, integer=True, min_n_ticks=1))
    return figure


@styled
def type_bars(
    by_arm: Mapping[str, Mapping[str, Interval]],
    gold: Mapping[str, int],
    split: str,
    baseline: str | None = None,
) -> Figure:
    """Draw the F1 of each entity type by arm, the types with most gold spans first."""
    types = sorted(gold, key=lambda type: (-gold[type], type))
    height = 0.8 / max(len(by_arm), 1)
    figure, axes = new_figure(6.6, 1.1 + max(0.5, 0.24 * len(by_arm)) * max(len(types), 1))
    colors = arm_colors(by_arm, baseline)
    for at, (arm, intervals) in enumerate(by_arm.items()):
        f1 = [intervals.get(type, Interval(0, 0, 0, 0)) for type in types]
        places = [row - 0.4 + height * (at + 0.5) for row in range(len(types))]
        spread = [
            [value.mean - value.low if value.known else 0 for value in f1],
            [value.high - value.mean if value.known else 0 for value in f1],
        ]
        whiskers: dict[str, Any] = {}
        if any(map(any, spread)):
            style = {"ecolor": INK, "elinewidth": 0.9, "alpha": 0.6}
            whiskers = {"xerr": spread, "error_kw": style}
        color = colors[arm]
        means = [value.mean for value in f1]
        axes.barh(places, means, height * 0.88, color=color, label=arm, **whiskers)
        for y, mean in zip(places, means, strict=True):
            ink = contrasting(color)
            axes.text(0.012, y, f"{mean:.2f}", va="center", fontsize=8, color=ink)
    _name_rows(axes, [f"{type}  ({gold[type]})" for type in types])
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"F1 on {split}; gold spans in brackets")
    legend_above(axes, len(by_arm))
    return figure


@styled
def phase_bars(by_arm: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw the seconds per run by phase, one bar per arm."""
    phases = dict.fromkeys(
        phase
        for phase in (*PHASES, *(phase for seconds in by_arm.values() for phase in seconds))
        if any(seconds.get(phase, 0) > 0 for seconds in by_arm.values())
    )
    figure, axes = new_figure(6.6, 1.25 + 0.42 * len(by_arm))
    left = [0.0] * len(by_arm)
    for at, phase in enumerate(phases):
        widths = [seconds.get(phase, 0.0) for seconds in by_arm.values()]
        color = PHASES.get(phase, COLORS[at % len(COLORS)])
        axes.barh(range(len(by_arm)), widths, 0.62, left=left, color=color, label=phase)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for row, total in enumerate(left):
        axes.annotate(
            f"{total:.0f} s", (total, row), (4, 0), textcoords="offset points", va="center"
        )
    _name_rows(axes, list(by_arm))
    axes.set_xlim(0, max([*left, 1e-9]) * 1.12)
    axes.set_xlabel("seconds per run")
    legend_above(axes, len(phases))
    return figure


@styled
def perplexity_histogram(
    scores: Mapping[str, Sequence[float]], colors: Mapping[str, str]
) -> Figure:
    """Draw the perplexity of the accepted sentences, one outline per arm."""
    figure, axes = new_figure(5.4, 3.2)
    values = [score for arm_scores in scores.values() for score in arm_scores]
    low, high = min(values), max(values)
    bins = [low - 0.5, low + 0.5]
    if high > low:
        bins = [low + (high - low) * i / 24 for i in range(25)]
    for arm, arm_scores in scores.items():
        color, alpha = colors[arm], 0.28 if len(scores) > 1 else 0.55
        axes.hist(arm_scores, bins, color=color, histtype="stepfilled", alpha=alpha, linewidth=0)
        axes.hist(arm_scores, bins, color=color, histtype="step", linewidth=1.6, label=arm)
    axes.set_xlabel("perplexity of accepted sentences")
    axes.set_ylabel("sentences")
    axes.yaxis.set_major_locator(ticker().MaxNLocator(5, integer=True, min_n_ticks=1))
    legend_above(axes, len(scores))
    return figure


@styled
def acceptance_by_round(
    rates: Mapping[str, Sequence[tuple[int, float]]], colors: Mapping[str, str]
) -> Figure:
    """Draw the share of scored sentences that the discriminator accepted, by round."""
    figure, axes = new_figure(5.4, 3.2)
    for at, (arm, points) in enumerate(rates.items()):
        marker = MARKERS[at % len(MARKERS)]
        axes.plot(*zip(*points, strict=True), color=colors[arm], marker=marker, label=arm)
    rounds = [number for points in rates.values() for number, _ in points]
    axes.set_xlim(min(rounds) - 0.3, max(rounds) + 0.3)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("round")
    axes.set_ylabel("accepted")
    axes.yaxis.set_major_formatter(ticker().PercentFormatter(1))
    axes.xaxis.set_major_locator(ticker().MaxNLocator(8, integer=True, min_n_ticks=1))
    legend_above(axes, len(rates))
    return figure


def _name_rows(axes: Any, names: Sequence[str]) -> None:
    """Name the bars of a figure from the top down."""
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
