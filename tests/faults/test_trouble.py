"""A little of each trouble with the disk: the shortest form of `make faults`.

CI runs that, so that the suite leaves it out.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support import ROOT


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts a disk in a namespace of its own")
def test_trouble_with_the_disk_is_one_line_and_destroys_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.trouble", "--share", "0.05"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert (
        ended.stdout.endswith("\n0 things wrong\n")
        and "two writers, simulate: 1 second refused" in ended.stdout
    )
