"""Coverage-guided fuzzing of everything that reads what others wrote.

    python -m fuzz --runs 10000 --target all

A target takes bytes and gives them to one reader. What the reader refuses it refuses with an error
of the package, in one line; anything else is a finding: another exception, more than five seconds,
more than a gibibyte. Every finding becomes a file in `fuzz/regressions`, which the tests replay.
"""
