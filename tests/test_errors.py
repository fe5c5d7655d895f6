import inspect
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqmix import errors
from seqmix.errors import (
    ConfigError,
    DataError,
    MissingExtraError,
    ModelError,
    NotFoundError,
    PoolExhaustedError,
    RunError,
    SeqMixError,
    StaleError,
    StoreError,
    TagError,
)

EXAMPLES = [
    SeqMixError("something is wrong; do something else"),
    DataError("expected 2 columns", Path("train.conll"), 7, "Oslo B-LOC ?"),
    DataError("there is no such file", "nowhere.conll"),
    DataError("no sentence has a label"),
    TagError("unknown tag; this tag set has O, B-PER", text="B-LOC"),
    ModelError("there is no model in runs/demo"),
    ConfigError("--epochs is 0; it must be 1 or more"),
    PoolExhaustedError(100, 7),
    RunError("another process is working in runs/a"),
    StoreError("notes/ is no project: it has no project.toml; seqmix init creates one"),
    NotFoundError("sentence", "notes:7"),
    StaleError("this sentence was answered since it was shown; load it again", 12),
    MissingExtraError("spacy", "reading .spacy files"),
]


def every_error():
    return [
        cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, Exception)
    ]


def test_no_error_of_the_tree_escapes_the_examples():
    assert {type(error) for error in EXAMPLES} == set(every_error())


def test_every_error_is_a_seqmix_error():
    assert all(issubclass(cls, SeqMixError) for cls in every_error())


def test_the_tree_drawn_at_the_top_of_the_module_is_the_tree():
    drawn = re.findall(r"^    ([│├└─ ]*)(\w+Error)\b", errors.__doc__, re.MULTILINE)

    assert {name for _, name in drawn} == {cls.__name__ for cls in every_error()}
    above: dict[int, str] = {}
    for branch, name in drawn:
        depth = len(branch) // 4
        above[depth] = name
        if depth:
            assert getattr(errors, name).__bases__[0].__name__ == above[depth - 1]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("error", EXAMPLES, ids=str)
def test_an_error_comes_home_from_a_worker_with_the_same_message_and_fields(error, protocol):
    home = pickle.loads(pickle.dumps(error, protocol))

    assert type(home) is type(error)
    assert str(home) == str(error)
    assert vars(home) == vars(error)


def test_an_error_keeps_its_fields_in_args():
    assert EXAMPLES[1].args == ("expected 2 columns", Path("train.conll"), 7, "Oslo B-LOC ?")
    assert EXAMPLES[-1].args == ("spacy", "reading .spacy files")


def test_a_data_error_names_the_place_the_expectation_and_the_value():
    assert str(EXAMPLES[1]) == "train.conll:7: expected 2 columns; found 'Oslo B-LOC ?'"


def test_a_data_error_leaves_out_what_is_not_known():
    assert str(DataError("expected a tag", "a.conll")) == "a.conll: expected a tag"
    assert str(DataError("expected a tag", text="")) == "expected a tag; found ''"
    assert str(DataError("expected a tag")) == "expected a tag"


@given(st.text())
def test_the_value_never_breaks_the_message_into_lines_nor_makes_it_long(text):
    message = str(DataError("expected a tag", "a.conll", 3, text))

    assert len(message.splitlines()) == 1
    assert len(message) < 1000
    assert message.startswith("a.conll:3: expected a tag; found ")


def test_a_long_value_is_cut_and_says_so():
    assert str(DataError("expected a tag", text="x" * 81)) == f"expected a tag; found '{'x' * 80}…'"
    assert str(DataError("expected a tag", text="x" * 80)) == f"expected a tag; found '{'x' * 80}'"


def test_a_missing_extra_says_what_to_type():
    assert (
        str(EXAMPLES[-1])
        == "reading .spacy files needs an optional package: pip install 'seqmix[spacy]'"
    )


def test_a_tag_error_can_be_caught_as_a_data_error():
    with pytest.raises(DataError):
        raise TagError("unknown tag", text="X")
