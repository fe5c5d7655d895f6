"""The style that all figures share, and figures as SVG text or PNG bytes.

Lettering and axes have one ink, which becomes `currentColor` in SVG to follow light and dark pages.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito
MARKERS = "osD^vP"
INK = "#1f2429"
_BASELINE = "#8a8f98"
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "svg.fonttype": "none",  # letters can be searched and read aloud
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
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}
Figure = Any  # matplotlib's
P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with these settings without changing the caller's."""

    @wraps(draw)
    def draw_styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with _settings():
            return draw(*args, **kwargs)

    return draw_styled


def _settings(more: Mapping[str, Any] | None = None) -> Any:
    import matplotlib  # here, since it is slow to load

    return matplotlib.rc_context({**_SETTINGS, **(more or {})})


def new_figure(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure and its axes outside pyplot, which would choose a back end."""
    from matplotlib.figure import Figure as Plain

    figure = Plain((width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(color=INK, alpha=0.13, linewidth=0.7)
    axes.tick_params(length=3)
    for spine in axes.spines.values():
        spine.set_alpha(0.35)
    return figure, axes


def ticker() -> Any:
    """Return matplotlib's module of tick locators and formatters."""
    from matplotlib import ticker

    return ticker


def arm_colors(arms: Collection[str], baseline: str | None = None) -> dict[str, str]:
    """Return a color for each arm, gray for the baseline of several."""
    plain = baseline if len(arms) > 1 else None
    compared = [arm for arm in arms if arm != plain]
    colors = {arm: COLORS[at % len(COLORS)] for at, arm in enumerate(compared)}
    return {arm: colors.get(arm, _BASELINE) for arm in arms}


def contrasting(color: str) -> str:
    """Return black or white, whichever is easier to read on the color."""
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else "#ffffff"


def name_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names beside the last points (y, x, name, color), apart from each other."""
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
    for height, (_, _, name, color) in zip(heights, ordered, strict=True):
        axes.annotate(
            name,
            (right, height),
            (9, 0),
            textcoords="offset points",
            va="center",
            color=color,
            weight="bold",
            annotation_clip=False,
        )


def legend_above(axes: Any, entries: int) -> None:
    """Put the legend above the axes, in up to five columns."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1.0),
        ncols=min(max(entries, 1), 5),
        handlelength=1.2,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def svg(figure: Figure, name: str, description: str) -> str:
    """Return an <svg> element; its ids begin with `name`, screen readers read the description."""
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
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text).replace("url(#", f"url(#{name}-")
    text = text.replace("'DejaVu Sans'", "system-ui, 'DejaVu Sans'")
    return text.replace("<svg ", f'<svg role="img" aria-label="{_attribute(description)}" ', 1)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def png(figure: Figure) -> bytes:
    """Return the picture on white, for slides and papers."""
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
