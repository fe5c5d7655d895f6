"""Run every command of the README in an empty folder, and say how each ended and what it cost.

    python scripts/walk_readme.py            # with this Python and its seqmix; most of an hour
    python scripts/walk_readme.py --fresh    # in a new environment, made by the install line
    python scripts/walk_readme.py --quick    # every command on less: what the tests run

The files the README calls yours are stand-ins made of the sample corpus. `annotate` is asked for
its page and then ended as Ctrl-C does. Lines that begin with `make` or `source` are left out: they
are for a clone, and `make` builds an environment of its own. PIP_CONSTRAINT is heeded. --quick runs
in this process, with the optional packages hidden.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
YOURS = """
from pathlib import Path
from seqmix.data import formats
from seqmix.data.samples import sample
parts = ("train", "dev", "test", "reserve")
train, dev, test, reserve = (sample(f"gazette:{name}") for name in parts)
notes = "".join(" ".join(s.tokens) + "\\n" for s in reserve)
Path("notes.txt").write_text(notes, encoding="utf-8")
formats.write(dev, Path("export.json"), "labelstudio")
Path("CONLL03").mkdir()
for name, sentences in {"train": [*train, *test, *reserve], "valid": dev, "test": test}.items():
    formats.write(sentences, Path("CONLL03") / f"{name}.txt", "conll")
"""
LESS = {  # what --quick adds to a command
    "train": "--steps 2 --limit 24",
    "augment": "--limit 60",
    "adapt": "--set steps=1",
    "simulate": "--set loop.rounds=1 --set loop.slice=24 --set loop.seed_size=12 "
    "--set query.size=4 --set training.epochs=1",
    "sweep": "--dry-run",
}
EXTRAS = (
    "datasets",
    "gguf",
    "mlflow",
    "psycopg",
    "pyarrow",
    "ray",
    "spacy",
    "tensorboard",
)  # what the README must not need
Outcome = tuple[int, float]  # exit status and CPU seconds


def commands(page: str) -> list[str]:
    """The lines of the console blocks, in order, without what is said about them."""
    lines = (
        line
        for block in re.findall(r"```console\n(.*?)```", page, flags=re.S)
        for line in block.splitlines()
    )
    return [
        line for line in (shlex.join(shlex.split(line, comments=True)) for line in lines) if line
    ]


def scripts(page: str) -> list[str]:
    """The Python blocks."""
    return re.findall(r"```python\n(.*?)```", page, flags=re.S)


def run(
    words: Sequence[str],
    folder: Path,
    watch: Callable[[subprocess.Popen[str], Path], None] | None = None,
) -> Outcome:
    """A command in a folder, its words in a log that is shown when it fails."""
    log = folder / ".walk.log"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            words, cwd=folder, stdout=out, stderr=subprocess.STDOUT, text=True
        )
        if watch is not None:
            watch(process, log)
        _, status, used = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    if code:
        print(log.read_text(encoding="utf-8"))
    return code, used.ru_utime + used.ru_stime


def run_here(words: Sequence[str], folder: Path) -> Outcome:
    """A command of ours in this process, which has loaded what most of them need."""
    sys.modules.update(dict.fromkeys(EXTRAS))
    from seqmix.app.cli import run as ours

    before, start = Path.cwd(), time.process_time()
    os.chdir(folder)
    try:
        code = ours(list(words))
    finally:
        os.chdir(before)
    return code, time.process_time() - start


def look_at_the_page(process: subprocess.Popen[str], log: Path) -> None:
    """Open the link that annotate prints, then end it."""
    for _ in range(1200):
        if found := re.search(r"http://\S+", log.read_text(encoding="utf-8")):
            break
        if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return  # it has ended, which whoever waits for it will see
        time.sleep(0.1)
    else:
        process.kill()
        return
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    page = opener.open(found[0], timeout=60).read()
    process.send_signal(signal.SIGINT)
    if b"<html" not in page:
        raise SystemExit(f"{found[0]} gave no page")


def walk(page: str, folder: Path, python: Path, quick: bool) -> list[tuple[str, Outcome]]:
    """Every command and every script of a page."""
    if (code := run([str(python), "-c", YOURS], folder)[0]) != 0:
        raise SystemExit(code)
    shutil.copytree(ROOT / "experiments", folder / "experiments")
    ended = []
    for line in commands(page):
        name, *rest = line.split()
        if name in ("make", "pip", "source"):
            continue
        if name == "echo":
            *words, _, file = shlex.split(line)  # echo WORDS > FILE
            (folder / file).write_text(f"{' '.join(words[1:])}\n", encoding="utf-8")
            continue
        if name != "seqmix":
            raise SystemExit(
                f"the README says {line!r}, which this script does not know how to run"
            )
        more = LESS.get(rest[0], "") if quick else ""
        more += " --quick" * (quick and "--unlabeled" in rest)
        more += " --port 0 --no-browser" * (rest[0] == "annotate")
        words = [*shlex.split(line)[1:], *more.split()]
        print(f"{line} {more}".rstrip(), flush=True)
        if quick and rest[0] != "annotate":
            outcome = run_here(words, folder)
        else:
            outcome = run(
                [str(python), "-m", "seqmix", *words],
                folder,
                look_at_the_page if rest[0] == "annotate" else None,
            )
        ended.append((line, outcome))
        print(f"    exit {ended[-1][1][0]}, {ended[-1][1][1]:.0f} s of CPU", flush=True)
    for script in scripts(page):
        text = script.replace("Settings(", "Settings(steps=2, ") if quick else script
        print("the Python block" + " with two steps" * quick, flush=True)
        ended.append(("the Python block", run([str(python), "-c", text], folder)))
        print(f"    exit {ended[-1][1][0]}, {ended[-1][1][1]:.0f} s of CPU", flush=True)
    return ended


def fresh(page: str, folder: Path) -> Path:
    """A new environment with what the README's install line brings, nothing else; its Python."""
    (line,) = (line for line in commands(page) if line.startswith("pip install"))
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    print(line, flush=True)
    subprocess.run(
        [python, "-m", *shlex.split(line), "--quiet", "--disable-pip-version-check"],
        cwd=ROOT,
        check=True,
    )
    return python


def main() -> None:
    """The whole walk."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="every command on less data or with fewer steps; the sweep as a dry run",
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="in a new environment made with the README's install line only",
    )
    given = parser.parse_args()
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="seqmix-readme-") as name:
        python = fresh(page, Path(name) / "environment") if given.fresh else Path(sys.executable)
        (Path(name) / "here").mkdir()
        ended = walk(page, Path(name) / "here", python, given.quick)
    failed = [line for line, (code, _) in ended if code]
    print(
        f"{len(ended)} commands, {len(failed)} failed" + "".join(f"\n    {line}" for line in failed)
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
