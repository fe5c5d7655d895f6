"""Files of another version are told apart: damaged, newer, older."""

from pathlib import Path

import pytest

from seqmix.data.format_versions import foreign


@pytest.mark.parametrize("known", [1, 2, 5])
def test_the_format_we_know_is_opened(known):
    assert foreign(Path("run"), known, known) is None


@pytest.mark.parametrize("found", [None, "1", 1.0, True, 0, -1, [1]])
def test_what_is_no_number_of_a_format_is_called_damaged(found):
    assert f"its format_version is {found!r}" in foreign(Path("run"), found, 1)


def test_a_newer_format_says_to_upgrade_and_an_older_one_says_what_is_read():
    assert (
        foreign(Path("run"), 3, 2)
        == "run has format 3, written by a newer seqmix; this one reads formats up to 2: upgrade seqmix"
    )
    assert foreign(Path("run"), 1, 2).endswith(
        "written by an older seqmix; this one reads format 2"
    )
    assert "newer" in foreign(Path("run"), 9, 2) and "older" in foreign(Path("run"), 1, 9)
