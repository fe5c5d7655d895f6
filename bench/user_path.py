r"""Test F1 of a project's own model beside the recipe few-labels, along the path of a user.

    python -m bench.user_path --out paths [--data gazette CONLL03] [--answers 50 100 200] \
        [--seeds 0] [--before CHECKOUT]

`seqmix init` makes a project of the training text, a person gives gold answers to the real
`seqmix annotate` over HTTP, and waits at each of these numbers of answers until the trainer rests.
The tagger of the project is then scored by `seqmix evaluate`, and so is one that
`train_few_labels`, the first round of `simulate --preset few-labels`, trains on the answers that
the project learned from. With --before, the same is done with the commands of another checkout,
whose recipe is not run. Rows are added to OUT/user_path.csv; what has a row is not done again, and
projects stay in OUT, so that an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bench.annotating import Annotator, annotating, create, model, seqmix

from seqmix.app.config import Config
from seqmix.app.few_labels import few_labels_config, train_few_labels
from seqmix.app.reading.data import read_splits
from seqmix.data import formats
from seqmix.data.sentence import Sentence
from seqmix.serve.project import open_project
from seqmix.serve.store.sentences import read_audit_sentences, read_labeled, read_sentences

_COLUMNS = ("corpus", "seed", "answers", "arm", "labeled", "generation", "stage", "f1", "seconds")
_RESTS = 20.0  # seconds without work after which a trainer has done all there is to do


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", nargs="+", default=["gazette"])
    parser.add_argument("--answers", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--before", type=Path, help="another checkout, for its own defaults")
    given = parser.parse_args()
    table = Table(given.out / "user_path.csv")
    arms = {"project": None, **({"before": given.before} if given.before else {})}
    for data in given.data:
        for seed in given.seeds:
            for arm, source in arms.items():
                walk(data, seed, sorted(given.answers), arm, source, given.out, table)
    table.show()


def walk(
    data: str,
    seed: int,
    stops: Sequence[int],
    arm: str,
    source: Path | None,
    out: Path,
    table: Table,
) -> None:
    """Answer until each stop, and score what there is then."""
    corpus, splits = Path(data).name, read_splits(data, Config())
    gold = {sentence.tokens: sentence for sentence in splits["train"]}
    folder = (out / f"{corpus}-{seed}-{arm}" / "project").absolute()
    test = folder.with_name("test.conll")
    if not (folder / "project.toml").exists():
        create(folder, splits["train"], "--set", f"seed={seed}", source=source)
        formats.write(splits["test"], test)
    for stop in stops:
        key = (corpus, seed, stop)
        if not table.has(*key, arm):
            start = time.monotonic()
            with annotating(folder, source) as person:
                while (left := stop - person.status()["answers"]["labeled"]) > 0:
                    for _ in range(min(left, 10)):
                        person.answer(gold)
                state = model(settled(person))
            seconds = time.monotonic() - start
            copy = folder.with_name(f"after-{stop}")
            f1 = evaluated(newest(folder), test, source)
            answered = answers_of(folder) if source is None else []
            formats.write(answered, copy.with_suffix(".conll")) if answered else None
            shown = (state["trained_on"], state["generation"], state.get("stage"))
            table.add(*key, arm, *shown, f1, seconds)
        if source is None and not table.has(*key, "recipe"):
            start = time.monotonic()
            labeled = list(formats.read(folder.with_name(f"after-{stop}.conll")))
            tagger = train_few_labels(labeled, text_of(folder), few_labels_config(seed=seed))
            place = folder.with_name(f"recipe-{stop}")
            tagger.save(place)
            f1 = evaluated(place, test, None)
            seconds = time.monotonic() - start
            table.add(*key, "recipe", len(labeled), None, None, f1, seconds)


def settled(person: Annotator) -> dict[str, object]:
    """Return the status once the trainer has rested for a while."""
    since = None
    while True:
        status = person.status()
        state = model(status)
        rests = (
            state.get("phase") == "waiting"
            and state.get("trained_on")
            and status["next_training_in"] > 0
        )
        since = (since or time.monotonic()) if rests else None
        if since is not None and time.monotonic() - since > _RESTS:
            return status
        time.sleep(1)


def newest(folder: Path) -> Path:
    """Return the folder of a project's newest tagger."""
    return folder / "models" / (folder / "models" / "latest").read_text().strip()


def answers_of(folder: Path) -> list[Sentence]:
    """Return the sentences that the project learns from."""
    with open_project(folder) as project:
        return list(read_labeled(project.store, "seed", "active"))


def text_of(folder: Path) -> list[Sentence]:
    """Return the text of a project, but for what measures its taggers."""
    with open_project(folder) as project:
        audit = {sentence.id for sentence in read_audit_sentences(project.store)}
        return [s for s in read_sentences(project.store) if s.id not in audit]


def evaluated(tagger: Path, test: Path, source: Path | None) -> float:
    """Return the F1 that `seqmix evaluate` gives, in percent."""
    scored = seqmix("evaluate", str(tagger), str(test), "--json", source=source)
    return 100 * float(json.loads(scored)["f1"])


class Table:
    """The rows of a CSV file, each written as soon as it is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[dict[str, str]] = []
        if path.exists():
            with path.open(newline="") as file:
                self.rows = list(csv.DictReader(file))
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(",".join(_COLUMNS) + "\n")

    def has(self, corpus: str, seed: int, answers: int, arm: str) -> bool:
        """Whether there is a row of this arm."""
        key = (corpus, str(seed), str(answers), arm)
        return any(tuple(row[name] for name in _COLUMNS[:4]) == key for row in self.rows)

    def add(self, *values: object) -> None:
        """Write a row."""
        shown = [
            "" if v is None else f"{v:.2f}" if isinstance(v, float) else str(v) for v in values
        ]
        with self.path.open("a", newline="") as file:
            csv.writer(file).writerow(shown)
        self.rows.append(dict(zip(_COLUMNS, shown, strict=True)))
        print(" ".join(f"{name}={value}" for name, value in self.rows[-1].items()), flush=True)

    def show(self) -> None:
        """Print the mean F1 over seeds, by corpus, answers and arm."""
        groups: dict[tuple[str, ...], list[float]] = {}
        for row in self.rows:
            groups.setdefault((row["corpus"], row["answers"], row["arm"]), []).append(
                float(row["f1"])
            )
        for (corpus, answers, arm), values in groups.items():
            print(f"{corpus} {answers} {arm}: {np.mean(values):.1f} ({len(values)} seeds)")


if __name__ == "__main__":
    main()
