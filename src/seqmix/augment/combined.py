"""Several augmenters as one: each makes its share of what is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqmix.data.augmented import Augmentation, Augmented
from seqmix.data.sentence import Sentence
from seqmix.protocols import Augmenter


@dataclass(frozen=True)
class Together:
    """The first makes what its share leaves over, and whatever the others could not; no sentence comes twice."""

    parts: Sequence[Augmenter]

    def augment(
        self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
    ) -> Augmentation:
        """Up to n new sentences; fewer only with the reasons of all parts."""
        found: dict[tuple[str, ...], Augmented] = {}
        rejected: list[Augmented] = []
        reasons: list[str] = []
        counts: Counter[str] = Counter()
        share = n // len(self.parts)
        for part, own in zip(reversed(self.parts), rng.spawn(len(self.parts)), strict=True):
            wanted = n - len(found) if part is self.parts[0] else share
            made = part.augment(sentences, wanted, own)
            for one in made:
                found.setdefault(
                    one.sentence.tokens,
                    replace(
                        one,
                        sentence=replace(
                            one.sentence, id=f"{one.lineage.method}/{one.sentence.id}"
                        ),
                    ),
                )
            rejected += made.rejected
            counts.update(made.counts)
            reasons += [made.reason] if made.reason is not None else []
        outputs = tuple(found.values())
        why = "; ".join(reasons) or "the parts made some sentences twice"
        return Augmentation(
            outputs, n, None if len(outputs) >= n else why, tuple(rejected), dict(counts)
        )
