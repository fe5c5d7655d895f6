"""What suggestions before the first label save, and what F1 the same effort then brings, simulated.

    python -m bench.cold_start --out cold [--data gazette CONLL03] [--answers 50] [--seeds 0 1 2]

A perfect annotator answers sentences drawn at random. Keys are those of the page: arrows, Shift and
an arrow for each more token, a key for a tag, `n` to the next mark or hint, `x` to clear a mark,
Enter. Every place is reached on the shorter way, by arrows or by `n` and arrows. The dictionary has
the texts that are marked in the dev split, each with its commonest tag; `types` is the starter's
type head. The same answers train the same tagger, whoever typed them; so the F1 with suggestions is
that of the answers which take as many keys as the answers without any. Rows are added to
OUT/cold_start.csv; what has a row is not done again.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from seqmix.app.config import Config
from seqmix.app.reading.data import read_splits
from seqmix.app.suggesting import build_suggest
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.data.tagset import TagSet
from seqmix.serve.sources.dictionary import Dictionary
from seqmix.serve.sources.records import TAGGER, TYPES
from seqmix.serve.store.records import Mark
from seqmix.tagger import Settings, Tagger

_COLUMNS = ("corpus", "seed", "arm", "answers", "keys", "gold", "offered", "kept", "f1")
_FIELDS = range(3, 9)
Suggest = Callable[[Sequence[Sentence]], Iterable[Iterable[Mark]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", nargs="+", default=["gazette"])
    parser.add_argument("--answers", type=int, default=50)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--tagger", help="one more source, such as spacy:NAME:PERSON=PER,GPE=LOC")
    parser.add_argument("--steps", type=int, default=300, help="of training; 0: count keys only")
    parser.add_argument("--test", type=int, default=500, help="test sentences, the first ones")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    table = Table(options.out / "cold_start.csv")
    for data in options.data:
        walk(data, options, table)
    table.show()


def walk(data: str, options: argparse.Namespace, table: Table) -> None:
    """Answer with each set of sources, and train where F1 is asked for."""
    corpus, splits = Path(data).name, read_splits(data, Config())
    train = [sentence for sentence in splits["train"] if len(sentence)]
    test = [sentence for sentence in splits["test"] if len(sentence)][: options.test]
    sources: dict[str, Suggest] = {
        "dictionary": of_dictionary(splits["dev"]),
        "types": build_suggest(TYPES, {}),
    }
    if options.tagger:
        sources["tagger"] = build_suggest(TAGGER, {"tagger": options.tagger})
    arms = {"none": (), **{name: (name,) for name in sources}, "all": tuple(sources)}
    for seed in options.seeds:
        order = np.random.default_rng(seed).permutation(len(train))[: 10 * options.answers]
        asked = [train[i] for i in order]
        suggested = {name: list(map(tuple, suggest(asked))) for name, suggest in sources.items()}
        budget = None
        for arm, names in arms.items():
            efforts = [
                Effort.of(gold, merged([suggested[name][at] for name in names]))
                for at, gold in enumerate(asked)
            ]
            first = sum_of(efforts[: options.answers])
            budget = budget or first.keys
            table.add(corpus, seed, arm, options.answers, *first, lambda: "")
            if options.steps and arm in ("none", "all"):
                n = affordable(efforts, budget)
                labeled = asked[:n]
                fitted = lambda: trained(labeled, test, options.steps, seed)  # noqa: B023, E731
                table.add(corpus, seed, f"{arm}, trained", n, *sum_of(efforts[:n]), fitted)


def of_dictionary(labeled: Iterable[Sentence]) -> Suggest:
    """Return a dictionary of the texts that are marked, each with its commonest tag."""
    tags: dict[str, Counter[str]] = {}
    for sentence in labeled:
        for span in spans(sentence.tags):
            tags.setdefault(" ".join(sentence.tokens[span.start : span.end]), Counter())[
                span.type
            ] += 1
    dictionary = Dictionary((text, counts.most_common(1)[0][0]) for text, counts in tags.items())
    return lambda sentences: [dictionary.marks(sentence) for sentence in sentences]


def merged(offers: Sequence[Sequence[Mark]]) -> list[Mark]:
    """Return what the page shows of several sources: marks first come, hints where none is."""
    marks, hints = list[Mark](), list[Mark]()
    for offer in offers:
        for mark in offer:
            if not mark.tag:
                hints.append(mark)
            elif free(mark, marks):
                marks.append(mark)
    return sorted(marks + [hint for hint in hints if free(hint, marks)])


def free(mark: Mark, marks: Iterable[Mark]) -> bool:
    return all(other.end <= mark.start or mark.end <= other.start for other in marks)


class Effort(tuple[int, int, int, int]):
    """Keys pressed, spans of gold, spans that were suggested with a tag, and those kept."""

    @property
    def keys(self) -> int:
        return self[0]

    @classmethod
    def of(cls, sentence: Sentence, shown: Sequence[Mark]) -> Effort:
        """Count the keys that turn what is shown into the gold marks, from left to right."""
        gold = [Mark(span.start, span.end, span.type) for span in spans(sentence.tags)]
        marks = [mark for mark in shown if mark.tag]
        wrong = [mark for mark in marks if mark not in gold]
        jobs = [(mark, True) for mark in gold if mark not in marks]
        # a wrong mark that a new one is drawn over is gone with that
        jobs += [(mark, False) for mark in wrong if free(mark, [job for job, _ in jobs])]
        keys, cursor, stops = 1, 0, [mark.start for mark in shown]  # Enter
        for job, is_gold in sorted(jobs):
            whole = not is_gold or any(mark[:2] == job[:2] for mark in shown)
            target = range(job.start, job.end) if whole else range(job.start, job.start + 1)
            keys += steps(cursor, target, stops) + 1 + (0 if whole else job.end - job.start - 1)
            cursor = job.end - 1
        offered = len(marks)
        return cls((keys, len(gold), offered, offered - len(wrong)))


def steps(cursor: int, target: range, stops: Sequence[int]) -> int:
    """Return the fewest keys from a token to any of some: arrows, or `n` some times and arrows."""
    near = lambda at: min(abs(at - target.start), abs(at - target[-1])) * (at not in target)  # noqa: E731
    ahead = [stop for stop in stops if stop > cursor]
    return min([near(cursor), *(n + near(stop) for n, stop in enumerate(ahead, 1))])


def sum_of(efforts: Sequence[Effort]) -> Effort:
    return Effort(tuple(map(sum, zip(*efforts, strict=True))))


def affordable(efforts: Sequence[Effort], budget: int) -> int:
    """Return how many answers take at most so many keys."""
    spent = np.cumsum([effort.keys for effort in efforts])
    return int(np.searchsorted(spent, budget, side="right"))


def trained(labeled: Sequence[Sentence], test: Sequence[Sentence], steps: int, seed: int) -> float:
    """Return the test F1 of a plain tagger with a CRF, trained on these sentences."""
    tags = TagSet.of([*labeled, *test])
    tagger = Tagger(head="crf", settings=Settings(steps=steps, batch_size=8), device="cpu")
    tagger.fit(labeled, np.random.default_rng(seed), tags)
    guessed = [sentence.tags for sentence in tagger.predict(test)]
    return round(100 * score([sentence.tags for sentence in test], guessed).f1, 2)


class Table:
    """Rows in a file; those that are there are not computed again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = list(csv.reader(path.open(encoding="utf-8")))[1:] if path.exists() else []

    def add(self, *values: object) -> None:
        *known, f1 = values
        if any(row[:3] == [str(value) for value in known[:3]] for row in self.rows):
            return
        row = [str(value) for value in known] + [str(f1())]
        self.rows.append(row)
        print(*row, sep="\t", flush=True)
        with self.path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            if len(self.rows) == 1:
                writer.writerow(_COLUMNS)
            writer.writerow(row)

    def show(self) -> None:
        """Print the mean of each corpus and arm over the seeds."""
        for corpus, arm in dict.fromkeys((row[0], row[2]) for row in self.rows):
            some = [row for row in self.rows if (row[0], row[2]) == (corpus, arm)]
            means = [
                f"{statistics.mean(float(row[i]) for row in some):.1f}" if some[0][i] else ""
                for i in _FIELDS
            ]
            print(
                corpus,
                arm,
                f"n={len(some)}",
                *(f"{_COLUMNS[i]} {m}" for i, m in zip(_FIELDS, means, strict=True)),
            )


if __name__ == "__main__":
    main()
