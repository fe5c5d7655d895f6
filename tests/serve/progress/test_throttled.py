"""What many ask for is computed once in a while."""

from __future__ import annotations

from itertools import count

import pytest

from seqmix.serve.progress.throttled import Throttled


def test_it_is_computed_once_until_it_is_too_old_or_forgotten():
    numbers = count()
    kept, fresh = (Throttled(lambda: next(numbers), every) for every in (1000.0, 0.0))

    assert [kept(), kept(), fresh(), fresh(), kept()] == [0, 0, 1, 2, 0]
    kept.forget()
    assert [kept(), kept()] == [3, 3]


def test_an_error_is_not_kept():
    def compute() -> int:
        if not broken:
            return 1
        raise OSError(broken.pop())

    broken = ["the store does not answer"]
    value = Throttled(compute, 1000.0)

    with pytest.raises(OSError, match="does not answer"):
        value()
    assert value() == 1
