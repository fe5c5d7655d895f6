"""The page of generated sentences and the page for several people."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import seqmix
from seqmix.augment.table import Table
from seqmix.data.spans import spans
from seqmix.serve.settings import read_settings
from seqmix.serve.store.annotators import find_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.batches.batches import add_batch
from seqmix.serve.store.batches.bulk import ACCEPT, accept_answers, untouched
from seqmix.serve.store.rankings import vetoed_ids
from seqmix.serve.store.sentences import add_sentences, read_labeled
from seqmix.serve.tags.changes import Wish
from seqmix.serve.tags.in_settings import change_project_tags
from seqmix.serve.trainer.stages import has_changed
from tests.support.page import answer_as, expect, lines, press, ranked, stored

Serve = Callable[..., Any]


@pytest.fixture
def mixed(serve: Serve) -> tuple[Any, Any]:
    """Five sentences SeqMix made of ten labeled ones, with their lineage."""
    labeled = [s for s in seqmix.sample("gazette:train") if len(spans(s.tags)) > 1][:10]
    words = tuple(sorted({token for sentence in labeled for token in sentence.tokens}))
    vectors = np.random.default_rng(1).normal(size=(len(words), 8)).astype(np.float32)
    starts = np.ones(len(words), dtype=bool)
    table = Table(words, vectors, starts, lambda word: (words.index(word),))
    made = seqmix.SeqMix(table=table, score_range=None, density=0.2).augment(
        labeled, 5, np.random.default_rng(0)
    )
    assert len(made) == 5
    served = serve([sentence.unlabeled() for sentence in labeled])
    ranked(served, records=[one.to_record() for one in made])
    return served, made


def test_a_generated_sentence_is_shown_with_its_parents_and_its_mixed_labels(
    mixed: Any, visit: Any
) -> None:
    served, made = mixed
    page = visit(served.link)
    page.goto(f"{served.url}/generated.html")
    card = page.locator(".card").first
    card.wait_for()

    one, lineage = made[0].sentence, made[0].lineage
    start, end = lineage.windows[lineage.into]
    expect(page.locator(".card")).to_have_count(5)
    expect(card.locator(".made")).to_have_text(" ".join(one.tokens))
    expect(card.locator(".made .window")).to_have_text(" ".join(one.tokens[start:end]))
    expect(card).to_contain_text(f"λ {lineage.weight:.2f}", use_inner_text=True)
    expect(card.locator(".parents .window")).to_have_count(2)
    expect(card.locator(".mix li")).to_have_count(end - start)
    soft = next(row for row in one.tags[start:end] if not isinstance(row, str))
    for tag, share in soft.items():
        expect(card.locator(".mix")).to_contain_text(f"{tag} {round(100 * share)}%")


def test_one_click_chooses_seqmix_and_another_one_replaced_mentions(mixed: Any, visit: Any) -> None:
    served, _ = mixed
    folder = served.project.folder
    page = visit(served.link)
    page.goto(f"{served.url}/generated.html")
    page.get_by_role("button", name="Use SeqMix instead").click()
    page.get_by_text("This takes effect with the next model.").wait_for()
    assert (read_settings(folder).augment, read_settings(folder).rate) == ("sub", 0.2)
    expect(page.locator(".lead")).to_contain_text("mixes a stretch")
    assert has_changed(served.project), "the trainer opens the project again"
    page.get_by_role("button", name="Replace mentions instead").click()
    page.get_by_role("button", name="Use SeqMix instead").wait_for()
    assert (read_settings(folder).augment, read_settings(folder).rate) == ("mention", 1.0)

    other = visit(served.invite("bo"))
    other.goto(f"{served.url}/generated.html")
    other.locator(".card").first.wait_for()
    expect(other.locator("#switch")).to_have_count(0)


def test_a_veto_is_kept_and_can_be_taken_back(mixed: Any, visit: Any) -> None:
    served, _ = mixed
    store = served.project.store
    page = visit(served.link)
    page.goto(f"{served.url}/generated.html")
    button = page.locator(".card").nth(1).get_by_role("button")
    button.click()
    page.locator(".card.vetoed").wait_for()
    expect(button).to_have_attribute("aria-pressed", "true")
    assert len(vetoed_ids(store)) == 1

    page.reload()
    page.locator(".card.vetoed").get_by_role("button").click()
    page.locator(".card.vetoed").wait_for(state="detached")
    assert vetoed_ids(store) == set()


def test_before_the_first_training_the_page_says_that_there_is_nothing_yet(
    serve: Serve, visit: Any
) -> None:
    served = serve(lines("Lena left ."))
    page = visit(served.link)
    page.goto(f"{served.url}/generated.html")
    page.get_by_text("Nothing has been generated yet").wait_for()


@pytest.fixture
def differing(serve: Serve) -> Any:
    served = serve(lines("Lena left Oslo .", "Ada came ."), overlap_share=1.0)
    ranked(served)
    served.invite("omar")
    answer_as(served, "lena", "s0", (0, 1, "PER"), (2, 3, "LOC"))
    answer_as(served, "omar", "s0", (0, 1, "ORG"), (2, 3, "LOC"))
    return served


def test_agreement_is_shown_and_a_conflict_decided_by_an_admin(differing: Any, visit: Any) -> None:
    page = visit(differing.link)
    page.goto(f"{differing.url}/agreement.html")
    row = page.get_by_role("row", name="lena and omar")
    row.wait_for()
    expect(row.get_by_role("cell").nth(0)).to_have_text("1")
    expect(row.get_by_role("cell").nth(1)).to_have_text("0.50")
    card = page.locator(".card")
    expect(card.locator(".differs")).to_have_count(2)

    card.get_by_role("button", name="Use omar’s answer").click()
    expect(card.locator(".sentence .mark").first).to_have_text(re.compile("^Lena"))
    press(page, "4")  # neither: a decision of their own
    card.get_by_role("button", name="Save this").click()
    page.get_by_text("Decided and saved").wait_for()
    decided = next(
        sentence for sentence in read_labeled(differing.project.store) if sentence.id == "s0"
    )
    assert decided.tags == ("B-MISC", "O", "B-LOC", "O")
    page.reload()
    page.get_by_text("There are no conflicts.").wait_for()


def test_a_decision_that_knew_the_old_tags_gets_those_of_now(differing: Any, visit: Any) -> None:
    page = visit(differing.link)
    page.goto(f"{differing.url}/agreement.html")
    card = page.locator(".card")
    card.locator(".sentence").focus()
    press(page, "4")
    folder, store = differing.project.folder, differing.project.store
    change_project_tags(folder, store, Wish("rename", "MISC", ("Other",)))
    page.locator("#conflicts", has_text="MISC is now Other.").wait_for()
    card.get_by_role("button", name="Save this").click()
    page.get_by_text("Decided and saved").wait_for()
    assert stored(differing)["s0"][0] == [(0, 1, "Other"), (2, 3, "LOC")]


def test_everybody_is_listed_with_their_answers_and_how_long_one_takes(
    differing: Any, visit: Any
) -> None:
    store = differing.project.store
    lena = find_annotator(store, "lena").id
    save_answer(store, "s1", lena, "label", [], seconds=9.0)
    page = visit(differing.link)
    page.goto(f"{differing.url}/agreement.html")
    row = page.locator("#people").get_by_role("row", name="lena")
    row.wait_for()
    columns = ["Name", "Labeled", "An answer takes"]
    expect(page.locator("#people th[scope=col]")).to_have_text(columns)
    expect(row.get_by_role("rowheader")).to_have_text("lena (admin)")
    expect(row.get_by_role("cell")).to_have_text(["2", "4.5 s"])
    omar = page.locator("#people").get_by_role("row", name="omar")
    expect(omar.get_by_role("cell")).to_have_text(["1", "–"])

    batch = add_batch(store, ACCEPT, lena, {})
    add_sentences(store, lines("Eve slept ."), rename=True)
    (id,) = untouched(store)
    accept_answers(store, batch, lena, [(id, [])])
    page.reload()
    row.wait_for()
    expect(row.get_by_role("cell")).to_have_text(["2", "1", "4.5 s"])


def test_somebody_new_is_added_and_their_link_lets_them_in(differing: Any, visit: Any) -> None:
    add_sentences(differing.project.store, lines("Bo slept ."), rename=True)  # lena may hold one
    page = visit(differing.link)
    page.goto(f"{differing.url}/agreement.html")
    page.get_by_label("Name").fill("mio")
    page.get_by_role("button", name="Add").click()
    link = page.locator("#invited code")
    link.wait_for()
    other = visit(link.inner_text())
    other.locator("#sentence .token").first.wait_for()
    expect(other.locator("#who")).to_have_text("mio")
    expect(other.get_by_role("link", name="Team")).to_have_count(0)
    other.goto(f"{differing.url}/agreement.html")
    other.get_by_role("heading", name="This page is for admins").wait_for()
