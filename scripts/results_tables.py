"""Write the runs of every sweep, and what the results page quotes, as Markdown tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from results_data import (
    CORPORA,
    LADDER,
    MARGIN,
    RECIPE,
    Comparison,
    Row,
    Table,
    curve_of,
    height_of,
    scores_of,
    seqmix_comparisons,
)
from seqmix.report.statistics import Interval, mean_interval

REMOVED = {  # sweeps with settings that seqmix no longer has
    "proxy": ", on commit 8cea6ab",
    "levers": ", on commit 8cea6ab where an arm is no longer in the file",
}

POLICIES = {"policies-pool": "CoNLL-03", "policies-webpage": "WebPage", "policies-genia": "GENIA"}


def write_tables(tables: Mapping[str, Table], out: Path) -> None:
    """Write one Markdown file for each sweep, and those that the results page quotes."""
    out.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        lines = [f"# {name}", "", f"`{command(name, table)}`{REMOVED.get(name, '')}", ""]
        for split in ("test", "dev"):
            lines += [*f1_table(table, split), ""]
        _write(out / f"{name}.md", lines)
    plain = ("defaults", "defaults-plain", "defaults-rates")
    paper = ("conll03-main", "webpage-main", "genia-main")
    comparisons = seqmix_comparisons(tables)
    for name, title, lines, sweeps in (
        ("seqmix", "SeqMix against plain training", comparison_table(comparisons), ()),
        ("few-labels", "The recipe, part by part", recipe_tables(tables["defaults"]), plain[:1]),
        ("tuned", "The recipe against tuned plain training", tuned_table(tables), plain),
        ("labels-saved", "Labels that the recipe saves", saved_table(tables), plain),
        ("paper", "The paper's comparison and a fair one", paper_table(tables), paper),
        ("policies", "Policies against random", policy_tables(tables), POLICIES),
    ):
        links = ", ".join(f"[{sweep}]({sweep}.md)" for sweep in sweeps) or "the first column"
        source = f"`make results`, from the runs of {links}, where their command is."
        _write(out / f"{name}.md", [f"# {title}", "", source, "", *lines])


def command(name: str, table: Table) -> str:
    """Return the command that makes a table again."""
    rows = [row for runs in table.values() for points in runs.values() for row in points.values()]
    workers = max((int(row["workers"] or 1) for row in rows), default=1)
    folder = "defaults/" if name.startswith(("defaults", "pairing", "recipe")) else ""
    models = (
        " --models MODELS"
        if any("models/" in row["encoder"] or "models/" in row["arm"] for row in rows)
        else ""
    )
    return (
        f"seqmix sweep experiments/{folder}{name}.toml --data DATA{models} "
        f"--out sweeps/{name} --workers {workers}"
    )


def f1_table(table: Table, split: str) -> list[str]:
    """Return mean F1 ± half its 95 % t-interval for each arm and number of labeled sentences."""
    sizes = sorted({size for runs in table.values() for points in runs.values() for size in points})
    lines = [
        f"| {split} F1 | n | {' | '.join(f'{size:,}' for size in sizes)} |",
        "|---|---:|" + "---:|" * len(sizes),
    ]
    for arm, runs in table.items():
        cells = []
        for size in sizes:
            values = [
                100 * float(points[size][f"{split}_f1"])
                for points in runs.values()
                if size in points and points[size][f"{split}_f1"] != ""
            ]
            interval = mean_interval(values)
            spread = f" ± {interval.high - interval.mean:.1f}" if interval.known else ""
            cells.append(f"{interval.mean:.1f}{spread}" if values else "")
        lines.append(f"| {arm} | {len(runs)} | {' | '.join(cells)} |")
    return lines


def comparison_table(comparisons: Sequence[Comparison]) -> list[str]:
    """Return every comparison with its interval, its p and whether it is negligible."""
    lines = [
        "Test F1, difference paired by seed with its 95 % t-interval. "
        "p: the larger of Wilcoxon's and a permutation of signs; "
        "corrected by Holm over all rows with 6 pairs or more. "
        f"Negligible: the 90 % interval lies inside ±{MARGIN:g}.",
        "",
        "| sweep | arm | over | corpus | at | n | difference | p | corrected | negligible |",
        "|---|---|---|---|---|---:|---:|---:|---:|---|",
    ]
    for c in comparisons:
        corrected = "" if math.isnan(c.corrected) else f"{c.corrected:.3f}"
        lines.append(
            f"| {c.sweep} | {c.arm} | {c.control} | {CORPORA[c.data]} | {c.measure} "
            f"| {len(c.differences)} | {spelled(c.interval)} | {c.p:.3f} | {corrected} "
            f"| {'yes' if c.negligible else ''} |"
        )
    return lines


def recipe_tables(table: Table) -> list[str]:
    """Return test F1 of the recipe part by part, one table for each number of labeled sentences."""
    corpora = [name for name in CORPORA if any(arm.startswith(f"{name} ") for arm in table)]
    lines = ["Test F1, mean over seeds. Each row adds one part to the row above it.", ""]
    for size in (50, 100, 200, 700):
        rows = {
            label: [scores_of(table.get(f"{corpus} {size} {arm}", {}), size) for corpus in corpora]
            for label, arm in LADDER.items()
        }
        lines += [
            f"| {size} sentences | {' | '.join(CORPORA[corpus] for corpus in corpora)} | mean |",
            "|---|" + "---:|" * (len(corpora) + 1),
        ]
        for label, columns in rows.items():
            means = [float(np.mean(list(scores.values()))) for scores in columns]
            cells = " | ".join(f"{mean:.1f}" for mean in [*means, float(np.mean(means))])
            lines.append(f"| {label} | {cells} |")
        counts = [
            str(min(len(columns[i]) for columns in rows.values())) for i in range(len(corpora))
        ]
        lines += [f"| seeds | {' | '.join(counts)} | |", ""]
    return lines


def tuned_table(tables: Mapping[str, Table]) -> list[str]:
    """Return the recipe's test F1 at 200 sentences beside the best plain training, by corpus."""
    lines = [
        "Test F1 at 200 random sentences. "
        "Plain training is tuned on dev over steps × rate × head, corpus by corpus.",
        "",
        "| corpus | best plain training on dev | its test F1 | recipe | difference | seeds |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for corpus, name in CORPORA.items():
        runs = tables["defaults"].get(f"{corpus} 200 {RECIPE}", {})
        if not runs:
            continue
        settings, tuned = tuned_on_dev(tables, corpus)
        plain, scores = scores_of(tuned, 200), scores_of(runs, 200)
        shared = sorted(plain.keys() & scores.keys())
        difference = mean_interval([scores[seed] - plain[seed] for seed in shared])
        means = [float(np.mean([s[seed] for seed in shared])) for s in (plain, scores)]
        lines.append(
            f"| {name} | {settings} | {means[0]:.1f} | {means[1]:.1f} "
            f"| {spelled(difference)} | {len(shared)} |"
        )
    return lines


def tuned_on_dev(
    tables: Mapping[str, Table], corpus: str
) -> tuple[str, Mapping[int, Mapping[int, Row]]]:
    """Return settings and runs of the plain training best on a corpus's dev at 200 sentences."""
    trials = {
        arm: runs
        for source in ("defaults-plain", "defaults-rates")
        for arm, runs in tables[source].items()
        if arm.startswith(f"{corpus} ") and ("lr=" in arm or "seed_size=200 " in arm)
    }
    best = max(trials, key=lambda arm: np.mean(list(scores_of(trials[arm], 200, "dev").values())))
    values = dict(part.split("=") for part in best.split() if "=" in part)
    rate = f"{float(values.get('lr', 3e-4)):.0e}".replace("e-0", "e-")
    head = values.get("head", "crf").replace("crf", "CRF")
    return f"{rate}, {int(values['min_steps']):,} steps, {head}", trials[best]


def saved_table(tables: Mapping[str, Table]) -> list[str]:
    """Return with how many sentences the recipe reaches what plain training has at 200."""
    lines = [
        "With how many sentences the recipe has the mean test F1 of plain training at 200 "
        "(a CRF; 300 steps at 3e-4, or tuned on dev), "
        "interpolated between 50, 100 and 200 sentences on a logarithmic scale.",
        "",
        "| corpus | plain training at 200 | reached with | saved "
        "| tuned at 200 | reached with | saved |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    sizes = (50, 100, 200)
    for corpus, name in CORPORA.items():
        arms = [tables["defaults"].get(f"{corpus} {size} {RECIPE}", {}) for size in sizes]
        if not all(arms):
            continue
        recipe = [
            float(np.mean(list(scores_of(runs, size).values())))
            for runs, size in zip(arms, sizes, strict=True)
        ]
        cells = []
        for runs in (tables["defaults"][f"{corpus} 200 plain"], tuned_on_dev(tables, corpus)[1]):
            goal = float(np.mean(list(scores_of(runs, 200).values())))
            needed = float(np.exp(np.interp(goal, recipe, np.log(sizes))))
            cells.append(f"{goal:.1f} | {needed:.0f} | {100 * (1 - needed / 200):.0f} %")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def paper_table(tables: Mapping[str, Table]) -> list[str]:
    """Return SeqMix's gain as the paper compares it, and how much is due to more steps alone."""
    lines = [
        "Test F1 of `sub`, first starter. "
        "The paper compares with 10 epochs of plain training, which are fewer steps.",
        "",
        "| corpus | point | as the paper compares | due to extra steps | due to SeqMix |",
        "|---|---|---:|---:|---:|",
    ]
    for sweep in ("conll03-main", "webpage-main", "genia-main"):
        table = tables[sweep]
        arms = [table[name] for name in ("sub", "none", "none at 10 epochs")]
        seeds = sorted(set.intersection(*(set(runs) for runs in arms)))
        first = min(arms[0][seeds[0]])
        name = CORPORA[arms[0][seeds[0]][first]["data"]]
        for measure, label in (("start", f"{first:,} sentences"), ("curve", "whole curve")):
            heights = [[height_of(runs[seed], measure) for seed in seeds] for runs in arms]
            pairs = ((0, 2), (1, 2), (0, 1))
            gaps = [mean_interval(np.subtract(heights[a], heights[b]).tolist()) for a, b in pairs]
            lines.append(f"| {name} | {label} | {' | '.join(spelled(gap) for gap in gaps)} |")
    return lines


def policy_tables(tables: Mapping[str, Table]) -> list[str]:
    """Return each policy's test F1 over random's, by sentences, tokens and minutes."""
    lines = [
        "Test F1 over random, mean height of the curve with its 95 % t-interval, plain training.",
        "Minutes are those of a person: "
        "0.33 s a token and 4.5 s a span (Wei et al. 2019, nine people).",
        "",
    ]
    for sweep, corpus in POLICIES.items():
        table = {
            arm.removesuffix(" variant=none"): runs
            for arm, runs in tables[sweep].items()
            if not arm.endswith(" variant=sub")
        }
        lines += [f"| {corpus} | at equal sentences | at equal tokens | at equal minutes |"]
        lines += ["|---|---:|---:|---:|"]
        for arm, runs in table.items():
            if arm.startswith("random"):
                continue
            base = table.get("random-crf" if arm.endswith("-crf") or arm == "lc" else "random", {})
            cells = [
                spelled(mean_interval(heights_over(runs, base, axis)))
                for axis in ("labeled", "tokens", "minutes")
            ]
            lines.append(f"| {arm} | {' | '.join(cells)} |")
        lines.append("")
    return lines


def heights_over(
    runs: Mapping[int, Mapping[int, Row]], base: Mapping[int, Mapping[int, Row]], axis: str
) -> list[float]:
    """Return by seed the mean height of a run's curve over the base's, where both have points."""
    differences = []
    for seed in sorted(runs.keys() & base.keys()):
        curves = [
            curve for rows in (runs[seed], base[seed]) if (curve := curve_of(rows, "test", axis))
        ]
        if len(curves) < 2:
            continue
        low, high = max(c.x[0] for c in curves), min(c.x[-1] for c in curves)
        grid = np.linspace(low, high, 101)
        first, second = (np.interp(grid, c.x, c.y).mean() for c in curves)
        differences.append(float(first - second))
    return differences


def spelled(interval: Interval) -> str:
    """Return a difference as `+1.2 (−0.3 to +2.7)`."""
    if not interval.n:
        return ""
    numbers = [interval.mean, interval.low, interval.high]
    mean, low, high = (f"{number:+.1f}".replace("-", "−") for number in numbers)
    return f"{mean} ({low} to {high})" if interval.known else mean


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
