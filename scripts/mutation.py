"""How many small mistakes, planted one at a time, the tests notice.

    pip install cosmic-ray==8.7.0 coverage==7.17.2
    python scripts/mutation.py data query --sample 20 --seed 0 --out mutants.jsonl

scripts/mutation.toml names the modules and the tests of each package, and the mutants that change
nothing a user could see. A copy of the working tree is mutated, never the tree. Of every place that
cosmic-ray can mutate one mutant is drawn, then `--sample` places of each module. For each a process
is forked that has all tests read already, the changed function is put in the place of the old one,
and the tests that reach the changed statement run, quickest first, until one fails. What survives
that, or is not in a function, is tried in a process that imports the changed module anew. With
`--again FILE` only the survivors of an earlier run are tried.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.abc import InspectLoader
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import coverage
import pytest
from hypothesis import Phase, settings

from mutants import Mutant, draw, named, statement

ROOT = Path(__file__).parents[1]
LIBRARIES = (
    "torch",
    "transformers",
    "scipy.stats",
    "sqlalchemy",
    "psycopg",
    "fastapi.testclient",
    "uvicorn",
    "datasets",
    "spacy",
    "rich",
)
PHASES = (Phase.explicit, Phase.generate)
Tests = dict[
    str, dict[str, Any]
]  # by test: the seconds it takes, and the lines it reaches in each module


def forked(work: Path, seconds: float, action: Callable[[], Any]) -> Any:
    """What an action returns, run in a process of its own.

    ["timeout"] when it took longer, ["died"] when it returned nothing.
    """
    answer = Path(tempfile.mkstemp(dir=work)[1])
    child = os.fork()
    if child == 0:
        os.setsid()
        log = os.open(work / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            answer.write_text(json.dumps(action()), encoding="utf-8")
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    end = time.monotonic() + seconds
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > end:
            os.kill(
                child, signal.SIGINT if time.monotonic() < end + 10 else signal.SIGKILL
            )  # time to stop what it started
        time.sleep(0.02 if time.monotonic() < end else 1)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    text = answer.read_text(encoding="utf-8")
    answer.unlink()
    return ["timeout"] if time.monotonic() > end else json.loads(text) if text else ["died"]


class Plugin:
    """Reads all tests and hands them to whoever runs them; keeps failures, shrinks nothing."""

    def __init__(self, run: Callable[[Plugin], None]) -> None:
        self.run = run
        self.items: dict[str, pytest.Item] = {}
        self.seconds: Counter[str] = Counter()
        self.failed: list[str] = []

    def pytest_sessionstart(self) -> None:
        """After conftest.py has set its profile, and before a test is read."""
        settings.register_profile(
            "mutation",
            settings.default,
            derandomize=True,
            database=None,
            max_examples=30,
            phases=PHASES,
        )
        settings.load_profile("mutation")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """In the place of pytest's own."""
        self.items = {item.nodeid: item for item in session.items}
        if not self.failed:
            self.run(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Time and failures."""
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A test file that cannot be read has noticed too."""
        if report.failed:
            self.failed.append(report.nodeid)

    def each(self, names: list[str]) -> Iterator[str]:
        """Run these tests, one for each turn; what they share is taken down at the end."""
        for name, following in zip_longest(names, names[1:]):
            yield name
            item = self.items[name]
            item.config.hook.pytest_runtest_protocol(
                item=item, nextitem=self.items[following] if following else None
            )
            if self.failed and following:
                item.session._setupstate.teardown_exact(None)

    def first(self, names: list[str]) -> list[str]:
        """The first of these tests that fails."""
        for _ in self.each([name for name in names if name in self.items]):
            if self.failed:
                break
        return self.failed


def session(work: Path, where: list[str], run: Callable[[Plugin], None]) -> list[str]:
    """Have pytest read test files, then run what is wanted with them; which tests failed."""
    plugin = Plugin(run)
    quiet = [
        "-p",
        "no:cacheprovider",
        f"--basetemp={work / 'tmp'}",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    code = pytest.main([*where, *quiet], plugins=[plugin])
    return plugin.failed or (
        []
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        else [f"pytest: {code!r}"]
    )


def reached(plugin: Plugin, root: Path, modules: list[str]) -> Tests:
    """Run every test; those that pass, with their seconds and the lines they reach."""
    watched = coverage.Coverage(
        data_file=None, config_file=False, include=[str(root / module) for module in modules]
    )
    watched.start()
    lost = set()
    for name in plugin.each(list(plugin.items)):
        watched.switch_context(name)
        lost |= set(plugin.failed)
        plugin.failed.clear()
    watched.stop()
    tests: Tests = {
        name: {"seconds": taken, "lines": {}}
        for name, taken in plugin.seconds.items()
        if name not in lost | set(plugin.failed)
    }
    for module in modules:
        for line, names in watched.get_data().contexts_by_lineno(str(root / module)).items():
            for name in tests.keys() & set(names):
                tests[name]["lines"].setdefault(module, []).append(line)
    return tests


def choose(tests: Tests, module: str, lines: range, budget: float) -> list[str]:
    """The tests that reach a statement, quickest first, as many as the budget allows.

    Where none does, those of the files with a test that reaches the module, and those that reach
    nothing: they look at it from outside.
    """
    names = [
        name
        for name, test in tests.items()
        if not set(test["lines"].get(module, ())).isdisjoint(lines)
    ]
    files = {name.partition("::")[0] for name, test in tests.items() if module in test["lines"]}
    names = names or [
        name
        for name, test in tests.items()
        if name.partition("::")[0] in files or not test["lines"]
    ]
    total, few = 0.0, []
    for name in sorted(names, key=lambda name: ("[postgresql" in name, tests[name]["seconds"])):
        total += tests[name]["seconds"]
        if total <= budget or not few:
            few.append(name)
    return few


def swap(root: Path, mutant: Mutant) -> bool:
    """Put the changed code of a function into those that run the old one; whether any did."""
    path, changed = str(root / mutant.module), 0
    codes = [InspectLoader.source_to_code(mutant.code, path)]
    for code in codes:
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
    renewed = {(code.co_qualname, code.co_firstlineno): code for code in codes}
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename == path:
            code = renewed.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if (
                code is not None
                and code != function.__code__
                and code.co_freevars == function.__code__.co_freevars
            ):
                function.__code__, changed = code, changed + 1
    return changed > 0


class Trial:
    """The mutants of one package against its tests."""

    def __init__(self, work: Path, where: list[str], budget: float) -> None:
        self.work, self.root, self.where, self.budget = work, work / "copy", where, budget
        self.tests: Tests = {}

    def all(self, modules: list[str], some: list[Mutant]) -> Iterator[tuple[Mutant, str]]:
        """Each mutant with the test that noticed it, if any."""
        answer = forked(self.work, 3600, lambda: self.quickly(modules, some))
        if not isinstance(answer, dict):
            sys.exit(
                f"{self.where}: {answer}\n{(self.work / 'log').read_text(encoding='utf-8')[-2000:]}"
            )
        self.tests = answer["tests"]
        if noticed := self.slowly(
            Mutant(modules[-1], 1, "", "", (self.root / modules[-1]).read_text(encoding="utf-8"))
        ):
            sys.exit(f"{modules[-1]}: nothing was planted, and {noticed} noticed")
        for mutant, noticed in zip(some, answer["noticed"], strict=True):
            yield mutant, noticed if noticed not in ("", "died") else self.slowly(mutant)

    def quickly(self, modules: list[str], some: list[Mutant]) -> dict[str, Any]:
        """The tests, and who noticed which mutant, from one session that has read all tests."""
        answer: dict[str, Any] = {"noticed": []}

        def run(plugin: Plugin) -> None:
            self.tests = answer["tests"] = forked(
                self.work, 3600, lambda: reached(plugin, self.root, modules)
            )
            for mutant in some:
                answer["noticed"].append(
                    self.noticed(
                        mutant,
                        lambda names, mutant=mutant: (
                            plugin.first(names) if swap(self.root, mutant) else []
                        ),
                    )
                )

        failed = session(self.work, self.where, run)
        return answer if self.tests else failed

    def slowly(self, mutant: Mutant) -> str:
        """Who noticed a mutant, in a session that imports it."""

        def run(names: list[str]) -> list[str]:
            return session(
                self.work,
                list(dict.fromkeys(name.partition("::")[0] for name in names)),
                lambda plugin: plugin.first(names) and None,
            )

        return self.noticed(mutant, run)

    def noticed(self, mutant: Mutant, run: Callable[[list[str]], Any]) -> str:
        """The test that noticed a mutant, "timeout", or nothing."""
        names = choose(self.tests, mutant.module, statement(self.root, mutant), self.budget)
        file = self.root / mutant.module
        code = file.read_text(encoding="utf-8")
        file.write_text(mutant.code, encoding="utf-8")  # processes that tests start see it too
        try:
            failed = (
                forked(
                    self.work,
                    30 + 4 * sum(self.tests[name]["seconds"] for name in names),
                    lambda: run(names),
                )
                if names
                else []
            )
        finally:
            file.write_text(code, encoding="utf-8")
        return (failed or [""])[0]


def prepare(root: Path) -> None:
    """A copy of the working tree that is imported first; all children share loaded libraries."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src"],
        cwd=root,
        check=True,
    )
    os.environ |= {
        "PYTHONPATH": str(root / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
    }
    sys.dont_write_bytecode = (
        True  # a mutant of the same length within the same second would look like the original
    )
    sys.path.insert(0, str(root / "src"))
    os.chdir(root)
    for library in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(library)


def main() -> None:
    """Draw, plant, test, count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    plan = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    parser.add_argument("packages", nargs="*", default=list(plan["package"]))
    parser.add_argument("--sample", type=int, default=20, help="places of each module")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--budget",
        type=float,
        default=20,
        help="seconds of tests for each mutant, as they take without it",
    )
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--again", type=Path, help="the file of an earlier run")
    asked = parser.parse_args()
    earlier = (
        [json.loads(line) for line in asked.again.read_text(encoding="utf-8").splitlines()]
        if asked.again
        else []
    )
    same = {(one["module"], one["before"], one["after"]) for one in plan.get("same", [])}
    rows: list[dict[str, Any]] = []
    with asked.out.open("w", encoding="utf-8") as out, tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "copy"
        prepare(root)
        for package in asked.packages:
            modules = sorted(
                {
                    str(file.relative_to(root))
                    for name in plan["package"][package]["modules"]
                    for file in root.glob(name)
                }
            )
            some: list[Mutant] = []
            for module in modules:
                survived = {
                    (row["before"], row["after"])
                    for row in earlier
                    if row["module"] == module and row["outcome"] == "survived"
                }
                some += (
                    named(root, module, survived)
                    if asked.again
                    else draw(root, module, asked.sample, asked.seed)
                )
            trial = Trial(Path(folder), plan["package"][package]["tests"], asked.budget)
            for mutant, noticed in trial.all(
                modules, [one for one in some if (one.module, one.before, one.after) not in same]
            ):
                rows.append(
                    {
                        "package": package,
                        "outcome": "caught" if noticed else "survived",
                        "noticed": noticed,
                        **vars(mutant),
                    }
                )
                if not noticed:
                    print(
                        f"{mutant.module}:{mutant.line}\n  - {mutant.before}\n  + {mutant.after}",
                        flush=True,
                    )
            rows += [
                {"package": package, "outcome": "same", **vars(one)}
                for one in some
                if (one.module, one.before, one.after) in same
            ]
            out.seek(0)
            out.writelines(
                json.dumps({**row, "code": None}, ensure_ascii=False) + "\n" for row in rows
            )
            out.flush()
    print(f"{'package':12} {'drawn':>6} {'same':>6} {'caught':>7} {'survived':>9} {'share':>7}")
    for package in asked.packages:
        count = Counter(row["outcome"] for row in rows if row["package"] == package)
        share = count["caught"] / max(count["caught"] + count["survived"], 1)
        print(
            f"{package:12} {count.total():6} {count['same']:6} {count['caught']:7} "
            f"{count['survived']:9} {share:7.1%}"
        )


if __name__ == "__main__":
    main()
