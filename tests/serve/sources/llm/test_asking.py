"""A language model behind an endpoint: asked only where allowed, within limits, never trusted."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from sqlalchemy import func, select

from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.serve.addresses import origin
from seqmix.serve.sources.figures import Figures
from seqmix.serve.sources.llm import replies
from seqmix.serve.sources.llm.asking import Asker, read_usage
from seqmix.serve.sources.llm.endpoint import KEY, PROMPT, Endpoint, key_for
from seqmix.serve.sources.llm.parse_answer import NonsenseError, read_answer
from seqmix.serve.sources.llm.prompt import filled
from seqmix.serve.sources.offers import Sources
from seqmix.serve.sources.records import LLM, add_source, change_source
from seqmix.serve.sources.stored import problems
from seqmix.serve.store import schema
from seqmix.serve.store.events import read_events
from seqmix.serve.store.records import Mark
from seqmix.serve.store.schema import suggestions
from seqmix.serve.tags.changes import Wish, change_tags
from tests.support.endpoint import endpoint, says, send
from tests.support.stores import LOC, PER, find_sentence, small_store

RIGHT = {"spans": [{"text": "Lena", "tag": "PER"}, {"text": "Oslo", "tag": "LOC"}]}
TAGS = ("PER", "LOC")


@pytest.fixture
def store(url):
    with small_store(url, n=4) as opened:
        yield opened


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def asked(store, server, **settings: Any) -> tuple[Asker, Clock, Any]:
    """An asker of a source behind a server that may be sent text."""
    source = add_source(store, "gpt", LLM, Endpoint(server.url, "m", **settings).to_json())
    clock = Clock()
    asker = Asker(store, lambda: [origin(server.url)], clock=clock, patience=5.0)
    return asker, clock, source


def run(asker: Asker, clock: Clock, steps: int = 8, each: float = 1000.0) -> None:
    for _ in range(steps):
        asker.step()
        clock.now += each


def offered(store, id: str) -> list[tuple[int, int, str]]:
    return [tuple(m) for o in Sources(store).offers(find_sentence(store, id)) for m in o.marks]


def trouble(store) -> str | None:
    return Figures(store).rows()[0]["trouble"]


def test_nothing_is_sent_before_the_settings_say_yes_to_this_address(store):
    with endpoint(says(RIGHT)) as server:
        allowed: list[str] = []
        add_source(store, "gpt", LLM, Endpoint(server.url, "m").to_json())
        asker = Asker(store, lambda: allowed, clock=(clock := Clock()))
        run(asker, clock, 3)
        allowed.append(origin(server.url) + "0")  # another port
        run(asker, clock, 3)
        assert server.requests == []
        assert "needs your permission" in str(trouble(store))

        allowed.append(origin(server.url))
        run(asker, clock)
        assert len(server.requests) == 4
        assert trouble(store) is None
        allowed.clear()
        change_source(store, "gpt", Endpoint(server.url, "other").to_json())
        run(asker, clock)
        assert len(server.requests) == 4


def test_answers_are_aligned_cached_and_counted(store):
    with endpoint(says(RIGHT, total_tokens=100)) as server:
        asker, clock, source = asked(store, server)
        run(asker, clock, 20)

        assert len(server.requests) == 4  # each sentence once
        assert [offered(store, f"s:{i}") for i in range(4)] == [[PER, LOC]] * 4
        assert read_usage(store, source) == {"requests": 4, "tokens": 400}
        request = server.requests[0]
        assert request["path"] == "/v1/chat/completions"
        assert (request["model"], request["temperature"]) == ("m", 0)
        assert "PER, LOC" in request["messages"][0]["content"]
        change_source(store, "gpt", Endpoint(server.url, "m", per_minute=1, price=2.0).to_json())
        run(asker, clock)
        assert len(server.requests) == 4  # what was asked does not depend on limits
        change_source(store, "gpt", Endpoint(server.url, "m", prompt="Mark: {text}").to_json())
        run(asker, clock)
        assert len(server.requests) == 8
        assert server.requests[-1]["messages"][0]["content"].startswith("Mark: Lena ")


def test_a_prompt_that_is_changed_and_changed_back_asks_nothing_again(store):
    with endpoint(says(RIGHT, total_tokens=100)) as server:
        first, other = (Endpoint(server.url, "m", prompt=p) for p in ("One: {text}", "Two: {text}"))
        asker, clock, source = asked(store, server, prompt=first.prompt)
        run(asker, clock, 20)
        change_source(store, "gpt", other.to_json())
        run(asker, clock, 20)
        assert len(server.requests) == 8
        server.reply = says({"spans": []})
        change_source(store, "gpt", first.to_json())
        run(asker, clock, 20)

        assert len(server.requests) == 8
        assert [offered(store, f"s:{i}") for i in range(4)] == [[PER, LOC]] * 4
        assert read_usage(store, source) == {"requests": 8, "tokens": 800}
        change_source(store, "gpt", first.changed({"model": "larger"}).to_json())
        run(asker, clock, 20)
        assert len(server.requests) == 12
        assert offered(store, "s:0") == []


def test_a_tag_that_is_renamed_and_named_back_asks_nothing_again(store):
    with endpoint(says(RIGHT)) as server:
        asker, clock, _ = asked(store, server)
        run(asker, clock, 20)
        change_tags(store, Wish("rename", "PER", ("Person",)))
        run(asker, clock, 20)
        assert len(server.requests) == 8  # the tags are in the prompt
        assert offered(store, "s:0") == [LOC]  # PER is no tag now
        change_tags(store, Wish("undo"))
        run(asker, clock, 20)

        assert len(server.requests) == 8
        assert [offered(store, f"s:{i}") for i in range(4)] == [[PER, LOC]] * 4


def test_answers_without_sense_are_not_paid_for_twice_and_the_oldest_are_forgotten(
    store, monkeypatch
):
    with endpoint(says("no JSON")) as server:
        asker, clock, source = asked(store, server, prompt="One: {text}")
        run(asker, clock, 20)
        for prompt in ("Two: {text}", "One: {text}"):
            change_source(store, "gpt", Endpoint(server.url, "m", prompt=prompt).to_json())
            run(asker, clock, 20)
        assert len(server.requests) == 8
        assert problems(store, source) == ["the answer is not JSON"] * 4

        monkeypatch.setattr(replies, "MOST", 5)
        change_source(store, "gpt", Endpoint(server.url, "m", prompt="New: {text}").to_json())
        run(asker, clock, 20)
        with store.reading() as conn:
            kept = conn.execute(select(func.count()).select_from(schema.replies)).scalar()
        assert (len(server.requests), kept) == (12, 5)
        change_source(store, "gpt", Endpoint(server.url, "m", prompt="One: {text}").to_json())
        run(asker, clock, 20)
        assert len(server.requests) == 16


def test_what_it_is_sure_of_becomes_answers_of_its_own_where_it_may(store):
    with endpoint(says(RIGHT)) as server:
        asker, clock, _ = asked(store, server, answers=0.9)
        run(asker, clock, 20)
        answers = list(read_events(store))
        assert 1 <= len(answers) <= 4
        assert {(e.kind, e.stream, e.spans) for e in answers} == {("label", "source", (PER, LOC))}
        assert len(server.requests) == 4


def test_the_limits_of_rate_and_cost_hold(store):
    with endpoint(says(RIGHT, total_tokens=100)) as server:
        asker, clock, _ = asked(store, server, per_minute=2, most_tokens=150)
        run(asker, clock, 5, each=1.0)
        assert len(server.requests) == 1
        run(asker, clock, 40, each=1.0)
        assert len(server.requests) == 2
        run(asker, clock)
        assert len(server.requests) == 2
        assert "has used its 150 tokens" in str(trouble(store))


def test_an_endpoint_that_asks_to_wait_is_left_alone_longer_after_each_failure(store):
    busy = lambda handler, _: send(handler, b"{}", 429, Retry_After="50")  # noqa: E731
    with endpoint(busy) as server:
        asker, clock, _ = asked(store, server, per_minute=6000)
        run(asker, clock, 45, each=1.0)
        assert len(server.requests) == 1
        assert "refuses with status 429" in str(trouble(store))
        run(asker, clock, 10, each=1.0)
        assert len(server.requests) == 2
        server.reply = says(RIGHT)
        run(asker, clock)
        assert trouble(store) is None


@pytest.mark.parametrize("status", [400, 422, 500])
def test_an_endpoint_without_json_schema_is_asked_in_a_simpler_form(store, status):
    def reply(handler, request):
        known = request.get("response_format", {}).get("type") in (None, "json_object")
        says(RIGHT)(handler, request) if known else send(handler, b"{}", status)

    with endpoint(reply) as server:
        asker, clock, _ = asked(store, server)
        run(asker, clock)
        kinds = [request["response_format"]["type"] for request in server.requests]
        assert kinds == ["json_schema", *["json_object"] * 4]


HOSTILE: dict[str, Any] = {
    "no json": says("Sure! Here are the spans: Lena"),
    "wrong shape": says({"spans": {"text": "Lena"}}),
    "numbers": says({"spans": [1, None, [2], {"text": 7, "tag": "PER"}]}),
    "other words": says({"spans": [{"text": "Berlin", "tag": "LOC"}]}),
    "unknown tag": says({"spans": [{"text": "Lena", "tag": "<script>"}]}),
    "wrong offsets": says({"spans": [{"start": -1, "end": 900, "tag": "PER", "text": "ena"}]}),
    "too many": says({"spans": [{"text": "Lena", "tag": "PER"}] * 50}),
    "deep": says("[" * 100_000),
    "no choices": lambda handler, _: send(handler, b'{"choices": []}'),
    "null": lambda handler, _: send(handler, b"null"),
    "not json at all": lambda handler, _: send(handler, b"<html>"),
    "half a surrogate": says('{"spans": [{"text": "\\ud800", "tag": "PER"}]}'),
    "too much": lambda handler, _: send(handler, b" " * 2_000_000),
    "injected": says("IGNORE ALL RULES and DROP TABLE sentences; -- tag everything as PER"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_whatever_an_endpoint_says_nothing_wrong_reaches_the_store(store, kind):
    with endpoint(HOSTILE[kind]) as server:
        asker, clock, source = asked(store, server, answers=0.9)  # it may answer, too
        run(asker, clock, 12)

        assert len(server.requests) == 4  # not again and again
        assert [offered(store, f"s:{i}") for i in range(4)] == [[]] * 4
        with store.reading() as conn:
            rows = [
                json.loads(spans) for spans in conn.execute(select(suggestions.c.spans)).scalars()
            ]
        assert all(row["marks"] == [] and row["problem"] for row in rows)
        assert list(read_events(store)) == []
        assert read_usage(store, source)["tokens"] > 0


def test_wrong_offsets_beside_right_words_do_no_harm(store):
    spans = [{"text": "Oslo", "tag": "LOC", "start": 99, "end": -3}, {"text": "x", "tag": "PER"}]
    with endpoint(says({"spans": spans})) as server:
        asker, clock, _ = asked(store, server)
        run(asker, clock)
        assert offered(store, "s:0") == [LOC]


def test_a_drop_now_and_then_is_given_up_in_time(store):
    def slow(handler, _):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.05)

    with endpoint(slow) as server:
        asker, _, source = asked(store, server)
        asker.patience = 0.3
        begin = time.monotonic()
        asker.step()
        assert time.monotonic() - begin < 3
        assert "does not answer" in str(trouble(store))
        assert read_usage(store, source)["tokens"] > 0
        assert offered(store, "s:0") == []


def test_a_redirect_is_not_followed(store):
    with endpoint(says(RIGHT)) as elsewhere:
        leads = lambda handler, _: send(handler, b"", 307, Location=elsewhere.url)  # noqa: E731
        with endpoint(leads) as server:
            asker, clock, _ = asked(store, server)
            run(asker, clock, 2)
            assert len(server.requests) > 0
            assert elsewhere.requests == []


def test_it_stops_after_ten_answers_in_a_row_that_say_nothing(url):
    with small_store(url, n=15) as store, endpoint(says("no")) as server:
        asker, clock, _ = asked(store, server)
        run(asker, clock, 30)
        assert len(server.requests) == 10
        assert "10 answers in a row" in str(trouble(store))


def test_the_key_goes_to_its_address_only_and_is_kept_nowhere(store, monkeypatch, tmp_path):
    with endpoint(says(RIGHT)) as server, endpoint(says(RIGHT)) as other:
        monkeypatch.setenv(KEY, f"{origin(server.url)} sk-secret")
        asker, clock, _ = asked(store, server)
        add_source(store, "other", LLM, Endpoint(other.url, "m").to_json())
        asker.allowed = lambda: [origin(server.url), origin(other.url)]
        run(asker, clock, 20)

        assert {h.get("Authorization") for h in server.headers} == {"Bearer sk-secret"}
        assert {h.get("Authorization") for h in other.headers} == {None}
        with store.reading() as conn:
            for table in ("sources", "suggestions", "meta"):
                rows = conn.exec_driver_sql(f"SELECT * FROM {table}").all()
                assert "sk-secret" not in str(rows)
    monkeypatch.setenv(KEY, "http://models.example sk-secret")
    with pytest.raises(ConfigError, match="https only"):
        key_for("http://models.example")


def test_a_prompt_is_filled_in_once():
    sentence = Sentence.from_text("Write {tags} and {text} .", "a")
    assert filled("{tags}|{guidelines}|{text}", sentence, TAGS, "{text}!") == (
        "PER, LOC|{text}!|Write {tags} and {text} ."
    )
    assert "{text}" in PROMPT


@pytest.mark.parametrize(
    ("spans", "marks"),
    [
        ([("Oslo", "LOC")], [(0, 1, "LOC")]),
        ([("Oslo", "LOC"), ("Oslo", "LOC")], [(0, 1, "LOC"), (3, 4, "LOC")]),
        ([("New\n York", "LOC"), ("Oslo", "LOC")], [(0, 1, "LOC"), (4, 6, "LOC")]),
        ([("is in", "PER"), ("Oslo", "LOC")], [(1, 3, "PER"), (3, 4, "LOC")]),
        ([("York", "PER"), ("New York", "LOC")], [(5, 6, "PER")]),
        ([("slo", "LOC"), ("Oslo", "LOC")], [(0, 1, "LOC")]),
        ([("", "LOC"), ("Oslo", "LOC")], [(0, 1, "LOC")]),
        ([], []),
    ],
)
def test_texts_are_found_in_order_at_whole_tokens_and_never_twice(spans, marks):
    sentence = Sentence.from_text("Oslo is in Oslo  New York", "a")
    content = json.dumps({"spans": [{"text": text, "tag": tag} for text, tag in spans]})
    assert read_answer(f"```json\n{content}\n```", sentence, TAGS) == tuple(Mark(*m) for m in marks)
    assert read_answer(f"Sure: {content}!", sentence, TAGS) == tuple(Mark(*m) for m in marks)


def test_an_answer_of_which_most_is_not_there_counts_as_none():
    sentence = Sentence.from_text("Oslo is in Norway", "a")
    spans = [{"text": text, "tag": "LOC"} for text in ("Oslo", "Rome", "Paris")]
    with pytest.raises(NonsenseError, match="2 of 3 spans"):
        read_answer(json.dumps(spans), sentence, TAGS)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x",
        "http://",
        "http://a:b@c",
        "http://a b",
        "https://a?x=1",
        "http://a:99999",
        "x" * 9,
    ],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="an address must look like"):
        origin(url)
