"""What every section of the report draws from."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from seqmix.data.augmented import Augmented
from seqmix.data.sentence import Sentence
from seqmix.report import drawing
from seqmix.report.curves import Run, aligned, baseline, by_arm, load_generated


@dataclass
class Comparison:
    """Runs that are compared on a split, and the figures drawn so far as PNG by name."""

    runs: list[Run]
    split: str
    sentences: Mapping[str, Sentence]  # parents of generated sentences, by id
    pictures: dict[str, bytes] = field(default_factory=dict)

    @cached_property
    def arms(self) -> dict[str, list[Run]]:
        """The runs of each arm."""
        return by_arm(self.runs)

    @cached_property
    def aligned(self) -> dict[str, list[Run]]:
        """The runs of each arm, cut to the numbers of labeled sentences that all runs reached."""
        return by_arm(aligned(self.runs))

    @cached_property
    def baseline(self) -> str:
        """The arm that the others are compared with."""
        return baseline(self.arms)

    @cached_property
    def generated(self) -> dict[str, list[tuple[int, Augmented]]]:
        """The generated sentences of each arm, each with its round."""
        return {
            arm: [pair for run in runs for pair in load_generated(run)]
            for arm, runs in self.arms.items()
        }

    @cached_property
    def colors(self) -> dict[str, str]:
        """The color of each arm, the same in every figure."""
        return drawing.arm_colors(list(self.arms), self.baseline)

    @property
    def last(self) -> int:
        """The number of labeled sentences at which the arms are compared."""
        return self.aligned[self.baseline][0].rounds[-1].labeled

    def label(self, arm: str) -> str:
        """Return the name of an arm as HTML, with its color."""
        dot = f'<span class=dot style="background:{self.colors[arm]}"></span>'
        return f"{dot}{html.escape(arm)}"

    def draw(self, name: str, figure: drawing.Figure, caption: str, large: bool = False) -> str:
        """Return a figure as HTML and keep its PNG."""
        self.pictures[name] = drawing.png(figure)
        size = " data-large" if large else ""
        text = f"<figcaption>{html.escape(caption)}</figcaption>"
        return f"<figure class=wide{size}>{drawing.svg(figure, name, caption)}{text}</figure>"
