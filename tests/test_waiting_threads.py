"""How OpenMP's threads wait for each other: set before torch is loaded, in every kind of process.

It is the user's to change.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NAMES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def said(code: str, **environment: str) -> str:
    """What a fresh process says, OpenMP's own account of its settings included."""
    clean = {name: value for name, value in os.environ.items() if name not in NAMES}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "module",
    [
        "seqmix.app.cli",
        "seqmix.app.trainer_process",
        "seqmix.app.sweep.worker",
        "seqmix.scale.ray_executor",
    ],
)
def test_it_is_said_before_torch_is_loaded(module: str) -> None:
    code = (
        f"import os, sys, {module}; "
        "print('torch' in sys.modules, os.environ.get('OMP_WAIT_POLICY'))"
    )

    assert said(code) == "False PASSIVE\n"


@pytest.mark.skipif(sys.platform != "linux", reason="asks GNU's OpenMP what it has read")
def test_openmp_has_read_it() -> None:
    spins = "GOMP_SPINCOUNT = '0'"

    assert spins in said("import seqmix, torch", OMP_DISPLAY_ENV="verbose")
    assert spins not in said("import torch, seqmix", OMP_DISPLAY_ENV="verbose"), "too late"


@pytest.mark.parametrize(
    ("name", "value"),
    [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "5"), ("KMP_BLOCKTIME", "9")],
)
def test_what_the_user_said_stays(name: str, value: str) -> None:
    code = f"import os, seqmix; print([os.environ.get(name) for name in {NAMES}])"

    assert said(code, **{name: value}) == f"{[value if own == name else None for own in NAMES]}\n"


def test_where_torch_is_there_already_the_environment_is_left_alone() -> None:
    code = (
        "import os, sys; sys.modules['torch'] = sys; import seqmix; "
        "print(os.environ.get('OMP_WAIT_POLICY'))"
    )

    assert said(code) == "None\n"
