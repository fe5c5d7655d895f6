"""The guard alone, before an application that answers everything: who gets through, with what."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix.errors import StoreError
from seqmix.serve.store.records import Annotator
from seqmix.serve.web.credentials import Tokens
from seqmix.serve.web.responses import encoded, reply
from seqmix.serve.web.security import Hosts, Limits, SecurityMiddleware

TOKEN = "t" * 43
OTHER = "o" * 43


PEOPLE = {TOKEN: Annotator(1, "Ada"), OTHER: Annotator(2, "Bo")}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self) -> str:
        return json.loads(self.body)["error"]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def inner(scope, receive, send) -> None:
    """Says who asked and what arrived."""
    message = await receive() if scope["method"] == "POST" else {}
    found = {"who": scope["state"]["annotator"].name, "body": message.get("body", b"").decode()}
    await reply(found)(scope, receive, send)


class Site:
    def __init__(self, **settings) -> None:
        self.looked_up: list[str] = []
        self.clock = Clock()
        keys = Tokens(lambda token: self.look_up(token), settings.pop("owner", None), self.clock)
        self.guard = SecurityMiddleware(inner, keys, clock=self.clock, **settings)

    def look_up(self, token: str):
        self.looked_up.append(token)
        return PEOPLE.get(token)

    def ask(
        self,
        path="/",
        method="GET",
        token: str | None = TOKEN,
        body: list[bytes] | None = None,
        query="",
        **headers: str,
    ) -> Answer:
        given_headers = {
            "host": "127.0.0.1:8765",
            **{name.replace("_", "-").lower(): value for name, value in headers.items()},
        }
        if token is not None:
            given_headers.setdefault("authorization", f"Bearer {token}")
        if method == "POST":
            given_headers.setdefault("content-type", "application/json")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1"))
                for name, value in given_headers.items()
                if value != "-"
            ],
        }
        parts = list(body or [b""])
        sent: list[dict] = []

        async def receive():
            if not parts:
                return {"type": "http.disconnect"}
            part = parts.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message):
            sent.append(message)

        asyncio.run(self.guard(scope, receive, send))
        if not sent:
            return Answer(0, {}, b"")
        found = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(
            sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])
        )


def test_a_good_token_in_the_header_gets_through():
    assert json.loads(Site().ask().body)["who"] == "Ada"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/style.css",
        "/api/next",
        "/openapi.json",
        "/nothing",
        "/login",
        "/../../etc/passwd",
        "/api/export",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "BREW"])
@pytest.mark.parametrize(
    "token", [None, "", "x" * 43, TOKEN[:-1], TOKEN + "x", "ä" * 43, "\x00", "x" * 10_000]
)
def test_without_a_good_token_everything_is_401(path, method, token):
    answer = Site().ask(path, method, token)

    assert answer.status == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "token" in answer.error


def test_a_wrong_scheme_or_cookie_is_401_and_a_stranger_learns_nothing_of_host_origin_or_size():
    site = Site(limits=Limits(body=10))

    assert site.ask(token=None, authorization="Basic dXNlcjpwYXNz").status == 401
    assert site.ask(token=None, cookie="seqmix=wrong; other").status == 401
    assert (
        site.ask(
            "/", "POST", None, [b"x" * 1000], host="evil.example", origin="http://evil.example"
        ).status
        == 401
    )


def test_login_sets_a_cookie_that_scripts_and_other_sites_cannot_use_and_leads_to_the_page():
    site = Site()
    answer = site.ask("/login", token=None, query=f"token={TOKEN}")
    cookie = answer.headers["set-cookie"]

    assert (answer.status, answer.headers["location"], answer.headers["cache-control"]) == (
        303,
        "/",
        "no-store",
    )
    assert cookie.startswith(f"seqmix-8765={TOKEN};")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert json.loads(site.ask(token=None, cookie=cookie.partition(";")[0]).body)["who"] == "Ada"


def test_a_login_link_clicked_on_another_site_goes_on_from_here_to_keep_the_strict_cookie():
    site = Site()
    for headers in ({"sec_fetch_site": "cross-site"}, {"accept": "text/html,*/*"}):
        answer = site.ask("/login", token=None, query=f"token={TOKEN}", **headers)
        assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert b'http-equiv="refresh" content="0; url=/"' in answer.body
        assert TOKEN.encode() not in answer.body
        assert "HttpOnly" in answer.headers["set-cookie"]
    assert (
        site.ask(
            "/login", token=None, query=f"token={TOKEN}", sec_fetch_site="none", accept="text/html"
        ).status
        == 303
    )


def test_a_store_that_does_not_answer_is_a_constant_503_for_annotators_and_401_for_strangers():
    def look_up(token: str):
        raise StoreError("the store postgresql://seq@10.0.0.1/secret does not answer")

    site = Site()
    assert site.ask().status == 200
    site.clock.now += 3
    site.look_up = look_up
    answer = site.ask()

    assert (answer.status, answer.error) == (
        503,
        "the store does not answer at the moment; what was shown as saved is saved",
    )
    assert site.ask(token=None).status == 401
    stranger = site.ask(token="x" * 43, host="evil.example")
    assert stranger.status == 401
    assert b"10.0.0.1" not in stranger.body


def test_a_revoked_link_ends_within_two_seconds():
    site = Site()
    assert site.ask().status == 200
    site.look_up = lambda token: None
    site.clock.now += 2

    assert site.ask().status == 401


def test_login_with_a_wrong_token_is_401_even_for_someone_who_is_logged_in():
    answer = Site().ask("/login", query=f"token={quote('x' * 43)}")

    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_a_cookie_without_the_port_is_taken_too_and_the_one_with_the_port_comes_first():
    site = Site()

    assert json.loads(site.ask(token=None, cookie=f"seqmix={OTHER}").body)["who"] == "Bo"
    assert (
        json.loads(site.ask(token=None, cookie=f"seqmix={OTHER}; seqmix-8765={TOKEN}").body)["who"]
        == "Ada"
    )
    assert site.ask(token=None, cookie=f"seqmix-9999={TOKEN}").status == 401


def test_the_token_of_this_start_of_the_server_needs_no_store():
    site = Site(owner=("s" * 43, Annotator(7, "me", admin=True)))

    assert json.loads(site.ask(token="s" * 43).body)["who"] == "me"
    assert site.looked_up == []


def test_a_known_token_is_looked_up_again_only_after_a_while():
    site = Site()
    site.ask()
    site.ask()
    assert len(site.looked_up) == 1
    site.clock.now += 11
    site.ask()
    assert len(site.looked_up) == 2


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8765", "localhost:1", "LOCALHOST", "[::1]:8765", "127.0.0.1"]
)
def test_our_own_names_are_let_in_whatever_the_port(host):
    assert Site().ask(host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8765",
        "",
        "-",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.0.7",
        "[",
        "a:b:c",
    ],
)
def test_a_strange_host_is_refused_so_that_dns_rebinding_gets_nowhere(host):
    answer = Site().ask(host=host)

    assert answer.status == 421
    assert "name" in answer.error


def test_login_under_a_strange_host_sets_no_cookie():
    answer = Site().ask("/login", token=None, query=f"token={TOKEN}", host="evil.example")

    assert answer.status == 421
    assert "set-cookie" not in answer.headers


def test_a_server_on_the_network_takes_addresses_and_the_names_it_was_given_but_no_others():
    hosts = Hosts.of("0.0.0.0", ["Labels.Example.org"])

    assert all(
        hosts.allow(host)
        for host in ("192.168.0.7:80", "[fe80::1]:80", "labels.example.org", "localhost")
    )
    assert not hosts.allow("evil.example")
    assert not Hosts.of("127.0.0.1").allow("192.168.0.7")


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:9999",
        "http://127.0.0.1:8765.evil.example",
        "",
        "http://",
    ],
)
def test_another_origin_may_not_change_anything(origin):
    assert Site().ask("/api/undo", "POST", origin=origin).status == 403


def test_our_own_origin_and_none_at_all_may():
    assert Site().ask("/api/undo", "POST", origin="http://127.0.0.1:8765").status == 200
    assert Site().ask("/api/undo", "POST").status == 200
    assert Site().ask("/api/undo", "POST", sec_fetch_site="cross-site").status == 403


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "-",
        "application/jsonx",
    ],
)
def test_a_form_cannot_change_anything_since_only_json_is_taken(kind):
    assert Site().ask("/api/undo", "POST", content_type=kind).status == 415
    assert (
        Site().ask("/api/undo", "DELETE", content_type=kind).status == 200
    )  # the application says that this cannot be done


def test_a_body_within_the_limit_arrives_whole():
    site = Site(limits=Limits(body=10))

    assert json.loads(site.ask("/", "POST", body=[b"12345", b"67890"]).body)["body"] == "1234567890"


@pytest.mark.parametrize("body", [[b"12345", b"678901"], [b"x"] * 11, [b"x" * 200]])
def test_a_body_over_the_limit_is_413_with_or_without_a_content_length(body):
    site = Site(limits=Limits(body=10))

    assert site.ask("/", "POST", body=list(body)).status == 413
    answer = site.ask("/", "POST", body=list(body), content_length="3")
    assert answer.status == 413
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("length", ["1000000000000", "9" * 400, "-1", "x", "٣", "1e3"])
def test_a_declared_length_that_is_absurd_is_refused_before_anything_is_read(length):
    site = Site(limits=Limits(body=10))
    try:
        length.encode("latin-1")
    except UnicodeEncodeError:
        length = length.encode().decode("latin-1")

    assert site.ask("/", "POST", body=[b"{}"], content_length=length).status == 413


def posted(site, receive) -> list[dict]:
    """What the guard sends to a client whose body comes as `receive` says."""
    sent: list[dict] = []

    async def send(message):
        sent.append(message)

    headers = {
        "host": "localhost",
        "authorization": f"Bearer {TOKEN}",
        "content-type": "application/json",
    }
    named = [(name.encode(), value.encode()) for name, value in headers.items()]
    asyncio.run(
        site.guard(
            {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": named},
            receive,
            send,
        )
    )
    return sent


def test_a_client_that_goes_away_in_the_middle_of_its_body_gets_no_answer_and_changes_nothing():
    messages = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive():
        return messages.pop(0)

    sent = posted(Site(), receive)

    assert sent == []


def test_a_body_that_never_ends_is_given_up_on():
    async def receive():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"", "more_body": True}

    sent = posted(Site(limits=Limits(patience=0.05)), receive)

    assert sent[0]["status"] == 408


def test_each_annotator_has_a_rate_of_their_own_and_it_recovers():
    site = Site(limits=Limits(rate=10, burst=3))
    first = [site.ask().status for _ in range(5)]

    assert first == [200, 200, 200, 429, 429]
    assert int(site.ask().headers["retry-after"]) >= 1
    assert site.ask(token=OTHER).status == 200
    site.clock.now += 0.2
    assert [site.ask().status for _ in range(3)] == [200, 200, 429]


def test_every_answer_carries_the_security_headers_and_the_policy_allows_nothing_inline():
    site = Site()
    for answer in (
        site.ask(),
        site.ask(token=None),
        site.ask(host="evil.example"),
        site.ask("/api/next"),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
        )
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert site.ask("/api/next").headers["cache-control"] == "no-store"


def test_a_websocket_is_closed():
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(Site().guard({"type": "websocket", "path": "/"}, None, send))

    assert sent == [{"type": "websocket.close", "code": 1008}]


@given(st.text(alphabet=st.characters(codec=None), max_size=60), st.text(max_size=30))
def test_no_token_or_cookie_however_odd_gets_in_or_breaks_the_guard(token, path):
    header = token.encode("utf-8", "surrogatepass").decode("latin-1")
    site = Site()

    assert site.ask("/" + path, token=None, authorization=f"Bearer {header}").status == 401
    assert site.ask("/" + path, token=None, cookie=header).status == 401
    assert (
        site.ask("/login", token=None, query=quote(token.encode("utf-8", "surrogatepass"))).status
        == 401
    )
    assert (
        site.ask(
            "/login", token=None, query="token=" + quote(token.encode("utf-8", "surrogatepass"))
        ).status
        == 401
    )


@given(
    st.recursive(
        st.none() | st.floats() | st.text(alphabet=st.characters(codec=None)),
        lambda own: st.lists(own) | st.dictionaries(st.text(), own),
    )
)
def test_any_content_can_be_sent_as_json(content):
    json.loads(encoded(content).decode())
