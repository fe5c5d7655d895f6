"""Figures: one function each gives a figure, `svg` and `png` turn it into text or bytes.

Lettering and axes are drawn in one ink. In SVG it becomes `currentColor`, so that a figure set into a page follows light and dark.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

from seqmix.report.curves import COSTS, Point
from seqmix.report.statistics import Interval

COLORS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
)  # Okabe and Ito: told apart without red and green
PLAIN = "#8a8f98"  # the baseline is gray: what the others are held against
PHASES = {
    "query": "#56b4e9",
    "annotate": "#cc79a7",
    "augment": "#e69f00",
    "train": "#0072b2",
    "evaluate": "#009e73",
}
_MARKERS = "osD^vP"
_INK = "#1f2429"
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "svg.fonttype": "none",  # letters stay letters: they can be searched and read aloud
    "text.parse_math": False,  # a name with dollars is a name
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 9.5,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "legend.frameon": False,
    **dict.fromkeys(
        (
            "text.color",
            "axes.labelcolor",
            "axes.titlecolor",
            "axes.edgecolor",
            "xtick.color",
            "ytick.color",
        ),
        _INK,
    ),
}
Figure = Any  # matplotlib's
P = ParamSpec("P")


def _settings(more: Mapping[str, Any] | None = None) -> Any:
    import matplotlib  # here, since it is slow to load

    return matplotlib.rc_context({**_SETTINGS, **(more or {})})


def _in_house_style(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with our settings and leave those of the caller alone."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with _settings():
            return draw(*args, **kwargs)

    return drawn


@_in_house_style
def learning_curves(
    bands: Mapping[str, Sequence[Point]],
    split: str,
    against: str = "labeled",
    plain: str | None = None,
) -> Figure:
    """Mean F1 of each arm with its interval; `plain` names the arm to draw in gray. Arms are named at the end of their lines."""
    figure, axes = _figure(
        6.6 if against == "labeled" else 5.4, 3.6 if against == "labeled" else 3.4
    )
    ends = []
    for at, (arm, points) in enumerate(bands.items()):
        color, marker = _color(at, arm, bands, plain), _MARKERS[at % len(_MARKERS)]
        x, y = [point.x for point in points], [point.f1.mean for point in points]
        if all(point.f1.known for point in points):
            low, high = [point.f1.low for point in points], [point.f1.high for point in points]
            axes.fill_between(x, low, high, color=color, alpha=0.16, linewidth=0)
            if len(x) == 1:
                axes.errorbar(
                    x, y, yerr=[[y[0] - low[0]], [high[0] - y[0]]], color=color, capsize=3
                )
        dashes = "-" if at < len(COLORS) else "--"
        axes.plot(x, y, dashes, color=color, marker=marker, label=arm)
        ends.append((y[-1], x[-1], arm, color))
    if len({x for _, x, _, _ in ends}) == 1 or against != "labeled":
        _name_ends(axes, ends)
    else:
        axes.legend(loc="lower right")
    axes.set_xlabel(COSTS[against])
    axes.set_ylabel(f"F1 on {split}")
    axes.xaxis.set_major_locator(_ticker().MaxNLocator(6, integer=True, min_n_ticks=1))
    return figure


@_in_house_style
def type_bars(
    by_arm: Mapping[str, Mapping[str, Interval]],
    gold: Mapping[str, int],
    split: str,
    plain: str | None = None,
) -> Figure:
    """F1 of each entity type by arm; the types with most gold spans first."""
    types = sorted(gold, key=lambda type: (-gold[type], type))
    height = 0.8 / max(len(by_arm), 1)
    figure, axes = _figure(6.6, 1.1 + max(0.5, 0.24 * len(by_arm)) * max(len(types), 1))
    for at, (arm, found) in enumerate(by_arm.items()):
        own = [found.get(type, Interval(0, 0, 0, 0)) for type in types]
        place = [row - 0.4 + height * (at + 0.5) for row in range(len(types))]
        spread = [
            [o.mean - o.low if o.known else 0 for o in own],
            [o.high - o.mean if o.known else 0 for o in own],
        ]
        whiskers = (
            {"xerr": spread, "error_kw": {"ecolor": _INK, "elinewidth": 0.9, "alpha": 0.6}}
            if any(map(any, spread))
            else {}
        )
        color = _color(at, arm, by_arm, plain)
        axes.barh(place, [o.mean for o in own], height * 0.88, color=color, label=arm, **whiskers)
        for y, one in zip(place, own, strict=True):
            axes.text(0.012, y, f"{one.mean:.2f}", va="center", fontsize=8, color=_on(color))
    axes.set_yticks(range(len(types)), [f"{type}  ({gold[type]})" for type in types])
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(f"F1 on {split}; gold spans in brackets")
    _legend_above(axes, len(by_arm))
    return figure


@_in_house_style
def phase_bars(by_arm: Mapping[str, Mapping[str, float]]) -> Figure:
    """Seconds of a run by phase, one bar an arm."""
    used = dict.fromkeys(
        phase
        for phase in (*PHASES, *(p for own in by_arm.values() for p in own))
        if _spent(by_arm, phase)
    )
    figure, axes = _figure(6.6, 1.25 + 0.42 * len(by_arm))
    left = [0.0] * len(by_arm)
    for at, phase in enumerate(used):
        widths = [own.get(phase, 0.0) for own in by_arm.values()]
        axes.barh(
            range(len(by_arm)),
            widths,
            0.62,
            left=left,
            color=PHASES.get(phase, COLORS[at % len(COLORS)]),
            label=phase,
        )
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for row, total in enumerate(left):
        axes.annotate(
            f"{total:.0f} s", (total, row), (4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(range(len(by_arm)), list(by_arm))
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, max([*left, 1e-9]) * 1.12)
    axes.set_xlabel("seconds a run")
    _legend_above(axes, len(used))
    return figure


@_in_house_style
def perplexity_histogram(
    scores: Mapping[str, Sequence[float]], colors: Mapping[str, str] | None = None
) -> Figure:
    """Perplexity of the accepted sentences, one outline an arm."""
    figure, axes = _figure(5.4, 3.2)
    every = [score for own in scores.values() for score in own]
    low, high = min(every), max(every)
    bins = (
        [low + (high - low) * i / 24 for i in range(25)] if high > low else [low - 0.5, low + 0.5]
    )
    for at, (arm, own) in enumerate(scores.items()):
        color = (colors or {}).get(arm, COLORS[at % len(COLORS)])
        axes.hist(
            own,
            bins,
            color=color,
            histtype="stepfilled",
            alpha=0.28 if len(scores) > 1 else 0.55,
            linewidth=0,
        )
        axes.hist(own, bins, color=color, histtype="step", linewidth=1.6, label=arm)
    axes.set_xlabel("perplexity of accepted sentences")
    axes.set_ylabel("sentences")
    axes.yaxis.set_major_locator(_ticker().MaxNLocator(5, integer=True, min_n_ticks=1))
    _legend_above(axes, len(scores))
    return figure


@_in_house_style
def acceptance_by_round(
    rates: Mapping[str, Sequence[tuple[int, float]]], colors: Mapping[str, str] | None = None
) -> Figure:
    """The share of scored sentences that the discriminator let through, by round."""
    figure, axes = _figure(5.4, 3.2)
    for at, (arm, own) in enumerate(rates.items()):
        color = (colors or {}).get(arm, COLORS[at % len(COLORS)])
        axes.plot(
            *zip(*own, strict=True), color=color, marker=_MARKERS[at % len(_MARKERS)], label=arm
        )
    rounds = [number for own in rates.values() for number, _ in own]
    axes.set_xlim(min(rounds) - 0.3, max(rounds) + 0.3)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("round")
    axes.set_ylabel("accepted")
    axes.yaxis.set_major_formatter(_ticker().PercentFormatter(1))
    axes.xaxis.set_major_locator(_ticker().MaxNLocator(8, integer=True, min_n_ticks=1))
    _legend_above(axes, len(rates))
    return figure


def arm_colors(arms: Sequence[str], plain: str | None = None) -> dict[str, str]:
    """One color an arm, the same in every figure."""
    return {arm: _color(at, arm, arms, plain) for at, arm in enumerate(arms)}


def svg(figure: Figure, name: str, described: str) -> str:
    """An <svg> element for a page; `name` keeps its ids apart from those of other figures, `described` is read to those who cannot see."""
    out = io.StringIO()
    with _settings({"svg.hashsalt": name}):
        figure.savefig(
            out,
            format="svg",
            transparent=True,
            bbox_inches="tight",
            pad_inches=0.04,
            metadata={"Date": None},
        )
    text = out.getvalue()
    text = text[text.index("<svg") :].replace(_INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text).replace("url(#", f"url(#{name}-")
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans'")
    return text.replace("<svg ", f'<svg role="img" aria-label="{_attribute(described)}" ', 1)


def png(figure: Figure) -> bytes:
    """The picture on white, for slides and papers."""
    out = io.BytesIO()
    with _settings():
        figure.savefig(
            out,
            format="png",
            dpi=200,
            facecolor="white",
            bbox_inches="tight",
            pad_inches=0.1,
            metadata={"Software": None},
        )
    return out.getvalue()


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    """A figure of its own, outside pyplot: no window, no global list, no back end to choose."""
    from matplotlib.figure import Figure as Plain

    figure = Plain((width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(color=_INK, alpha=0.13, linewidth=0.7)
    axes.tick_params(length=3)
    for spine in axes.spines.values():
        spine.set_alpha(0.35)
    return figure, axes


def _ticker() -> Any:
    from matplotlib import ticker

    return ticker


def _color(at: int, arm: str, arms: Any, plain: str | None) -> str:
    if arm == plain and len(arms) > 1:
        return PLAIN
    others = [other for other in arms if other != plain or len(arms) == 1]
    return COLORS[others.index(arm) % len(COLORS)]


def _on(color: str) -> str:
    """Black or white, whichever is read more easily on it."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else "#ffffff"


def _name_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Names beside the last points, pushed apart where they would overlap."""
    bottom, top = axes.get_ylim()
    gap = (top - bottom) * 14 / (0.8 * 72 * axes.figure.get_figheight())  # one line of 14 points
    ordered = sorted(ends)
    heights = [y for y, *_ in ordered]
    for _ in range(100):  # each pass moves neighbors that are too close half way apart
        for at in range(1, len(heights)):
            lack = gap - (heights[at] - heights[at - 1])
            if lack > 0:
                heights[at - 1] -= lack / 2
                heights[at] += lack / 2
    right = max(x for _, x, _, _ in ends)
    for height, (_, _, arm, color) in zip(heights, ordered, strict=True):
        axes.annotate(
            arm,
            (right, height),
            (9, 0),
            textcoords="offset points",
            va="center",
            color=color,
            weight="bold",
            annotation_clip=False,
        )


def _legend_above(axes: Any, entries: int) -> None:
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=min(max(entries, 1), 5),
        handlelength=1.2,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def _spent(by_arm: Mapping[str, Mapping[str, float]], phase: str) -> bool:
    return any(own.get(phase, 0) > 0 for own in by_arm.values())


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
