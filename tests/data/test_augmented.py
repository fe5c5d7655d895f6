"""Generated sentences: their records, what mixing made, and how much a few entries attract."""

from __future__ import annotations

import numpy as np
import pytest

from seqmix.data.augmented import Augmentation, Augmented, Lineage, hubness, new_tokens
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

SENTENCE = Sentence("g1", ("Oslo", "was", "sold"), ("B-LOC", "O", "O"))


def mixed(into: int = 0, weight: float | None = 0.4) -> Augmented:
    return Augmented(SENTENCE, Lineage("sub", ("a", "b"), ((0, 1), (1, 3)), into, weight))


def test_a_record_gives_the_sentence_back_with_all_of_its_lineage() -> None:
    result = Augmented(
        SENTENCE, Lineage("sub", ("a", "b"), ((0, 1), (1, 3)), 1, 0.4, 55.5, "2", (0.1, 0.2))
    )

    assert Augmented.from_record(result.to_record()) == result
    assert Augmented.from_record(mixed().to_record()).lineage == Lineage(
        "sub", ("a", "b"), ((0, 1), (1, 3)), weight=0.4
    )


@pytest.mark.parametrize("key", ["lineage", "id"])
def test_a_record_that_lacks_something_is_an_error_that_shows_it(key: str) -> None:
    record = {name: value for name, value in mixed().to_record().items() if name != key}

    with pytest.raises(DataError, match='with its "lineage"') as caught:
        Augmented.from_record(record)
    assert (
        caught.value.text is not None
        and caught.value.text.startswith("{")
        and len(caught.value.text) == 80
    )


@pytest.mark.parametrize(
    "damage", [{"parents": None}, {"windows": [[1]]}, {"windows": [["a", 2]]}, {"unheard": 1}]
)
def test_a_lineage_of_another_kind_is_an_error(damage: dict[str, object]) -> None:
    record = mixed().to_record()

    with pytest.raises(DataError, match='with its "lineage"'):
        Augmented.from_record({**record, "lineage": {**record["lineage"], **damage}})


def test_new_tokens_are_those_of_the_rewritten_window_and_none_where_nothing_was_mixed() -> None:
    assert new_tokens([mixed(0), mixed(1), mixed(weight=None)]) == ["Oslo", "was", "sold"]


def test_an_augmentation_is_the_list_of_its_outputs() -> None:
    result = Augmentation((mixed(0), mixed(1)), 5, "too few pairs")

    assert (len(result), list(result), result[1], list(result[:1])) == (
        2,
        [mixed(0), mixed(1)],
        mixed(1),
        [mixed(0)],
    )
    assert (
        result.sentences == [SENTENCE, SENTENCE] and result.rejected == () and result.counts == {}
    )


def test_hubness_is_the_largest_share_and_the_skewness_of_all_counts() -> None:
    counts = np.array([4, 1, 0, 0, 0])
    away = counts - 1
    skewness = (away**3).mean() / (away**2).mean() ** 1.5

    assert hubness(["a", "b", "a", "a", "a"], 5) == pytest.approx(
        {"largest_share": 0.8, "skewness": skewness}
    )


def test_without_choices_or_with_even_ones_there_is_no_hub() -> None:
    assert hubness([], 9) == {"largest_share": 0.0, "skewness": 0.0}
    assert hubness(["a", "b"], 2) == {"largest_share": 0.5, "skewness": 0.0}
    assert hubness(["a", "b", "c"], 0) == pytest.approx({"largest_share": 1 / 3, "skewness": 0.0})
