"""Follow the tutorials: run what their blocks say, in order, and compare what the blocks show.

    python scripts/walk_tutorials.py names             # as the page says, which takes minutes
    python scripts/walk_tutorials.py names --quick     # with few steps: what the tests run
    python scripts/walk_tutorials.py names --update    # as the page says; updates what it shows

`console`, `python` and `toml` blocks are run or written; the `text` block after one has lines of
its output. Numbers may differ from run to run, words may not. Where the page asks for a person,
this script is one: it opens the link that `annotate` prints and answers as the sample corpus is
labeled.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import seqmix

TUTORIALS = Path(__file__).parents[1] / "docs" / "tutorials"
BLOCK = re.compile(r"```(console|python|toml|text)\n(.*?)```", flags=re.S)
LESS = {  # what --quick adds to a command
    "train": "--steps 2 --limit 24",
    "simulate": "--set loop.rounds=2 --set loop.seed_size=8 --set query.size=4 "
    "--set training.epochs=1 --set loop.slice=24",
}
ANSWERS = {"full": 60, "quick": 30}
NUMBER = re.compile(r"\d+([.,:]\d+)*")


def masked(line: str) -> str:
    """A line without its numbers and the width of its columns."""
    return " ".join(NUMBER.sub("#", line).split())


def lines_seen(shown: str, output: str) -> list[str]:
    """The lines of an output that a page shows, in order; one that is missing is an error."""
    rest, seen = iter(output.splitlines()), []
    for line in shown.splitlines():
        same = next((each for each in rest if masked(each) == masked(line)), None)
        if same is None:
            raise SystemExit(f"the page shows {line!r}, but the output is\n{output}")
        seen.append(same.rstrip())
    return seen


def finish(words: list[str], folder: Path, person: Person | None = None) -> str:
    """Run a command to its end, and return what it printed."""
    log = folder / ".output"
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        if person is not None:
            try:
                person.label(_link(log, process))
            finally:
                process.send_signal(signal.SIGINT)
        code = process.wait()
    output = log.read_text(encoding="utf-8")
    if code:
        raise SystemExit(f"{shlex.join(words)} ended with {code}:\n{output}")
    return output


def _link(log: Path, process: subprocess.Popen[bytes]) -> str:
    """The link that annotate prints once it serves."""
    while process.poll() is None:
        if link := re.search(r"http://\S+", log.read_text(encoding="utf-8")):
            return link[0]
        time.sleep(0.1)
    raise SystemExit(f"annotate ended before it printed its link:\n{log.read_text('utf-8')}")


class Person:
    """Someone who knows the sample corpus by heart and answers in the browser's place."""

    def __init__(self, answers: int) -> None:
        self.answers = answers
        known = (
            sentence for split in ("train", "dev") for sentence in seqmix.sample(f"gazette:{split}")
        )
        self.gold = {"".join(sentence.tokens): sentence for sentence in known}

    def label(self, link: str) -> None:
        """Answer so many sentences."""
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(link, timeout=60).close()
        site = "/".join(link.split("/")[:3])

        def ask(path: str, body: Any = None) -> Any:
            data = None if body is None else json.dumps(body).encode()
            headers = {"Content-Type": "application/json", "Origin": site}
            request = urllib.request.Request(site + path, data, headers)
            return json.load(browser.open(request, timeout=60))

        for _ in range(self.answers):
            shown = ask("/api/next")["sentence"]
            body = {
                "id": shown["id"],
                "version": shown["version"],
                "spans": self.marks(shown["tokens"]),
            }
            ask("/api/annotations", body)

    def marks(self, tokens: list[str]) -> list[dict[str, Any]]:
        """The marks of a sentence, by the characters that it shares with the corpus."""
        gold, ends = self.gold["".join(tokens)], [0]
        for token in tokens:
            ends.append(ends[-1] + len(token))
        before = [len("".join(gold.tokens[:at])) for at in range(len(gold.tokens) + 1)]
        return [
            {
                "start": ends.index(before[span.start]),
                "end": ends.index(before[span.end]),
                "tag": span.type,
            }
            for span in seqmix.spans(gold.tags)
        ]


def follow(page: str, folder: Path, quick: bool, update: bool = False) -> str:
    """Do what a page says, in a folder, and return the page with what was seen.

    With `update`, a block whose words differ gets all of the output.
    """
    output, block = "", ""

    def step(match: re.Match[str]) -> str:
        nonlocal output, block
        kind, body = match.groups()
        if kind == "text":
            if quick and block == "python":  # what a tagger of two steps predicts is not shown
                return match[0]
            try:
                lines = lines_seen(body, output)
            except SystemExit:
                if not update:
                    raise
                lines = output.splitlines()
            return "\n".join(["```text", *lines, "```"])
        block = kind
        if kind == "toml":
            name = body.split("\n")[0].removeprefix("# ")
            (folder / name).write_text(body, encoding="utf-8")
        elif kind == "python":
            output = finish([sys.executable, "-c", body], folder)
        else:
            commands = [shlex.split(line, comments=True) for line in body.splitlines()]
            output = "".join(run(words, folder, quick) for words in commands if words)
        return match[0]

    return BLOCK.sub(step, page)


def run(words: list[str], folder: Path, quick: bool) -> str:
    """Run a command of a page."""
    if words[0] != "seqmix":
        raise SystemExit(f"the page says {shlex.join(words)}, which this script does not know")
    print(shlex.join(words), flush=True)
    more = LESS.get(words[1], "").split() if quick else []
    person = None
    if words[1] == "annotate":
        more = ["--port", "0", "--no-browser"]
        person = Person(ANSWERS["quick" if quick else "full"])
    return finish([sys.executable, "-m", "seqmix", *words[1:], *more], folder, person)


def main() -> None:
    """Follow the tutorials that are named, or all."""
    names = sorted(path.stem for path in TUTORIALS.glob("*.md"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="with few steps and answers")
    parser.add_argument("--update", action="store_true", help="write what was seen into the page")
    given = parser.parse_args()
    for name in given.names or names:
        path = TUTORIALS / f"{name}.md"
        with tempfile.TemporaryDirectory(prefix="seqmix-tutorial-") as folder:
            page = follow(path.read_text(encoding="utf-8"), Path(folder), given.quick, given.update)
        if given.update:
            path.write_text(page, encoding="utf-8")
        print(f"{name}: followed to the end")


if __name__ == "__main__":
    main()
