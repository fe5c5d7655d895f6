"""The case study: what is told of a pair, in the terminal and as a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seqmix.augment.score_range import ScoreRange
from seqmix.augment.seqmix import SeqMix
from seqmix.data import formats
from seqmix.data.augmented import Augmented, Lineage
from seqmix.data.sentence import Sentence
from seqmix.report.case import as_page, as_text, cases

CONLL = Path(__file__).parents[3] / "shared" / "data" / "conll03" / "train.txt"


def told() -> tuple[list[Sentence], list[Augmented]]:
    i = Sentence("i", ("COLORADO", "10", "St"), ("B-ORG", "O", "B-ORG"))
    j = Sentence("j", ("to", "Slovenia", ",", "Kwasniewski"), ("O", "B-LOC", "O", "B-PER"))
    rows = ({"B-ORG": 0.39, "B-LOC": 0.61}, "O", {"B-ORG": 0.39, "B-PER": 0.61})
    first = Augmented(
        Sentence("i2", ("Ohio", "(", "novelist"), rows),
        Lineage("sub", ("i", "j"), ((0, 3), (1, 4)), 0, 0.39, 877.2, "e", (0.5, 0.6, 0.7)),
        kept=False,
    )
    second = Augmented(
        Sentence("j2", ("to", "Ohio", "(", "novelist"), ("O", *rows)),
        Lineage("sub", ("i", "j"), ((0, 3), (1, 4)), 1, 0.39, 332.4, "e", (0.5, 0.6, 0.7)),
    )
    return [i, j], [second, first]


def test_a_case_is_told_as_the_paper_does() -> None:
    sentences, made = told()

    (case,) = cases(made, sentences)

    assert as_text(case) == "\n".join(
        [
            "sequence i  (i)",
            "  [COLORADO 10 St]",
            "sequence j  (j)",
            "  to [Slovenia , Kwasniewski]",
            "mixed with λ = 0.39, 1 − λ = 0.61",
            "  i         COLORADO               10    St",
            "            B-ORG                  O     B-ORG",
            "  j         Slovenia               ,     Kwasniewski",
            "            B-LOC                  O     B-PER",
            "  mixed     Ohio                   (     novelist",
            "            B-LOC 0.61 B-ORG 0.39  O     B-PER 0.61 B-ORG 0.39",
            "  distance  0.50                   0.60  0.70",
            "generated i: perplexity 877, rejected",
            "  [Ohio ( novelist]",
            "generated j: perplexity 332, kept",
            "  to [Ohio ( novelist]",
        ]
    )


def test_the_page_shows_text_as_text() -> None:
    i = Sentence("<i>", ("<script>", "b"), ("B-PER", "O"))
    made = Augmented(
        Sentence("x", ("&", "b"), ("B-PER", "O")),
        Lineage("sub", ("<i>", "<i>"), ((0, 1), (0, 1)), 0, 0.5),
    )

    page = as_page(cases([made], [i]), "a <title>")

    assert "<script>" not in page and "&lt;script&gt;" in page and "a &lt;title&gt;" in page


@pytest.mark.skipif(not CONLL.exists(), reason="needs ../shared/data/conll03 beside the repository")
def test_the_papers_case_study_runs_on_its_own_two_sentences() -> None:
    wanted = {"COLORADO 10 St Louis 2", "During his visit to Slovenia , Kwasniewski"}
    pair = [
        s
        for s in formats.read(CONLL)
        if any(" ".join(s.tokens).startswith(text) for text in wanted)
    ]
    mixer = SeqMix(
        "sub",
        window=3,
        density=2 / 3,
        weight=0.39,
        score_range=ScoreRange(0, 500),
        trace=True,
        max_uses=100,
    )
    made = mixer.augment(pair, 1000, np.random.default_rng(0))

    windows = {s.id: s.tokens for s in pair}
    stories = [as_text(case) for case in cases([*made, *made.rejected], pair)]
    found = [
        story
        for story, case in zip(stories, cases([*made, *made.rejected], pair), strict=True)
        if {
            " ".join(windows[id][a:b])
            for id, (a, b) in zip(
                case.candidates[0].lineage.parents, case.candidates[0].lineage.windows, strict=True
            )
        }
        == {"COLORADO 10 St", "Slovenia , Kwasniewski"}
    ]
    assert len(found) == 1
    assert "λ = 0.39" in found[0] and "perplexity" in found[0]
    assert (
        "[COLORADO 10 St] Louis 2" in found[0]
        and "visit to [Slovenia , Kwasniewski] is also" in found[0]
    )
    assert {"B-ORG", "B-LOC", "B-PER"} <= set(found[0].split())
