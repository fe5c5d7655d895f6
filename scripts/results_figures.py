"""Draw the two figures of the results page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from results_data import (
    CORPORA,
    LADDER,
    MARGIN,
    Comparison,
    Row,
    Table,
    scores_of,
    seqmix_comparisons,
)
from seqmix.report.statistics import mean_interval

COLORS = dict(
    zip(
        CORPORA,
        ("#0072b2", "#d55e00", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#5f6670", "#000000"),
        strict=True,
    )
)


_TOPICS = {  # what the sweeps vary, in the figure
    "score-range": "score range",
    "window": "window",
    "table": "table",
    "larger-lm": "language model",
    "larger-encoder": "DistilBERT",
    "policies-slice": "policy, pool of 700",
    "policies-pool": "policy, whole pool",
    "levers": "CoNLL-03",
}


def write_figures(tables: Mapping[str, Table], out: Path) -> None:
    """Draw F1 against optimizer steps, and SeqMix's effect in every setting."""
    mpl.use("Agg")
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    for name, figure in {"steps": steps_figure(tables), "forest": forest_figure(tables)}.items():
        figure.savefig(out / f"results-{name}.png", dpi=130, metadata={"Software": None})


def steps_figure(tables: Mapping[str, Table]) -> Figure:
    """Draw test F1 at 200 CoNLL-03 sentences against the steps of all taggers together."""
    figure = Figure(figsize=(9.6, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    main, rate, epochs, best = (tables[name] for name in ("conll03-main", "rate", "epochs", "best"))
    plain = {
        70: main["none at 10 epochs"],
        80: main["none"],
        **{
            s: rate[f"none rate={r}"]
            for s, r in ((90, "0.4"), (100, "0.6"), (120, "0.8"), (130, "1.0"))
        },
        140: epochs["none epochs=20"],
        280: epochs["none epochs=40"],
        1300: best["conll03 none"],
    }
    mixed = {
        80: main["sub"],
        **{
            s: rate[f"sub rate={r}"]
            for s, r in ((90, "0.4"), (100, "0.6"), (120, "0.8"), (130, "1.0"))
        },
    }
    seeds = range(5)
    _points(left, plain, seeds, "plain training", "#5f6670", "o-")
    _points(left, mixed, seeds, "SeqMix (sub), rate 0.2 to 1", "#d55e00", "s")
    _points(
        left,
        {1300: best["conll03 best without SeqMix"]},
        seeds,
        "recipe without SeqMix",
        "#0072b2",
        "D",
    )
    _points(
        left,
        {1420: best["conll03 best"]},
        seeds,
        "recipe with SeqMix",
        "#009e73",
        "D",
    )
    left.set_title("First starter, linear head, seeds 0–4", fontsize=9.5)
    ladder, steps = tables["defaults"], tables["defaults-plain"]
    chosen = sorted(
        set.intersection(*(set(ladder[f"conll03 200 {arm}"]) for arm in LADDER.values()))
    )
    plain = {
        s: steps[f"conll03 seed_size=200 min_steps={s} head=crf"] for s in (100, 300, 600, 1000)
    }
    _points(right, plain, range(200, 203), "plain training", "#5f6670", "o-")
    rates = tables["defaults-rates"]
    tuned = {s: rates[f"conll03 lr=0.0001 min_steps={s}"] for s in (300, 1000)}
    _points(right, tuned, range(200, 203), "plain training, rate tuned", "#9aa1ab", "o--")
    _points(right, {310: ladder["conll03 200 sub"]}, chosen, "SeqMix (sub), rate 1", "#d55e00", "s")
    _points(
        right,
        {1300: ladder["conll03 200 adapted + self-training"]},
        chosen,
        "adapted encoder + self-training",
        "#56b4e9",
        "D",
    )
    _points(
        right,
        {1380: ladder["conll03 200 adapted + self-training + mention"]},
        chosen,
        "… + replaced mentions (few-labels)",
        "#0072b2",
        "D",
    )
    _points(
        right,
        {1460: ladder["conll03 200 adapted + self-training + mention and sub"]},
        chosen,
        "… + SeqMix on spans",
        "#009e73",
        "D",
    )
    right.set_title(
        f"Starter 2, CRF, seeds {chosen[0]}–{chosen[-1]} (plain: 200–202)", fontsize=9.5
    )
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xticks([100, 300, 1000], ["100", "300", "1,000"])
        axes.minorticks_off()
        axes.set_xlabel("optimizer steps of all taggers together")
        axes.grid(axis="y", color="#e3e5e8", linewidth=0.7)
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    left.set_ylabel("test F1 with 200 CoNLL-03 sentences\n(mean and 95 % t-interval)")
    low = min(left.get_ylim()[0], right.get_ylim()[0])
    left.set_ylim(low, 84)
    right.set_ylim(low, 84)
    return figure


def _points(
    axes: Any,
    arms: Mapping[int, Mapping[int, Mapping[int, Row]]],
    seeds: Iterable[int],
    label: str,
    color: str,
    style: str,
) -> None:
    intervals = {
        steps: mean_interval(
            [score for seed, score in scores_of(runs, 200).items() if seed in set(seeds)]
        )
        for steps, runs in arms.items()
    }
    means = [i.mean for i in intervals.values()]
    bars = [
        [i.mean - i.low for i in intervals.values()],
        [i.high - i.mean for i in intervals.values()],
    ]
    axes.errorbar(
        list(intervals),
        means,
        bars,
        fmt=style,
        color=color,
        label=label,
        capsize=2,
        markersize=4.5,
        linewidth=1.2,
    )


def forest_figure(tables: Mapping[str, Table]) -> Figure:
    """Draw SeqMix's effect over plain training with equal steps, by corpus and setting."""
    comparisons = seqmix_comparisons(tables)
    curves = [("", c) for c in comparisons if c.measure == "curve"]
    in_ladder = [c for c in comparisons if c.sweep == "defaults"]
    by_size = sorted(in_ladder, key=lambda c: int(c.arm.split()[1]))
    points = {
        "at 300 steps, first starter": [c for c in comparisons if c.sweep == "levers"],
        "on plain training, starter 2": [c for c in by_size if c.arm.endswith("0 sub")],
        "in the recipe, starter 2": [c for c in by_size if c.arm.endswith(" mention and sub")],
    }
    single = [(group, c) for group, members in points.items() for c in members]
    figure = Figure(figsize=(10.4, 8.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    _forest(left, curves, "Mean height of the whole curve, first starter", 3)
    _forest(right, single, "F1 at one number of sentences", 8)
    present = [data for data in CORPORA if any(c.data == data for c in comparisons)]
    handles = [Line2D([], [], color=COLORS[data], label=CORPORA[data]) for data in present]
    figure.legend(
        handles=handles, frameon=False, fontsize=8, ncols=len(handles), loc="outside lower center"
    )
    return figure


def _forest(axes: Any, rows: Sequence[tuple[str, Comparison]], title: str, reach: float) -> None:
    axes.axvspan(-MARGIN, MARGIN, color="#eef0f2", zorder=0)
    axes.axvline(0, color="#8a8f98", linewidth=0.8)
    y, ticks, group = 0, [], ""
    for heading, c in rows:
        if heading != group:
            axes.text(-reach + 0.2, y, heading, fontsize=7, va="center", weight="bold")
            group, y = heading, y - 1
        interval = c.interval
        axes.plot([interval.low, interval.high], [y, y], color=COLORS[c.data], linewidth=1.2)
        axes.plot(interval.mean, y, "o", color=COLORS[c.data], markersize=3)
        for end, marker in ((interval.low, "<"), (interval.high, ">")):
            if abs(end) > reach:
                edge = reach if end > 0 else -reach
                axes.plot(edge, y, marker, color=COLORS[c.data], markersize=4, clip_on=False)
        ticks.append((y, _label(c)))
        y -= 1
    axes.set_yticks([at for at, _ in ticks], [label for _, label in ticks], fontsize=6)
    axes.set_ylim(y, 1)
    axes.set_xlim(-reach, reach)
    axes.tick_params(axis="y", length=0)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("test F1 over plain training (95 % t-interval; band: ±1)", fontsize=8)


def _label(c: Comparison) -> str:
    """`rate: sub rate=0.4` as `rate: 0.4`, `defaults: btc 50 sub` as `BTC, 50 sentences`."""
    if c.sweep == "defaults":
        return f"{CORPORA[c.data]}, {c.arm.split()[1]} sentences"
    if c.sweep.endswith("-main"):
        return f"{CORPORA[c.data]}: {c.arm}"
    words = re.sub(r"\b(sub|variant=sub|models/)|(?<=\b)(rate|alpha|table|distance|lm)=", "", c.arm)
    words = words.replace("s=", "size ").replace("n=", "entities ")
    return f"{_TOPICS.get(c.sweep, c.sweep)}: {' '.join(words.split()) or 'sub'}"
