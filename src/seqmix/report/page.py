"""Runs told on one HTML page that needs nothing else, with the figures as PNG and the numbers as CSV in a folder beside it."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from seqmix.data.augmented import Augmented
from seqmix.data.files import replacing, write_text
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError
from seqmix.report import plots
from seqmix.report.case import STYLE, card, cases, html_marked, label, verdict, window_of
from seqmix.report.curves import (
    COSTS,
    SPLITS,
    Run,
    aligned,
    as_csv,
    band,
    baseline,
    by_arm,
    curve,
    load_generated,
    load_runs,
    mean_curve,
    shared_split,
)
from seqmix.report.markup import PAGE, PAGE_STYLE, interval, many, note, p_value, table, with_sign
from seqmix.report.statistics import (
    area_under_curve,
    labels_saved,
    mean_interval,
    paired_interval,
    paired_permutation,
    wilcoxon,
)

EXAMPLES = 10


@dataclass
class _Story:
    """What every section draws from, and the figures drawn so far."""

    runs: list[Run]
    split: str
    sentences: Mapping[str, Sentence]
    arms: dict[str, list[Run]] = field(init=False)
    even: dict[str, list[Run]] = field(init=False)  # cut to what all runs reached
    plain: str = field(init=False)
    made: dict[str, list[tuple[int, Augmented]]] = field(init=False)
    pictures: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arms = by_arm(self.runs)
        self.even = by_arm(aligned(self.runs))
        self.plain = baseline(self.arms)
        self.made = {
            arm: [one for run in own for one in load_generated(run)]
            for arm, own in self.arms.items()
        }

    @property
    def last(self) -> int:
        """The number of labeled sentences at which the arms are compared."""
        return self.even[self.plain][0].rounds[-1].labeled

    def draw(self, name: str, figure: plots.Figure, described: str, large: bool = False) -> str:
        """The figure for the page; its PNG is kept for the folder."""
        self.pictures[name] = plots.png(figure)
        size = " data-large" if large else ""
        caption = f"<figcaption>{html.escape(described)}</figcaption>"
        return f"<figure class=wide{size}>{plots.svg(figure, name, described)}{caption}</figure>"


def write_report(
    runs: Sequence[Path], out: Path, split: str | None = None, sentences: Iterable[Sentence] = ()
) -> Path:
    """Write the page to `out` and PNG and CSV files to `<stem>_files` beside it; give the folder.

    The split is test where every run was scored on it, else dev. With the labeled `sentences`, examples are told with their parents.
    """
    loaded = load_runs(runs)
    if split is not None and not all(
        split in round.scores for run in loaded for round in run.rounds
    ):
        raise DataError(
            f"not every run was scored on {split}; leave the split out to take one that all have"
        )
    story = _Story(
        loaded, split or shared_split(loaded), {sentence.id: sentence for sentence in sentences}
    )
    page = _page(story)
    folder = out.with_name(f"{out.stem}_files")
    with replacing(folder, folder=True) as beside:
        for name, picture in story.pictures.items():
            (beside / f"{name}.png").write_bytes(picture)
        (beside / "curves.csv").write_text(as_csv(loaded), encoding="utf-8", newline="\n")
    write_text(out, page)
    return folder


def _page(story: _Story) -> str:
    sections: list[Callable[[_Story], str]] = [
        _summary,
        _tests,
        _curves,
        _types,
        _generated,
        _examples,
        _time,
        _sources,
    ]
    body = "\n".join(
        f"<section>{told}</section>" for section in sections if (told := section(story))
    )
    place = f"{'compared ' if len(story.arms) > 1 else ''}at {many(story.last, 'labeled sentence')}"
    lead = f"{many(len(story.runs), 'run')} of {many(len(story.arms), 'arm')}, F1 on <b>{story.split}</b>, {place}."
    return PAGE.format(style=STYLE + PAGE_STYLE, lead=lead, body=body)


def _summary(story: _Story) -> str:
    several = len(story.even[story.plain][0].rounds) > 1
    held = mean_curve(band(story.even[story.plain], story.split))
    others = [
        split
        for split in SPLITS
        if split != story.split and all(split in r.scores for run in story.runs for r in run.rounds)
    ]
    head = [
        "arm",
        "seeds",
        *(f"F1 on {split}" for split in (story.split, *others)),
        f"area under the curve ({story.split})",
    ]
    rows = []
    for arm, runs in story.even.items():
        finals = [
            mean_interval([run.rounds[-1].f1(split) for run in runs])
            for split in (story.split, *others)
        ]
        area = (
            mean_interval([area_under_curve(curve(run, story.split)) for run in runs])
            if several
            else None
        )
        row = [
            _arm(story, arm),
            str(len(runs)),
            *map(interval, finals),
            interval(area) if area else "–",
        ]
        if len(story.arms) > 1:
            saved = labels_saved(mean_curve(band(runs, story.split)), held)
            row.append(
                "baseline"
                if arm == story.plain
                else "not reached"
                if saved is None
                else f"{with_sign(saved, 0)}"
            )
        rows.append(row)
    notes = [
        "Means over seeds with 95 % Student t intervals."
        if any(len(runs) > 1 for runs in story.arms.values())
        else "One seed: no interval."
    ]
    if len(story.arms) > 1:
        head.append("labels saved")
        notes.append(
            f"Labels saved: how many fewer labeled sentences the mean curve needs to reach the final {story.split} F1 of "
            f"<b>{html.escape(story.plain)}</b> ({held.y[-1]:.3f}), between rounds by straight lines."
        )
    if several:
        notes.append(
            "The area is divided by the range of labeled sentences: it is the mean F1 along the curve."
        )
    return "<h2>Summary</h2>" + table(head, rows) + note(notes)


def _tests(story: _Story) -> str:
    held = {run.seed: run for run in story.even[story.plain]}
    rows, pairs = [], 0
    for arm, runs in story.even.items():
        paired = [run for run in runs if run.seed in held]
        if arm == story.plain or not paired:
            continue
        pairs = max(pairs, len(paired))
        own, base = (
            [run.rounds[-1].f1(story.split) for run in side]
            for side in (paired, [held[run.seed] for run in paired])
        )
        points = [
            mean_curve(band(side, story.split)).y
            for side in (paired, [held[run.seed] for run in paired])
        ]
        rng = np.random.default_rng(0)
        gain = paired_interval(own, base)
        tests = (
            [paired_permutation(own, base, rng), wilcoxon(own, base)]
            if len(paired) > 1
            else [math.nan, math.nan]
        )
        tests.append(wilcoxon(points[0], points[1]) if len(points[0]) > 1 else math.nan)
        rows.append(
            [_arm(story, arm), str(len(paired)), interval(gain, signed=True), *map(p_value, tests)]
        )
    if not rows:
        return ""
    head = [
        "arm",
        "pairs",
        f"gain in {story.split} F1",
        "permutation p",
        "Wilcoxon p, seeds",
        "Wilcoxon p, curve points",
    ]
    notes = [
        f"Runs with the same seed are pairs. Gain at {story.last} labeled sentences with its 95 % Student t interval; tests are two-sided.",
        "The points of one curve are not independent: the last column is there because the paper has it.",
    ]
    if pairs > 1:
        notes.append(
            f"With {pairs} pairs neither test over seeds can fall below p = {2 / 2**pairs:.2g}."
        )
    else:
        notes.append("One pair: no test over seeds, no interval.")
    return f"<h2>Against {html.escape(story.plain)}</h2>" + table(head, rows) + note(notes)


def _curves(story: _Story) -> str:
    if all(len(run.rounds) < 2 for run in story.runs):
        return "<h2>Learning curves</h2><p>One round is finished; a curve needs two.</p>"
    shown = []
    for against, name in COSTS.items():
        bands = {arm: band(runs, story.split, against) for arm, runs in story.arms.items()}
        spread = (
            "; shaded: 95 % interval over seeds"
            if any(point.f1.known for own in bands.values() for point in own)
            else ""
        )
        figure = plots.learning_curves(bands, story.split, against, story.plain)
        shown.append(
            story.draw(
                f"curve_{against}",
                figure,
                f"F1 on {story.split} against {name}{spread}.",
                against == "labeled",
            )
        )
    return f"<h2>Learning curves</h2>{shown[0]}<div class=pair>{''.join(shown[1:])}</div>"


def _types(story: _Story) -> str:
    found: dict[str, dict[str, list[float]]] = {arm: {} for arm in story.even}
    gold: dict[str, int] = {}
    for arm, runs in story.even.items():
        for run in runs:
            for type, score in run.rounds[-1].scores[story.split].get("by_type", {}).items():
                found[arm].setdefault(type, []).append(float(score["f1"]))
                gold[type] = max(gold.get(type, 0), int(score.get("gold", 0)))
    if not gold:
        return ""
    bars = {
        arm: {type: mean_interval(f1) for type, f1 in own.items()} for arm, own in found.items()
    }
    figure = plots.type_bars(bars, gold, story.split, story.plain)
    return "<h2>By entity type</h2>" + story.draw(
        "types",
        figure,
        f"F1 on {story.split} by type at {story.last} labeled sentences.",
        large=True,
    )


def _generated(story: _Story) -> str:
    colors = plots.arm_colors(list(story.arms), story.plain)
    rows, rates = [], {}
    for arm, runs in story.arms.items():
        rounds = [round for run in runs for round in run.rounds]
        if not any(round.generated for round in rounds):
            continue
        asked = sum(int(round.augmentation.get("asked") or 0) for round in rounds)
        shares, skews = (
            [float(v) for r in rounds if (v := r.augmentation.get(key)) is not None]
            for key in ("largest_share", "skewness")
        )
        accepted = [rate for round in rounds if (rate := round.acceptance) is not None]
        rows.append(
            [
                _arm(story, arm),
                f"{sum(run.rounds[-1].generated for run in runs if run.rounds)} of {asked}",
                f"{np.mean(accepted):.0%}" if accepted else "–",
                f"{np.mean(shares):.1%}, at most {max(shares):.1%}" if shares else "–",
                f"{np.mean(skews):.1f}" if skews else "–",
            ]
        )
        numbers = sorted({round.number for round in rounds})
        own = {
            n: [rate for r in rounds if r.number == n and (rate := r.acceptance) is not None]
            for n in numbers
        }
        if accepted:
            rates[arm] = [(n, sum(found) / len(found)) for n, found in own.items() if found]
    if not rows:
        return ""
    head = ["arm", "generated of asked", "accepted", "share of the most frequent entry", "skewness"]
    told = "<h2>Generated sentences</h2>" + table(head, rows)
    told += note(
        [
            "Accepted: the share of scored sentences inside the perplexity range. Hubness: how much of all replaced tokens the most "
            "frequent entry takes, and how skewed the choices are; high means that a few words stand everywhere."
        ]
    )
    scores = {
        arm: [
            one.lineage.score
            for _, one in own
            if one.lineage.score is not None and math.isfinite(one.lineage.score)
        ]
        for arm, own in story.made.items()
    }
    scores = {arm: own for arm, own in scores.items() if own}
    figures = []
    if rates:
        figures.append(
            story.draw(
                "acceptance",
                plots.acceptance_by_round(rates, colors),
                "Acceptance rate of the discriminator by round.",
            )
        )
    if scores:
        figures.append(
            story.draw(
                "perplexity",
                plots.perplexity_histogram(scores, colors),
                "Perplexity of the accepted sentences.",
            )
        )
    return told + f"<div class=pair>{''.join(figures)}</div>"


def _examples(story: _Story) -> str:
    every = [(arm, number, one) for arm, own in story.made.items() for number, one in own]
    if not every:
        return ""
    picked = [every[at] for at in np.unique(np.linspace(0, len(every) - 1, EXAMPLES).astype(int))]
    cards = "".join(
        _example(f"{n} · {arm}, round {number}", one, story.sentences)
        for n, (arm, number, one) in enumerate(picked, 1)
    )
    return f"<h2>Examples</h2><p>{len(picked)} of {len(every)}, evenly spread. Marked: what was mixed in.</p>{cards}"


def _example(heading: str, made: Augmented, sentences: Mapping[str, Sentence]) -> str:
    lineage = made.lineage
    if lineage.parents and all(id in sentences for id in lineage.parents):
        return card(heading, cases([made], sentences.values())[0])
    start, end = window_of(made)
    told = [
        f"{lineage.method} of {' and '.join(lineage.parents)}",
        *([f"λ = {lineage.weight:.2f}"] if lineage.weight is not None else []),
    ]
    rows = [made.sentence.tokens[start:end], [label(row) for row in made.sentence.tags[start:end]]]
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<article><h2>{html.escape(heading)}</h2><p class=kept>{html_marked(made.sentence.tokens, (start, end))} "
        f"<small>{html.escape(verdict(made))}</small></p><div class=wide><table>{cells}</table></div>"
        f"<p><small>{html.escape(' · '.join(told))}</small></p></article>"
    )


def _time(story: _Story) -> str:
    spent: dict[str, dict[str, float]] = {}
    for arm, runs in story.arms.items():
        rounds = [round for run in runs for round in run.rounds if round.labeled <= story.last]
        phases = dict.fromkeys(phase for round in rounds for phase in round.seconds)
        spent[arm] = {
            phase: sum(round.seconds.get(phase, 0.0) for round in rounds) / len(runs)
            for phase in phases
        }
    if not any(sum(own.values()) > 0 for own in spent.values()):
        return ""
    return "<h2>Time</h2>" + story.draw(
        "time",
        plots.phase_bars(spent),
        f"Seconds of a run by phase, up to {story.last} labeled sentences, mean over seeds.",
        large=True,
    )


def _sources(story: _Story) -> str:
    rows = []
    for run in story.runs:
        last = run.rounds[-1]
        rows.append(
            [
                _arm(story, run.arm),
                str(run.seed),
                str(len(run.rounds)),
                str(last.labeled),
                html.escape(str(last.stop or "not ended")),
                html.escape(str(run.path)),
            ]
        )
    head = ["arm", "seed", "rounds", "labeled", "ended by", "directory"]
    return f"<details><summary>The runs</summary>{table(head, rows)}</details>"


def _arm(story: _Story, arm: str) -> str:
    color = plots.arm_colors(list(story.arms), story.plain)[arm]
    return f'<span class=dot style="background:{color}"></span>{html.escape(arm)}'
