"""A disk of a chosen size in a mount namespace of this process's own.

No other process sees it, and it ends with this one.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_READ_ONLY, _REMOUNT, _ALL_BELOW, _PRIVATE = 1, 32, 16384, 1 << 18
LARGE = 64 * 1024 * 1024


def small_disk(place: Path, size: int = LARGE) -> None:
    """Put a disk of so many bytes on a folder; PermissionError where a process may not do so."""
    libc, user, group = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
    _call(libc.unshare(_NEW_MOUNTS if user == 0 else _NEW_MOUNTS | _NEW_USER))
    if user:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {user} 1"),
            ("gid_map", f"0 {group} 1"),
        ):
            Path(f"/proc/self/{name}").write_text(text)
    _call(libc.mount(None, b"/", None, _ALL_BELOW | _PRIVATE, None))
    _call(libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, b"size=%d" % size))


def change_disk(place: Path, size: int = LARGE, read_only: bool = False) -> None:
    """Another size, or no writing any more."""
    flags = _REMOUNT | (_READ_ONLY if read_only else 0)
    _call(
        ctypes.CDLL(None, use_errno=True).mount(
            None, os.fsencode(place), None, flags, b"size=%d" % size
        )
    )


def used(place: Path) -> int:
    about = os.statvfs(place)
    return (about.f_blocks - about.f_bfree) * about.f_frsize


def _call(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise PermissionError(number, os.strerror(number))
