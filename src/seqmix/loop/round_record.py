"""What one finished round cost and gave: a line of rounds.jsonl."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from seqmix.loop.stopping import Forecast
from seqmix.query.answer_time import minutes
from seqmix.query.part import Window

FORMAT_VERSION = 1
SPLITS = ("dev", "test")
_WHOLE = ("round", "seed", "labeled", "tokens", "spans", "generated")
_KEYS = (
    *("format_version", *_WHOLE, "steps", "chosen", "scores", "parts", "augmentation"),
    *("pieces", "agreement", "guard", *SPLITS, "forecast", "stop"),
)


@dataclass(frozen=True)
class RoundRecord:
    """One finished round; `names` holds the arm, policy, variant and config it belongs to."""

    number: int
    seed: int
    names: Mapping[str, Any]
    labeled: int
    tokens: int
    spans: int
    generated: int  # so far
    steps: int | None
    chosen: Sequence[str]
    scores: Sequence[float | None]  # of the chosen ids
    augmentation: Mapping[str, Any]
    agreement: float | None
    guard: Mapping[str, Any] | None
    results: Mapping[str, Mapping[str, Any]]  # by split
    forecast: Forecast | None = None
    stop: str | None = None
    parts: Sequence[Window] | None = None  # of the chosen ids, where not all of them was asked for
    pieces: int | None = None  # that the trainings of this round read; None: not counted

    def f1(self, split: str) -> float:
        """Return F1 on a split."""
        return float(self.results[split]["f1"])

    @property
    def minutes(self) -> float:
        """The minutes that a person needs to label what is labeled, by the published time model."""
        return minutes(self.labeled, self.tokens, self.spans)

    @property
    def figures(self) -> str:
        """The F1 of each split: "dev F1 81.20, test F1 80.11"."""
        return ", ".join(
            f"{split} F1 {100 * self.f1(split):.2f}" for split in SPLITS if split in self.results
        )

    @property
    def acceptance(self) -> float | None:
        """The share of scored sentences inside the score range; None when none was scored."""
        counts = self.augmentation.get("counts") or {}
        scored = counts.get("scored", 0)
        return 1 - counts.get("out of range", 0) / scored if scored else None

    def to_json(self) -> dict[str, Any]:
        """Return the line as a JSON object; the order of the keys is part of the format."""
        return {
            "format_version": FORMAT_VERSION, "round": self.number, "seed": self.seed, **self.names,
            "labeled": self.labeled, "tokens": self.tokens, "spans": self.spans,
            "generated": self.generated, "steps": self.steps,
            **({} if self.pieces is None else {"pieces": self.pieces}), "chosen": self.chosen,
            "scores": self.scores, **({} if self.parts is None else {"parts": self.parts}),
            "augmentation": self.augmentation, "agreement": self.agreement,
            "guard": self.guard, **self.results,
            "forecast": None if self.forecast is None else asdict(self.forecast), "stop": self.stop,
        }  # fmt: skip

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> RoundRecord:
        """Return the round of a line; a ValueError names the first key that is damaged."""
        wrong = _wrong(line)
        if wrong is not None:
            raise ValueError(wrong)
        forecast = line["forecast"]
        return cls(
            number=line["round"],
            **{key: line[key] for key in _WHOLE if key != "round"},
            names={key: value for key, value in line.items() if key not in _KEYS},
            steps=line.get("steps"),
            chosen=line["chosen"],
            scores=line.get("scores", []),
            augmentation=line["augmentation"],
            agreement=line.get("agreement"),
            guard=line.get("guard"),
            results={split: line[split] for split in SPLITS if line.get(split)},
            forecast=forecast and Forecast(*(forecast[key] for key in ("gain", "low", "high"))),
            stop=line.get("stop"),
            pieces=line.get("pieces"),
            parts=line.get("parts") and [(start, end) for start, end in line["parts"]],
        )


def sum_known(*counts: int | None) -> int | None:
    """Return the sum of counts; None if one of them is unknown."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _wrong(line: Mapping[str, Any]) -> str | None:
    """Return the first key of a round that is damaged."""
    chosen, augmentation = line.get("chosen"), line.get("augmentation")
    good = {
        **{key: type(line.get(key)) is int for key in _WHOLE},
        "arm": isinstance(line.get("arm", ""), str),
        "chosen": isinstance(chosen, list) and all(isinstance(id, str) for id in chosen),
        "augmentation": isinstance(augmentation, dict)
        and type(augmentation.get("asked")) is int
        and has_numbers(augmentation.get("counts") or {}),
        "stop": isinstance(line.get("stop", 0), str | None),
        "parts": isinstance(chosen, list) and are_windows(line.get("parts"), len(chosen)),
        "pieces": line.get("pieces") is None or type(line["pieces"]) is int,
        "agreement": isinstance(line.get("agreement", ""), int | float | None),
        "forecast": "forecast" in line
        and (line["forecast"] is None or has_numbers(line["forecast"], "gain", "low", "high")),
        **{
            split: line.get(split) is None or has_numbers(line[split], "f1", others=False)
            for split in SPLITS
        },
    }
    return next((key for key, fine in good.items() if not fine), None)


def has_numbers(value: Any, *keys: str, others: bool = True) -> bool:
    """Whether a value is an object with numbers under these keys, and under all others too."""
    if not isinstance(value, dict) or not all(key in value for key in keys):
        return False
    return all(isinstance(value[key], int | float) for key in (value if others else keys))


def are_windows(value: Any, n: int) -> bool:
    """Whether a value is a start and an end for each of n sentences, or None."""
    if value is None:
        return True
    if not isinstance(value, list) or len(value) != n:
        return False
    return all(
        isinstance(pair, list)
        and [type(at) for at in pair] == [int, int]
        and 0 <= pair[0] < pair[1]
        for pair in value
    )
