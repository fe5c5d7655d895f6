"""A second server of a project is told of the first, and both go on."""

from __future__ import annotations

from seqmix.serve import servers
from seqmix.serve.servers import known_server
from tests.support.stores import small_store


def test_a_second_server_is_told_of_the_first_until_that_ends(url):
    with small_store(url) as store:
        with (
            known_server(store, "http://a:1") as first,
            known_server(store, "http://b:2") as second,
        ):
            assert (first, second) == ([], ["http://a:1"])
        with known_server(store, "http://c:3") as third:
            assert third == []


def test_a_server_that_was_killed_is_forgotten(url, monkeypatch):
    with small_store(url) as store:
        store.write_note(
            "servers",
            {"here 1 http://a:1": {"address": "http://a:1", "at": servers.time.time() - 60}},
        )
        with known_server(store, "http://b:2") as others:
            assert others == []
