"""The sections of the report on generated sentences: how many, how plausible, and examples."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence

import numpy as np

from seqmix.data.augmented import Augmented
from seqmix.data.sentence import Sentence
from seqmix.loop.round_record import RoundRecord
from seqmix.report import plots
from seqmix.report.case import card, cases, html_marked, label, verdict, window_of
from seqmix.report.comparison import Comparison
from seqmix.report.curves import Run
from seqmix.report.markup import note, table

EXAMPLES = 10


def generated_sentences(comparison: Comparison) -> str:
    """Show how many sentences each arm generated, and their perplexity; empty without any."""
    generating = {
        arm: runs
        for arm, runs in comparison.arms.items()
        if any(round.generated for run in runs for round in run.rounds)
    }
    if not generating:
        return ""
    head = ["arm", "generated of asked", "accepted", "share of the most frequent entry", "skewness"]
    rows = [[comparison.label(arm), *_counts(runs)] for arm, runs in generating.items()]
    notes = [
        "Accepted: the share of scored sentences inside the perplexity range.",
        "Hubness: how much of all replaced tokens the most frequent entry takes, and how skewed "
        "the choices are; high values mean that a few words appear everywhere.",
    ]
    drawn = []
    if rates := _rates(generating):
        figure = plots.acceptance_by_round(rates, comparison.colors)
        caption = "Acceptance rate of the discriminator by round."
        drawn.append(comparison.draw("acceptance", figure, caption))
    if scores := _scores(comparison.generated):
        figure = plots.perplexity_histogram(scores, comparison.colors)
        drawn.append(comparison.draw("perplexity", figure, "Perplexity of the accepted sentences."))
    heading = "<h2>Generated sentences</h2>"
    return f"{heading}{table(head, rows)}{note(notes)}<div class=pair>{''.join(drawn)}</div>"


def _counts(runs: Sequence[Run]) -> list[str]:
    rounds = [round for run in runs for round in run.rounds]
    asked = sum(int(round.augmentation.get("asked") or 0) for round in rounds)
    shares, skews = (
        [float(value) for r in rounds if (value := r.augmentation.get(key)) is not None]
        for key in ("largest_share", "skewness")
    )
    accepted = _accepted(rounds)
    return [
        f"{sum(run.rounds[-1].generated for run in runs)} of {asked}",
        f"{np.mean(accepted):.0%}" if accepted else "–",
        f"{np.mean(shares):.1%}, at most {max(shares):.1%}" if shares else "–",
        f"{np.mean(skews):.1f}" if skews else "–",
    ]


def _accepted(rounds: Sequence[RoundRecord]) -> list[float]:
    return [rate for round in rounds if (rate := round.acceptance) is not None]


def _rates(arms: Mapping[str, Sequence[Run]]) -> dict[str, list[tuple[int, float]]]:
    """Return the mean acceptance rate of each round, for arms that have any."""
    rates = {}
    for arm, runs in arms.items():
        rounds = [round for run in runs for round in run.rounds]
        by_round = {
            number: _accepted([round for round in rounds if round.number == number])
            for number in sorted({round.number for round in rounds})
        }
        if any(by_round.values()):
            rates[arm] = [(n, sum(some) / len(some)) for n, some in by_round.items() if some]
    return rates


def _scores(generated: Mapping[str, Sequence[tuple[int, Augmented]]]) -> dict[str, list[float]]:
    """Return the finite scores of each arm, for arms that have any."""
    scores = {
        arm: [
            candidate.lineage.score
            for _, candidate in candidates
            if candidate.lineage.score is not None and math.isfinite(candidate.lineage.score)
        ]
        for arm, candidates in generated.items()
    }
    return {arm: values for arm, values in scores.items() if values}


def generated_examples(comparison: Comparison) -> str:
    """Show generated sentences evenly spread over arms and rounds; empty without any."""
    candidates = [
        (arm, number, candidate)
        for arm, pairs in comparison.generated.items()
        for number, candidate in pairs
    ]
    if not candidates:
        return ""
    places = np.unique(np.linspace(0, len(candidates) - 1, EXAMPLES).astype(int))
    cards = "".join(
        _example(f"{n} · {arm}, round {number}", candidate, comparison.sentences)
        for n, (arm, number, candidate) in enumerate((candidates[at] for at in places), 1)
    )
    lead = f"{len(places)} of {len(candidates)}, evenly spread. Marked: what was mixed in."
    return f"<h2>Examples</h2><p>{lead}</p>{cards}"


def _example(heading: str, candidate: Augmented, sentences: Mapping[str, Sentence]) -> str:
    lineage = candidate.lineage
    if lineage.parents and all(id in sentences for id in lineage.parents):
        return card(heading, cases([candidate], sentences.values())[0])
    start, end = window_of(candidate)
    origin = [f"{lineage.method} of {' and '.join(lineage.parents)}"]
    if lineage.weight is not None:
        origin.append(f"λ = {lineage.weight:.2f}")
    tags = [label(row) for row in candidate.sentence.tags[start:end]]
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in (candidate.sentence.tokens[start:end], tags)
    )
    marked = html_marked(candidate.sentence.tokens, (start, end))
    return (
        f"<article><h2>{html.escape(heading)}</h2>"
        f"<p class=kept>{marked} <small>{html.escape(verdict(candidate))}</small></p>"
        f"<div class=wide><table>{cells}</table></div>"
        f"<p><small>{html.escape(' · '.join(origin))}</small></p></article>"
    )
