"""Comments and flags on sentences."""

from __future__ import annotations

import pytest

from seqmix.errors import DataError, NotFoundError
from seqmix.serve.answers.comments import (
    MOST,
    add_comment,
    find_comment,
    list_comments,
    resolve_comment,
)
from seqmix.serve.answers.search import Wanted, search


def test_comments_and_flags_are_listed_in_order_and_resolved_not_deleted(store, anna, bo):
    first = add_comment(store, anna, "s:1", "  Is this a name? \U0001f600 ", now=5.0)
    flag = add_comment(store, bo, "s:1", "")
    add_comment(store, bo, "s:2", "x")

    assert (first.text, first.annotator, first.at) == ("Is this a name? \U0001f600", "anna", 5.0)
    assert [c.id for c in list_comments(store, ["s:1"])] == [first.id, flag.id]
    assert [c.id for c in list_comments(store, ["s:1", "\0"], reader=bo)] == [flag.id]
    wanted = Wanted(state="open", commented=True)
    assert [e.sentence.id for e in search(store, wanted)[0]] == ["s:1", "s:2"]

    resolve_comment(store, flag.id, anna, now=9.0)
    assert [c.id for c in list_comments(store, ["s:1"])] == [first.id]
    assert find_comment(store, flag.id).resolved_at == 9.0
    assert len(list_comments(store, ["s:1"], resolved=True)) == 2
    resolve_comment(store, flag.id, anna, resolved=False)
    assert len(list_comments(store, ["s:1"])) == 2


def test_what_is_sent_twice_is_one_comment(store, anna, bo):
    flag = add_comment(store, anna, "s:1", "")
    assert add_comment(store, anna, "s:1", "").id == flag.id
    assert add_comment(store, bo, "s:1", "").id != flag.id
    resolve_comment(store, flag.id, anna)
    assert add_comment(store, anna, "s:1", "").id != flag.id


def test_what_makes_no_sense_is_refused(store, anna):
    for text in ("x" * 2001, "a\0b", "\ud800"):
        with pytest.raises(DataError):
            add_comment(store, anna, "s:1", text)
    for id in ("nobody", "\0"):
        with pytest.raises(NotFoundError):
            add_comment(store, anna, id, "x")
    with pytest.raises(NotFoundError):
        resolve_comment(store, 99, anna)
    with pytest.raises(NotFoundError):
        find_comment(store, 99)
    for i in range(MOST):
        add_comment(store, anna, "s:1", str(i))
    with pytest.raises(DataError, match="at most"):
        add_comment(store, anna, "s:1", "one more")
