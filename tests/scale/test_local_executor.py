"""Processes that work through jobs: they stay, they are replaced, and they end when they should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seqmix.scale.local_executor import JobEvent, cores, run_jobs
from tests.support import jobs
from tests.support.waiting import until


def heard(todo: list[str], workers: int = 1) -> list[JobEvent[str]]:
    events: list[JobEvent[str]] = []
    assert run_jobs(todo, jobs.do, workers, events.append) == []
    return [event for event in events if event.kind != "emitted"]


def test_one_process_does_all_jobs_in_order_and_says_so() -> None:
    events: list[JobEvent[str]] = []
    assert run_jobs(["a", "b"], jobs.do, 1, events.append) == []

    assert [(event.kind, event.job) for event in events] == [
        ("emitted", "a"),
        ("done", "a"),
        ("emitted", "b"),
        ("done", "b"),
    ]
    assert len({event.value[1] for event in events if event.kind == "done"} | {os.getpid()}) == 2


def test_a_failed_job_loses_no_other() -> None:
    events = heard(["a", "refuse", "b", "break", "c"])

    assert [(event.job, event.kind) for event in events] == [
        ("a", "done"), ("refuse", "failed"), ("b", "done"), ("break", "failed"), ("c", "done"),
    ]  # fmt: skip
    assert events[1].value == "not like this" and not events[1].trace
    assert events[3].value == "ZeroDivisionError: by nothing at all" and "in do" in events[3].trace
    assert events[0].value[1] == events[2].value[1], "an error of ours leaves the process whole"
    assert events[2].value[1] != events[4].value[1], "after any other a fresh one takes over"


def test_a_killed_process_is_replaced_and_its_job_tried_once_more(tmp_path: Path) -> None:
    events = heard(["die", f"die-once {tmp_path / 'died'}", "a"], workers=2)

    ended = {event.job.split()[0]: (event.kind, event.value) for event in events}
    assert len(events) == 3 and ended["die-once"][0] == ended["a"][0] == "done"
    assert ended["die"] == (
        "failed",
        "its process died 2 times (SIGKILL); if memory ran out, lower --workers",
    )


def test_no_job_starts_when_the_time_is_up() -> None:
    events: list[JobEvent[str]] = []

    left = run_jobs(
        ["a", "b", "c", "d"],
        jobs.do,
        1,
        events.append,
        lambda: sum(event.kind == "done" for event in events) < 2,
    )

    assert [event.job for event in events if event.kind == "done"] == ["a", "b"] and left == [
        "c",
        "d",
    ]


def test_workers_share_the_cores_unless_the_user_said_how_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 2, 4, 6, 8, 9}, raising=False)
    assert [heard(["threads"], workers=workers)[0].value[0] for workers in (2, 7)] == ["3", "1"]
    assert "OMP_NUM_THREADS" not in os.environ

    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert heard(["threads"], workers=2)[0].value[0] == "7"


def test_threads_of_workers_sleep_while_they_wait_unless_the_user_said_how(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    assert heard(["waits"])[0].value[0] == "PASSIVE"

    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    assert heard(["waits"])[0].value[0] == "active"


def test_cores_are_counted_where_the_system_does_not_tell_which_are_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)

    assert cores() == os.cpu_count()


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("kill", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_workers_end_with_their_parent(kill: signal.Signals, code: int, tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    command = [sys.executable, "-m", jobs.__name__, *(f"sleep {file}" for file in files)]
    parent = subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_ctrl_c
    )
    until(lambda: all(file.exists() and file.read_text() for file in files))

    assert all(_deaf_to_ctrl_c(int(file.read_text())) for file in files)
    if kill == signal.SIGINT:
        os.killpg(parent.pid, kill)  # as a terminal does: parent and children
    else:
        parent.kill()
    _, said = parent.communicate(timeout=60)

    assert parent.returncode == code and "Traceback" not in said
    until(lambda: not any(_lives(int(file.read_text())) for file in files))


def _heed_ctrl_c() -> None:
    """What runs in the background of a shell ignores Ctrl-C, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _deaf_to_ctrl_c(pid: int) -> bool:
    blocked = next(
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("SigBlk")
    )
    return bool(int(blocked.split()[1], 16) & 1 << (signal.SIGINT - 1))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
