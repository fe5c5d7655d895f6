"""Labeling on the page: keyboard, mouse and finger; what is called saved is saved."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from seqmix.data.sentence import Sentence
from seqmix.errors import StoreError
from seqmix.serve.project import add_text
from seqmix.serve.sources.llm.annotator import save_over_models
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.current import read_counts
from seqmix.serve.store.events import read_events
from seqmix.serve.store.rankings import publish_generation
from seqmix.serve.store.sentences import read_audit_sentences, read_labeled
from seqmix.serve.tags.changes import Wish
from seqmix.serve.tags.in_settings import change_project_tags
from seqmix.serve.web.routes import annotating
from tests.support.page import Line, expect, heard, lines, press, ranked, shown, stored
from tests.support.waiting import until

Serve = Callable[..., Any]
TEXTS = (
    "Lena Okafor left Oslo for Rome .",
    "Acme sold a mill in Ghana .",
    "Nobody came .",
    "Ada met Bo in Turin .",
)


@pytest.fixture
def names(serve: Serve) -> Any:
    served = serve(lines(*TEXTS))
    ranked(served)
    return served


def marked(page: Any, *marks: str | re.Pattern[str]) -> None:
    """Wait until these marks are on the page, each with its tag, and no others."""
    expect(page.locator("#sentence .mark")).to_have_text(list(marks), use_inner_text=True)


def test_keys_alone_mark_move_clear_and_save(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(
        page,
        "Shift+ArrowRight",
        "1",
        "ArrowRight",
        "ArrowRight",
        "3",
        "End",
        "4",
        "x",
        "ArrowLeft",
        "3",
        "Enter",
    )
    shown(page, "s1")

    expect(page.locator("#status")).to_have_text("Saved.")
    assert stored(names) == {"s0": ([(0, 2, "PER"), (3, 4, "LOC"), (5, 6, "LOC")], None)}


def test_a_drag_selects_whole_tokens_and_a_tag_button_marks_them(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    first, last = (
        page.locator("#sentence-0").bounding_box(),
        page.locator("#sentence-1").bounding_box(),
    )
    page.mouse.move(
        first["x"] + first["width"] - 3, first["y"] + 8
    )  # in the middle of words: spans snap to tokens
    page.mouse.down()
    page.mouse.move(last["x"] + 4, last["y"] + 8, steps=4)
    page.mouse.up()
    page.get_by_role("button", name="PER").click()
    marked(page, "Lena Okafor PER ×")

    page.locator("#sentence-1").click()  # a click on a mark means the mark
    page.get_by_role("button", name="ORG").click()
    marked(page, "Lena Okafor ORG ×")
    page.locator("[data-remove]").click()
    marked(page)


def test_a_tag_in_hand_marks_whatever_is_dragged_over(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    tag = page.get_by_role("button", name="LOC")
    tag.click()
    expect(tag).to_have_attribute("aria-pressed", "true")
    page.locator("#sentence-3").click()
    page.locator("#sentence-5").click()
    marked(page, "Oslo LOC ×", "Rome LOC ×")
    press(page, "Escape")
    expect(tag).to_have_attribute("aria-pressed", "false")


def test_a_finger_taps_the_first_and_the_last_token(names: Any, visit: Any) -> None:
    page = visit(names.link, width=390, height=844, has_touch=True)
    shown(page, "s0")
    page.locator("#sentence-0").tap()
    page.locator("#sentence-1").tap()
    page.get_by_role("button", name="PER").tap()
    page.get_by_role("button", name="Save").tap()
    shown(page, "s1")
    assert stored(names)["s0"] == ([(0, 2, "PER")], None)


def test_suggestions_are_dashed_with_their_confidence_until_someone_says_yes(
    serve: Serve, visit: Any
) -> None:
    served = serve(lines(*TEXTS))
    right, wrong = (
        {"start": 0, "end": 2, "tag": "PER", "confidence": 0.87},
        {"start": 3, "end": 4, "tag": "ORG", "confidence": 0.41},
    )
    ranked(served, {"s0": [right, wrong]})
    page = visit(served.link)
    shown(page, "s0")

    marked(page, "Lena Okafor PER 87% ×", "Oslo ORG 41% ×")
    expect(page.locator(".mark.suggested")).to_have_count(2)
    expect(page.locator(".mark.suggested").first).to_have_css("border-bottom-style", "dashed")
    expect(page.locator("#stream")).to_contain_text("at least 41% sure")
    press(page, "n", "n", "3")  # the second mark is wrong
    marked(page, "Lena Okafor PER 87% ×", "Oslo LOC ×")
    press(page, "Enter")
    shown(page, "s1")
    assert stored(served)["s0"] == ([(0, 2, "PER"), (3, 4, "LOC")], None)


def test_only_sure_of_this_part_saves_that_part(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "Shift+ArrowRight", "1", "Home", "Shift+ArrowRight", "Shift+ArrowRight", "p")
    expect(page.locator("#part")).to_contain_text("“Lena Okafor left”")
    expect(page.locator(".token.unsure")).to_have_count(4)
    press(page, "Enter")
    shown(page, "s1")

    assert stored(names)["s0"] == ([(0, 2, "PER")], ((0, 3),))
    tags = next(
        sentence for sentence in read_labeled(names.project.store) if sentence.id == "s0"
    ).tags
    assert tags == ("B-PER", "I-PER", "O", None, None, None, None)


def test_undo_goes_back_through_changes_and_then_to_the_last_answer(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "1", "Enter")
    shown(page, "s1")
    press(page, "2", "z")
    marked(page)
    press(page, "z")
    shown(page, "s0")
    marked(page, "Lena PER ×")  # laid out again
    assert stored(names) == {}
    press(page, "Shift+ArrowRight", "1", "Enter")
    shown(page, "s1")
    assert stored(names) == {"s0": ([(0, 2, "PER")], None)}


def test_an_earlier_answer_can_be_corrected_and_the_open_sentence_waits(
    names: Any, visit: Any
) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "2", "Enter")
    shown(page, "s1")
    press(page, "2")
    page.get_by_role("button", name="Lena Okafor left Oslo").click()
    shown(page, "s0")
    marked(page, "Lena ORG ×")
    press(page, "1", "Enter")
    shown(page, "s1")
    marked(page, "Acme ORG ×")  # begun before
    assert stored(names) == {"s0": ([(0, 1, "PER")], None)}
    press(page, "Backspace")
    shown(page, "s0")
    page.get_by_role("button", name="Leave it and continue").click()
    shown(page, "s1")


def test_a_skipped_sentence_comes_back_at_the_end_and_then_nothing_is_left(
    names: Any, visit: Any
) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "s")
    for id in ("s1", "s2", "s3", "s0"):
        shown(page, id)
        press(page, "Enter")
    page.get_by_role("heading", name="Nothing left to label").wait_for()
    assert set(stored(names)) == {"s0", "s1", "s2", "s3"}


def test_nothing_is_called_saved_before_the_server_has_said_so(
    names: Any, visit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = visit(names.link)
    shown(page, "s0")
    asked: list[Any] = []
    done = threading.Event()

    def slow(*args: Any, **more: Any) -> Any:
        asked.append(args)
        assert done.wait(30)
        return save_over_models(*args, **more)

    monkeypatch.setattr(annotating, "save_over_models", slow)
    press(page, "1", "Enter", "Enter", "Enter")
    until(lambda: asked)
    page.wait_for_timeout(200)
    assert len(asked) == 1
    expect(page.locator("#status")).to_have_text("Saving …")
    expect(page.locator("#sentence")).to_have_attribute("data-id", "s0")
    done.set()
    shown(page, "s1")
    expect(page.locator("#status")).to_have_text("Saved.")


def test_a_link_opened_while_an_answer_is_on_its_way_waits_for_its_turn(
    names: Any, visit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = visit(names.link)
    shown(page, "s0")
    done = threading.Event()

    def slow(*args: Any, **more: Any) -> Any:
        assert done.wait(30)
        return save_over_models(*args, **more)

    monkeypatch.setattr(annotating, "save_over_models", slow)
    press(page, "1", "Enter")
    page.evaluate("location.hash = '#id=s2'")
    done.set()
    shown(page, "s2")
    assert stored(names) == {"s0": ([(0, 1, "PER")], None)}


def test_without_an_answer_from_the_server_the_marks_stay_and_can_be_sent_again(
    names: Any, visit: Any
) -> None:
    page = visit(names.link)
    shown(page, "s0")
    page.context.set_offline(True)
    press(page, "1", "Enter")
    page.get_by_role("alert").get_by_text("Not saved.").wait_for()
    marked(page, "Lena PER ×")
    expect(page.locator("#status")).not_to_contain_text("Saved")
    assert stored(names) == {}

    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    shown(page, "s1")
    assert stored(names) == {"s0": ([(0, 1, "PER")], None)}
    expect(page.locator("#trouble")).to_be_hidden()


def test_an_answer_that_was_saved_but_not_confirmed_is_sent_again_and_is_one(
    names: Any, visit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = visit(names.link)
    shown(page, "s0")

    def lost(*args: Any, **more: Any) -> Any:
        save_over_models(*args, **more)
        raise StoreError("the line broke")

    with monkeypatch.context() as broken:
        broken.setattr(annotating, "save_over_models", lost)
        press(page, "1", "Enter")
        page.get_by_role("alert").get_by_text("Not saved.").wait_for()
    press(page, "Enter")
    shown(page, "s1")
    assert (
        len([event for event in read_events(names.project.store) if event.sentence_id == "s0"]) == 1
    )


def test_an_undo_that_was_done_but_not_confirmed_is_sent_again_and_is_one(
    names: Any, visit: Any
) -> None:
    page = visit(names.link)
    line = Line(page, "**/api/undo", one_way=True)
    for id in ("s0", "s1", "s2"):
        shown(page, id)
        press(page, "1", "Enter")
    shown(page, "s3")
    line.cut = True
    press(page, "z")
    page.get_by_role("alert").get_by_text("The answer was not taken back.").wait_for()
    line.cut = False
    with page.expect_response("**/api/status"):  # the page looks at how things stand meanwhile
        pass
    press(page, "Enter")
    shown(page, "s2")
    assert set(stored(names)) == {"s0", "s1"}


def test_undo_goes_on_where_an_earlier_visit_ended(names: Any, visit: Any) -> None:
    page = visit(names.link)
    for id in ("s0", "s1"):
        shown(page, id)
        press(page, "1", "Enter")
    shown(page, "s2")
    again = visit(names.link)
    shown(again, "s2")
    press(again, "z")
    shown(again, "s1")
    press(again, "z")
    shown(again, "s0")
    assert stored(names) == {}


def test_only_an_admin_is_offered_the_export(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    expect(page.locator("aside a[href^='api/export']")).to_be_visible()
    page = visit(names.invite("bo"))
    page.wait_for_selector("#sentence .token")
    expect(page.locator("a[href^='api/export']")).to_have_count(0)


def test_an_answer_given_elsewhere_meanwhile_is_shown_and_not_overwritten(
    names: Any, visit: Any
) -> None:
    page = visit(names.link)
    shown(page, "s0")
    other = page.context.new_page()
    other.goto(names.url)
    shown(other, "s0")
    press(other, "2", "Enter")
    shown(other, "s1")

    press(page, "1", "Enter")
    page.locator("#status", has_text="has been answered elsewhere").wait_for()
    marked(page, "Lena ORG ×")
    assert stored(names) == {"s0": ([(0, 1, "ORG")], None)}


def test_without_a_token_the_page_says_to_use_the_link_again(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    page.context.clear_cookies()
    press(page, "Enter")
    page.get_by_role("heading", name="Please use your link again").wait_for()


def test_a_reload_keeps_the_sentence_and_its_marks(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "1")
    page.reload()
    shown(page, "s0")
    marked(page, "Lena PER ×")
    expect(page.locator("#status")).to_contain_text("back")


def test_one_sentence_is_open_at_a_time(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    asked = []
    page.on(
        "request",
        lambda request: asked.append(request.url) if request.url.endswith("/api/next") else None,
    )
    press(page, "Enter")
    shown(page, "s1")
    page.wait_for_timeout(300)
    assert len(asked) <= 1
    assert read_counts(names.project.store).held == 1


def test_a_new_model_is_announced_and_its_figures_stand_beside(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    page.get_by_text("Model 1, trained on 10 answers").wait_for()
    ranked(names, number=2)
    page.locator(
        "#status", has_text="Model 2 is ready: the sentences are in a new order."
    ).wait_for()
    expect(page.locator("#model")).to_contain_text("trained on 20 answers")


def test_of_too_few_audit_answers_nothing_is_claimed_and_then_the_level_is_named(
    serve: Serve, visit: Any
) -> None:
    from seqmix.serve.store.records import Generation, Mark

    served = serve(lines(*(f"Ada met {n} ." for n in range(40))), audit_share=0.5)
    store = served.project.store
    asked = read_audit_sentences(store)[:12]

    def answered(sentences: Any) -> Any:
        for sentence in sentences:
            save_answer(store, sentence.id, 1, "label", [Mark(0, 1, "PER")])
        return visit(served.link)

    def published(number: int) -> None:
        marks = [
            {"id": one.id, "marks": [[0, 1, "PER"]] if at < 2 * number - 1 else []}
            for at, one in enumerate(asked)
        ]
        publish_generation(store, Generation(number, 10 * number, audit=marks))

    published(1)
    page = answered(asked[:2])
    page.locator(
        "#estimate",
        has_text="No estimate yet: it needs at least 1 more audit answer with something marked.",
    ).wait_for()
    expect(page.locator("#forecast")).to_have_text("")
    page = answered(asked[2:])
    page.locator("#estimate", has_text="95% interval, from 12 audit sentences").wait_for()
    expect(page.locator("#forecast")).to_have_text(
        "Too early to say what more answers would bring: this needs at least 4 more models."
    )
    for number in range(2, 7):
        published(number)
    page.locator("#forecast", has_text="30 more answers should bring +0.").wait_for()
    expect(page.locator("#forecast")).to_have_text(re.compile(r", 90% interval\)\.$"))


def test_of_many_tags_one_is_found_by_its_name(serve: Serve, visit: Any) -> None:
    served = serve(lines(*TEXTS), tags=tuple(f"Type{i}" for i in range(35)))
    ranked(served)
    page = visit(served.link)
    shown(page, "s0")
    press(page, "/", *"type34", "Enter")
    marked(page, "Lena Type34 ×")
    press(page, "ArrowRight", "a")  # the tenth tag
    marked(page, "Lena Type34 ×", "Okafor Type9 ×")


def test_the_help_lists_the_keys_and_closes(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "?")
    dialog = page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("sure of this part only")
    press(page, "x", "Escape")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Help and keys").click()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_guidelines_stand_beside_the_sentence(serve: Serve, visit: Any) -> None:
    served = serve(lines(*TEXTS), "# Who\n\n- **PER**: people, <b>not</b> titles\n")
    page = visit(served.link)
    page.get_by_role("heading", name="Who").wait_for()
    expect(page.locator("#guidelines li")).to_have_text("PER: people, <b>not</b> titles")


def dragged(page: Any, x: float, y: float, to: str) -> None:
    """Press the mouse at a place, drag to the middle of a token, let go."""
    box = page.locator(to).bounding_box()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()


def selects(page: Any, *tokens: str) -> None:
    """Wait until these tokens are selected, and no others."""
    expect(page.locator("#sentence .token.selected")).to_have_text(list(tokens))


def test_a_drag_may_begin_between_words_or_beside_the_text(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    boxes = [page.locator(f"#sentence-{i}").bounding_box() for i in range(4)]
    middle = boxes[0]["y"] + boxes[0]["height"] / 2
    gap = (boxes[0]["x"] + boxes[0]["width"] + boxes[1]["x"]) / 2
    dragged(page, gap, middle, "#sentence-2")
    selects(page, "Okafor", "left")
    dragged(page, gap, middle, "#sentence-0")
    selects(page, "Lena")
    dragged(page, boxes[0]["x"] - 12, middle, "#sentence-1")
    selects(page, "Lena", "Okafor")
    below = page.locator("#sentence").bounding_box()
    dragged(page, below["x"] + below["width"] - 30, middle, "#sentence-5")
    selects(page, "Rome", ".")
    press(page, "Escape")
    page.mouse.click(gap, middle)  # a click there means nothing
    selects(page)


def test_in_right_to_left_text_a_drag_may_begin_beside_it_too(serve: Serve, visit: Any) -> None:
    served = serve(lines("זאב לנדאו גר בחיפה ."))
    ranked(served)
    page = visit(served.link)
    shown(page, "s0")
    first = page.locator("#sentence-0").bounding_box()
    dragged(page, first["x"] + first["width"] + 12, first["y"] + first["height"] / 2, "#sentence-1")
    selects(page, "זאב", "לנדאו")


LONG = " ".join(f"Lena{i} met Ada{i} in Oslo{i} ." for i in range(60))


def test_marking_moves_no_button_and_save_is_never_below_the_fold(serve: Serve, visit: Any) -> None:
    served = serve(lines(" ".join(LONG.split()[:24]), "Short .", LONG))
    ranked(served)
    page = visit(served.link, height=800)
    shown(page, "s0")
    places = [page.locator("#save").bounding_box()]
    for at in range(0, 24, 2):
        page.locator(f"#sentence-{at}").click()
        press(page, "1")
    places.append(page.locator("#save").bounding_box())
    press(page, "p")
    places.append(page.locator("#save").bounding_box())
    press(page, "Enter")
    shown(page, "s1")
    places.append(page.locator("#save").bounding_box())
    press(page, "Enter")
    shown(page, "s2")
    places.append(page.locator("#save").bounding_box())
    assert page.locator("#tags .tag").first.bounding_box()["y"] < places[0]["y"]
    assert places == [places[0]] * 5
    assert places[0]["y"] + places[0]["height"] <= 800


def test_save_stays_on_the_screen_with_many_tags_and_a_low_window(serve: Serve, visit: Any) -> None:
    served = serve(lines(LONG), tags=tuple(f"Quite-a-long-name-{i}" for i in range(35)))
    page = visit(served.link, height=500)
    shown(page, "s0")
    box = page.locator("#save").bounding_box()
    assert box["y"] + box["height"] <= 500


def test_a_long_text_is_not_answered_unseen(serve: Serve, visit: Any) -> None:
    served = serve(lines(" ".join(f"w{i}" for i in range(1000)), "The end ."))
    ranked(served)
    page = visit(served.link)
    shown(page, "s0")
    press(page, "1", "Enter")
    ask = page.get_by_role("dialog")
    ask.get_by_text("600 of 1,000 tokens have not been shown yet").wait_for()
    press(page, "Enter")  # the harmless answer has the focus
    page.locator("#sentence-400").wait_for()
    assert stored(served) == {}
    press(page, "Enter")
    ask.get_by_text("200 of 1,000 tokens").wait_for()
    press(page, "Escape")
    page.locator("#sentence-800").wait_for()
    press(page, "Enter")
    shown(page, "s1")
    assert stored(served)["s0"] == ([(0, 1, "PER")], None)


def test_a_long_text_can_be_answered_unseen_on_request_or_in_part(serve: Serve, visit: Any) -> None:
    served = serve(
        lines(*(" ".join(f"w{n}.{i}" for i in range(500)) for n in range(2)), "The end .")
    )
    ranked(served)
    page = visit(served.link)
    shown(page, "s0")
    press(page, "Enter")
    page.get_by_role("button", name="Save anyway").click()
    shown(page, "s1")
    press(page, "p", "Enter")  # sure of the first token alone: the rest is left open anyhow
    shown(page, "s2")
    assert stored(served) == {"s0": ([], None), "s1": ([], ((0, 1),))}


def test_the_cross_on_a_tag_is_large_enough_to_hit(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "1")
    box = page.locator("[data-remove]").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.mouse.click(box["x"] + 3, box["y"] + box["height"] - 3)
    marked(page)


def test_labels_stand_apart_from_their_fields(serve: Serve, visit: Any) -> None:
    page = visit(serve(lines("Ada came ."), tags=tuple(f"T{i}" for i in range(20))).link)
    apart = """selector => { const input = document.querySelector(selector), range = document.createRange();
      range.selectNodeContents(input.previousSibling); return input.getBoundingClientRect().left - range.getBoundingClientRect().right; }"""
    page.wait_for_selector("#find")
    assert page.evaluate(apart, "#find") >= 6
    page.goto(page.url.rstrip("/") + "/agreement.html")
    page.wait_for_selector("#name")
    assert page.evaluate(apart, "#name") >= 6


def test_on_a_tablet_the_letters_of_the_curve_have_their_size(names: Any, visit: Any) -> None:
    page = visit(names.link, width=820, height=1180)
    shown(page, "s0")
    height = page.evaluate(
        """async () => { const { curve } = await import("./curve.js"), host = document.getElementById("curve");
        host.replaceChildren(curve([{ labeled: 10, f1: 0.5, low: 0.3, high: 0.7 }]));
        return host.querySelector("text").getBoundingClientRect().height; }"""
    )
    assert 8 <= height <= 18


def test_what_the_model_is_sure_of_means_something(serve: Serve, visit: Any) -> None:
    from seqmix.serve.store.records import Generation, Rank

    served = serve(lines("Lena left Oslo .", "Nobody came ."))
    spans = [
        {"start": 0, "end": 1, "tag": "PER", "confidence": 0.91},
        {"start": 2, "end": 3, "tag": "LOC", "confidence": 0.88},
    ]
    ranks = [
        Rank("s0", 1.0, {"spans": spans, "confidence": 0.0004}),
        Rank("s1", 0.5, {"spans": [], "confidence": 0.83}),
    ]
    publish_generation(served.project.store, Generation(1, 10), ranks)
    page = visit(served.link)
    shown(page, "s0")
    expect(page.locator("#stream")).to_have_text(
        "The model is at least 88% sure of each mark. Dashed marks are its suggestions."
    )
    press(page, "Enter")
    shown(page, "s1")
    expect(page.locator("#stream")).to_have_text(
        "The model finds nothing to mark here, and is at least 83% sure of each token."
    )


def test_what_the_model_is_hardly_sure_of_is_only_pointed_at(serve: Serve, visit: Any) -> None:
    served = serve(lines("Lena left Oslo .", "Ada came ."))
    weak = {"start": 2, "end": 4, "tag": "LOC", "confidence": 0.07}
    ranked(
        served,
        {
            "s0": [{"start": 0, "end": 1, "tag": "PER", "confidence": 0.91}, weak],
            "s1": [{**weak, "start": 0, "end": 2}],
        },
    )
    page = visit(served.link)
    shown(page, "s0")
    expect(page.locator("#stream")).to_contain_text("91% sure of each mark")
    expect(page.locator("#stream")).to_contain_text("Dotted: it is less than 20% sure.")
    marked(page, re.compile(r"^\s*Lena\s"))
    expect(page.locator("#sentence .hint")).to_have_text(["Oslo", "."])
    press(page, "ArrowRight", "ArrowRight", "3", "Enter")
    shown(page, "s1")
    assert stored(served)["s0"][0] == [(0, 1, "PER"), (2, 3, "LOC")], "not its weak ends"
    expect(page.locator("#stream")).to_contain_text("not sure of any mark here")
    page.locator("#least").select_option("0")
    marked(page, re.compile(r"^\s*Ada\s"))
    page.reload()
    shown(page, "s1")
    marked(page, re.compile(r"^\s*Ada\s"))


def test_the_page_says_how_far_a_training_is(names: Any, visit: Any) -> None:
    import time

    from seqmix.serve.store.records import Generation

    page = visit(names.link)
    shown(page, "s0")
    publish_generation(names.project.store, Generation(2, 20, seconds={"training": 10_000.0}))
    names.project.store.write_note(
        "trainer", {"phase": "training", "since": time.time() - 4000, "at": time.time()}
    )
    expect(page.locator("#model")).to_contain_text(re.compile(r"Training: 4\d%"))


def test_the_page_says_which_stage_the_model_is_of_and_what_the_next_one_is_doing(
    names: Any, visit: Any
) -> None:
    import time

    from seqmix.serve.store.records import Generation, Notes

    store = names.project.store
    publish_generation(store, Generation(2, 20, notes=Notes(stage=1)))
    page = visit(names.link)
    shown(page, "s0")
    note = {"phase": "the encoder reads your text", "share": 0.4, "left": 185.0}
    store.write_note("trainer", {**note, "at": time.time()})
    page.locator(
        "#model", has_text="The encoder reads your text: 40%, about 3 min left."
    ).wait_for()
    expect(page.locator("#model")).to_have_text(
        re.compile(r"^Model 2 \(stage 1: your answers\), trained on 20")
    )
    publish_generation(store, Generation(3, 20, notes=Notes(stage=3)))
    store.write_note("trainer", {"phase": "teacher 2 of 3", "left": 40.2, "at": time.time()})
    page.locator("#model", has_text="Teacher 2 of 3: about 40 s left.").wait_for()
    expect(page.locator("#model")).to_contain_text(
        "Model 3 (stage 3: a student of its teachers), trained on 20"
    )


def test_a_tag_added_meanwhile_appears_on_the_open_page(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    change_project_tags(names.project.folder, names.project.store, Wish("add", "Heat"))
    page.locator("#tags .tag", has_text="Heat").wait_for()
    press(page, "5", "Enter")
    shown(page, "s1")
    assert stored(names)["s0"] == ([(0, 1, "Heat")], None)


def test_text_added_while_the_page_is_open_is_asked_for(serve: Serve, visit: Any) -> None:
    served = serve(lines("Lena left Oslo ."))
    page = visit(served.link)
    shown(page, "s0")
    heard(page)
    press(page, "Enter")
    page.wait_for_selector("#finished:not([hidden])")
    add_text(served.project, [Sentence("late:1", ("Ada", "met", "Bo"))])

    shown(page, "late:1")
    expect(page.locator("#status")).to_have_text("1 new sentence in this project.")
    expect(page.locator("#total")).to_have_text("of 2 labeled")


def test_delete_discards_bad_text_and_undo_brings_it_back(names: Any, visit: Any) -> None:
    page = visit(names.link)
    shown(page, "s0")
    press(page, "Delete")
    shown(page, "s1")
    expect(page.locator("#status")).to_have_text("Discarded.")
    expect(page.locator("#history")).to_contain_text("discarded")
    page.locator("#counts", has_text="1 discarded").wait_for()
    assert read_counts(names.project.store).discarded == 1

    page.click("#history .past")
    shown(page, "s0")
    expect(page.locator("#stream")).to_have_text(re.compile("^You discarded this sentence"))
    page.click("#leave")
    shown(page, "s1")
    press(page, "z")
    shown(page, "s0")
    expect(page.locator("#status")).to_have_text("Answer taken back.")
    assert read_counts(names.project.store).discarded == 0
    page.click("#discard")
    shown(page, "s1")
    assert [event.kind for event in read_events(names.project.store)] == [
        "discard",
        "undo",
        "discard",
    ]
