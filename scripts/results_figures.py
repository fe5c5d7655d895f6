"""The figures of docs/results.md. An arm has one color in all of them; the colored names of the right panel are the key to the left one."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from PIL import Image

from results_numbers import Difference, Family, Series, f1_at

INK = "#1f2429"
STYLE = {
    "font.family": "DejaVu Sans", "font.size": 8.5, "axes.titlesize": 9.5, "axes.titlelocation": "left", "axes.titleweight": "bold",
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True, "axes.grid": True, "grid.color": "#e7e9ec",
    "grid.linewidth": 0.7, "legend.frameon": False, "axes.edgecolor": "#a9afb6", "text.parse_math": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK),
}  # fmt: skip
COLORS = {
    "none": "#6b727b", "none at 10 epochs": "#a4aab2", "duplicate": "#e08a00", "sub": "#0072b2", "whole": "#56b4e9", "label": "#009e73",
    "mention": "#c8102e", "token": "#cc79a7", "shuffle": "#8c6d1f", "mixup": "#7a4fbf", "best without SeqMix": "#c8102e", "best": "#1b2a6b",
    "none epochs=10": "#a4aab2", "none epochs=20": "#7fae3f", "none epochs=40": "#2f6b1d",
}  # fmt: skip
PAPER = "#111111"


def colors(names: Sequence[str]) -> dict[str, str]:
    """Known arms keep their color; settings of one parameter are steps from dark blue to yellow-green."""
    others = [name for name in names if name not in COLORS and not name.startswith("none")]
    steps = matplotlib.colormaps["viridis"]
    ramp = {
        name: matplotlib.colors.to_hex(steps(0.05 + 0.7 * at / max(len(others) - 1, 1)))
        for at, name in enumerate(others)
    }
    return {name: COLORS.get(name) or ramp.get(name, COLORS["none"]) for name in names}


@matplotlib.rc_context(STYLE)
def overview(
    arms: Mapping[str, Series],
    sizes: Sequence[int],
    first: Family,
    whole: Family,
    over: str,
    bands: Sequence[str],
) -> Figure:
    """Left the curves, with the 95 % band of those in `bands`; right each arm's difference from its baseline."""
    shade = colors(list(arms))
    figure, (left, right) = _panels(9.4, max(3.3, 1.5 + 0.3 * len(first)), (1.15, 1))
    for name in sorted(arms, key=lambda name: name in bands):  # what matters is drawn last, on top
        points = [arms[name].interval(f1_at(size)) for size in sizes]
        means = [point.mean for point in points]
        heavy = name in bands
        style = "--" if name == "none at 10 epochs" else "-"
        left.plot(
            sizes,
            means,
            style,
            color=shade[name],
            lw=1.9 if heavy else 0.9,
            marker="o",
            ms=4 if heavy else 2.5,
            alpha=1 if heavy else 0.75,
        )
        if heavy and all(point.known for point in points):
            left.fill_between(
                sizes,
                [p.low for p in points],
                [p.high for p in points],
                color=shade[name],
                alpha=0.14,
                lw=0,
            )
    left.set_xlabel("labeled sentences")
    left.set_ylabel("F1 on test")
    left.set_xticks(sizes)
    left.set_title("F1, mean and 95 % band")
    for name in (name for name in arms if name in bands):
        left.plot(
            [],
            [],
            "--" if name == "none at 10 epochs" else "-",
            color=shade[name],
            lw=1.9,
            marker="o",
            ms=4,
            label=name,
        )
    left.legend(loc="lower right")
    forest(right, first, whole, shade, sizes)
    right.set_title(f"Over {over}, 95 % interval", loc="right")
    return figure


def forest(
    axes: Any,
    first: Family,
    whole: Family,
    shade: Mapping[str, str],
    sizes: Sequence[int],
    paper: Mapping[str, float] | None = None,
) -> None:
    """One row an arm: the difference at the first size, above that over the whole curve, and the paper's where it is known."""
    names = list(whole)
    axes.axvline(0, color=INK, lw=0.9, alpha=0.6)
    apart = min(0.17, 0.02 * len(names) + 0.03) if first else 0.0
    kinds = [(first, -apart, "o", f"at {sizes[0]:,} sentences")] if first else []
    for own, shift, marker, label in [*kinds, (whole, apart, "D", "whole curve")]:
        for row, name in enumerate(names):
            if name in own and own[name].n:
                _whisker(axes, own[name], row + shift, marker, shade[name], hollow=marker == "D")
        axes.plot(
            [],
            [],
            marker,
            color="#5b626b",
            mfc="white" if marker == "D" else "#5b626b",
            label=label,
        )
    for row, name in enumerate(names):
        if paper and name in paper:
            axes.plot(paper[name], row, "*", color=PAPER, ms=9)
    if paper:
        axes.plot([], [], "*", color=PAPER, ms=9, label="the paper's gain")
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    for text, name in zip(axes.get_yticklabels(), names, strict=True):
        text.set_color(shade[name])
        text.set_fontweight("bold")
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("F1 points")
    axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    axes.figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower right",
        ncols=3,
        handletextpad=0.3,
        columnspacing=1.4,
    )


@matplotlib.rc_context(STYLE)
def policies(gains: Family, worth: Family, paper: Mapping[str, float]) -> Figure:
    """Left what each policy is worth without SeqMix, right what SeqMix adds to it; both over the whole curve."""
    shade = {name: COLORS["none"] if name.startswith("random") else COLORS["sub"] for name in gains}
    figure, (left, right) = _panels(9.4, 1.5 + 0.26 * len(gains), (1, 1))
    for row, name in enumerate(gains):
        if name in worth and worth[name].n:
            _whisker(left, worth[name], row, "D", shade[name], hollow=True)
    left.axvline(0, color=INK, lw=0.9, alpha=0.6)
    left.sharex(right)
    left.set_yticks(range(len(gains)), list(gains))
    left.tick_params(axis="y", length=0)
    left.grid(visible=False, axis="y")
    left.set_ylim(len(gains) - 0.5, -0.5)
    left.set_xlabel("F1 points")
    left.set_title("Policy over random, nothing augmented")
    forest(right, {}, gains, shade, (), paper)
    right.set_yticklabels([])
    right.set_title("sub over none, same policy")
    return figure


@matplotlib.rc_context(STYLE)
def strips(
    data: Mapping[str, Mapping[str, Series]], size: int, goals: Mapping[str, float]
) -> Figure:
    """Every seed as a dot, the mean with its interval beside them; one panel a data set, arms from left to right."""
    figure, panels = _panels(9.4, 3.5, (1,) * len(data))
    for axes, (name, arms) in zip(panels, data.items(), strict=True):
        for one, two in pairwise(enumerate(arms.values())):  # a seed is one line from arm to arm
            before, after = one[1].values(f1_at(size)), two[1].values(f1_at(size))
            for seed in sorted(before.keys() & after.keys()):
                axes.plot(
                    [one[0] - 0.12, two[0] - 0.12],
                    [before[seed], after[seed]],
                    color="#c9cdd2",
                    lw=0.7,
                    zorder=1,
                )
        for at, (arm, series) in enumerate(arms.items()):
            values, middle = list(series.values(f1_at(size)).values()), series.interval(f1_at(size))
            axes.plot(
                [at - 0.12] * len(values), values, "o", color=COLORS[arm], ms=4, alpha=0.55, mew=0
            )
            error = (
                [[middle.mean - middle.low], [middle.high - middle.mean]] if middle.known else None
            )
            axes.errorbar(
                [at + 0.1],
                [middle.mean],
                yerr=error,
                fmt="o",
                color=COLORS[arm],
                ms=6.5,
                lw=1.8,
                capsize=3,
            )
            told = axes.annotate(
                f"{middle.mean:.1f}",
                (at + 0.1, middle.mean),
                (8, 0),
                textcoords="offset points",
                va="center",
            )
            told.set(
                color=COLORS[arm],
                weight="bold",
                path_effects=[withStroke(linewidth=2.5, foreground="white")],
            )
        if name in goals:
            axes.axhline(goals[name], color=PAPER, lw=1, ls=":")
            axes.annotate(
                f"the paper's {goals[name]}",
                (-0.45, goals[name]),
                (0, 3),
                textcoords="offset points",
                fontsize=8,
            )
        axes.set_xticks(range(len(arms)), [arm.replace(" without", "\nwithout") for arm in arms])
        axes.set_xlim(-0.5, len(arms) - 0.3)
        axes.grid(visible=False, axis="x")
        axes.set_title(name)
    panels[0].set_ylabel(f"F1 on test, {size:,} sentences")
    return figure


@matplotlib.rc_context(STYLE)
def ladder(over: Family, plain: str) -> Figure:
    """One row an arm, the lowest first: its difference from plain training, with every seed as a faint dot."""
    figure, (axes,) = _panels(9.4, 1.1 + 0.22 * len(over), (1,))
    names = sorted(over, key=lambda name: over[name].mean)
    for row, name in enumerate(names):
        color = (
            COLORS["none"]
            if name.startswith("none")
            else COLORS["sub"]
            if "sub" in name or "best" in name
            else COLORS["label"]
        )
        axes.plot(
            list(over[name].by_seed.values()),
            [row] * over[name].n,
            "o",
            color=color,
            ms=3,
            alpha=0.35,
            mew=0,
        )
        _whisker(axes, over[name], row, "o", color, hollow=False)
    for what, color in (
        ("plain training", "none"),
        ("SeqMix in it", "sub"),
        ("without SeqMix", "label"),
    ):
        axes.plot([], [], "o", color=COLORS[color], label=what)
    axes.axvline(0, color=INK, lw=0.9, alpha=0.6)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"dev F1 over {plain}, mean and 95 % interval; faint: each seed")
    axes.legend(loc="lower right")
    return figure


def save(figure: Figure, path: Path) -> None:
    """The picture without a date or a program's name; a file that would not change is left alone."""
    out = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(out, format="png", dpi=150, facecolor="white", metadata={"Software": None})
    small = io.BytesIO()
    Image.open(out).convert("RGB").quantize(160, dither=Image.Dither.NONE).save(
        small, format="png", optimize=True
    )  # a third of the bytes
    if not path.exists() or path.read_bytes() != small.getvalue():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(small.getvalue())


def _short(name: str) -> str:
    """A point of a grid without what all points share: "rate=0.2", and of two settings the values, "encoder, csls"."""
    parts = name.removeprefix("sub ").split()
    named = [part.split("=") for part in parts if len(part.partition("=")[0]) > 1 and "=" in part]
    return (
        ", ".join(value for _, value in named) if len(named) == len(parts) > 1 else " ".join(parts)
    )


def _panels(width: float, height: float, ratios: Sequence[float]) -> tuple[Figure, list[Any]]:
    figure = Figure((width, height), layout="constrained")
    panels = figure.subplots(1, len(ratios), width_ratios=ratios, squeeze=False)
    return figure, list(panels[0])


def _whisker(
    axes: Any, difference: Difference, y: float, marker: str, color: str, hollow: bool
) -> None:
    interval = difference.interval
    if interval.known:
        axes.plot(
            [interval.low, interval.high],
            [y, y],
            color=color,
            lw=1.2 if hollow else 1.9,
            solid_capstyle="round",
        )
    axes.plot(interval.mean, y, marker, color=color, ms=5, mfc="white" if hollow else color)
