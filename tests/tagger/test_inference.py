"""Batches side by side: one thread each, results in order, the setting left alone."""

from __future__ import annotations

import pytest
import torch

from seqmix.tagger.inference import side_by_side

CPU = torch.device("cpu")


@pytest.fixture(params=[1, 2])
def threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_each_batch_has_one_thread_and_the_results_come_in_order(threads):
    actual = side_by_side(lambda item: (item, torch.get_num_threads()), range(20), CPU)

    assert actual == [(item, 1) for item in range(20)]
    assert torch.get_num_threads() == threads


def test_an_error_in_one_batch_comes_out_and_the_setting_stays(threads):
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda item: 1 // item, [2, 1, 0], CPU)

    assert torch.get_num_threads() == threads


def test_nothing_to_do_is_nothing_done(threads):
    assert side_by_side(str, [], CPU) == []
