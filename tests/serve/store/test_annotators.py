"""Annotators and their tokens, of which only hashes are kept."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from seqmix.errors import DataError, NotFoundError
from seqmix.serve.store import schema
from seqmix.serve.store.annotators import (
    add_annotator,
    annotator_by_token,
    find_annotator,
    renew_token,
    revoke_token,
)
from seqmix.serve.store.store import create_store
from tests.support.stores import TAGS


def test_a_token_is_kept_as_a_hash_only_and_finds_its_annotator(url):
    with create_store(url, TAGS) as store:
        token = add_annotator(store, "Zoë", admin=True)
        found = annotator_by_token(store, token)

        assert (found.name, found.admin) == ("Zoë", True)
        assert find_annotator(store, "Zoe\u0308") == found  # however the keyboard writes it
        assert annotator_by_token(store, token + "x") is None
        with store.reading() as conn:
            assert token not in str(conn.execute(select(schema.annotators)).all())


def test_a_fresh_token_ends_the_old_one_and_a_revoked_one_opens_nothing(store, anna):
    token = renew_token(store, anna)
    newer = renew_token(store, anna)

    assert annotator_by_token(store, token) is None
    assert annotator_by_token(store, newer).id == anna
    revoke_token(store, anna)
    assert annotator_by_token(store, newer) is None
    with pytest.raises(NotFoundError):
        renew_token(store, 99)


def test_tokens_have_24_random_bytes_and_names_up_to_64_characters(store, anna):
    tokens = [add_annotator(store, "x" * 64), renew_token(store, anna)]

    assert [len(token) for token in tokens] == [32, 32] and tokens[0] != tokens[1]
    assert find_annotator(store, "x" * 64) is not None


@pytest.mark.parametrize("name", ["anna", "", " anna", "a\nb", "a\0b", "x" * 65, "\u202ebob"])
def test_a_name_that_is_taken_or_cannot_be_shown_is_refused(store, name):
    with pytest.raises(DataError, match="annotator"):
        add_annotator(store, name)
