"""Counters of the server in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
INTENDED = {("/inception/train", 501)}  # INCEpTION asks; the answer is that seqmix trains
Sample = tuple[str, dict[str, str], float]  # what follows the name, labels, value


@dataclass
class Histogram:
    """How many values are at most each bound."""

    bounds: tuple[float, ...]
    counts: Counter[int] = field(default_factory=Counter)
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def samples(self) -> Iterator[Sample]:
        """Yield the cumulative counts, the sum and the number of values."""
        seen = 0
        for at, bound in enumerate((*self.bounds, float("inf"))):
            seen += self.counts[at]
            yield "_bucket", {"le": "+Inf" if bound == float("inf") else f"{bound:g}"}, seen
        yield "_sum", {}, self.total
        yield "_count", {}, seen


@dataclass
class Metrics:
    """What happened since the server started."""

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)  # by path and status
    latency: dict[str, Histogram] = field(default_factory=dict)  # of predictions, by path
    batches: Histogram = field(default_factory=lambda: Histogram(_SENTENCES))
    busy: float = 0.0  # seconds in which the model worked

    def add_batch(self, sentences: int, seconds: float) -> None:
        """Count a batch."""
        self.batches.add(sentences)
        self.busy += seconds

    def add_latency(self, path: str, seconds: float) -> None:
        """Count a prediction."""
        self.latency.setdefault(path, Histogram(_SECONDS)).add(seconds)

    def lines(self) -> Iterator[str]:
        """Yield all counters."""
        requests = [
            ("", {"path": path, "status": str(status)}, float(n))
            for (path, status), n in sorted(self.requests.items())
        ]
        errors = sum(n for key, n in self.requests.items() if key[1] >= 500 and key not in INTENDED)
        latency = [
            (suffix, {"path": path, **labels}, value)
            for path, histogram in sorted(self.latency.items())
            for suffix, labels, value in histogram.samples()
        ]
        yield from metric("requests_total", "counter", "Requests by path and status.", requests)
        yield from single("errors_total", "counter", "Responses with status 500 or above.", errors)
        yield from metric("request_seconds", "histogram", "Time to a prediction.", latency)
        yield from metric(
            "batch_sentences", "histogram", "Sentences tagged at once.", self.batches.samples()
        )
        sentences = self.batches.total
        yield from single("sentences_total", "counter", "Sentences tagged.", sentences)
        yield from single("busy_seconds_total", "counter", "Time the model worked.", self.busy)


def single(name: str, kind: str, about: str, value: float) -> Iterator[str]:
    """Yield a metric of one number."""
    yield from metric(name, kind, about, [("", {}, float(value))])


def metric(name: str, kind: str, about: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Yield the lines of a metric."""
    yield f"# HELP seqmix_{name} {about}"
    yield f"# TYPE seqmix_{name} {kind}"
    for suffix, labels, value in samples:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        yield f"seqmix_{name}{suffix}{'{' + inside + '}' if inside else ''} {value:.15g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
