"""Try regular expressions in a process with little memory and time; run by `check_patterns`.

It reads a job from standard input and prints, for each pattern that was tried, how many are done
and what is wrong with it. A pattern that takes all memory or time ends the process, and the next
number in line tells which one it was.
"""

from __future__ import annotations

import json
import resource
import sys
from typing import Any

import regex

_MEMORY, _CPU = 1 << 29, 30  # bytes, seconds


def problem(pattern: str, flags: int, job: Any) -> str | None:
    """Return what is wrong with a pattern, or None."""
    try:
        compiled = regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError) as error:
        return str(error).splitlines()[0] if str(error) else "it is nested too deeply"
    except MemoryError:
        return "it takes too much memory"
    slow = 0
    for text in job["texts"]:
        try:
            for _ in compiled.finditer(text, timeout=job["seconds"]):
                pass
        except TimeoutError:
            slow += 1
            if slow > 2:
                return f"it takes more than {1000 * job['seconds']:.0f} ms on a sentence"
        except MemoryError:
            return "it takes too much memory"
    return None


def main() -> None:
    """Try the patterns of a job in order."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU, _CPU))
    job = json.load(sys.stdin)
    flags = regex.IGNORECASE if job["ignore_case"] else 0
    for done, pattern in enumerate(job["patterns"]):
        wrong = problem(pattern, flags, job)
        sys.stdout.write(json.dumps([done if wrong else done + 1, wrong]) + "\n")
        sys.stdout.flush()
        if wrong:
            return


if __name__ == "__main__":
    main()
