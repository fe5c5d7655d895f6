"""Several augmenters as one, each of which generates its share."""

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
    """Augmenters that share the work; the first also makes up for what the others lack."""

    parts: Sequence[Augmenter]

    def augment(
        self, sentences: Sequence[Sentence], n: int, rng: np.random.Generator
    ) -> Augmentation:
        """Generate up to n sentences, none twice; fewer only with the reasons of all parts."""
        outputs: dict[tuple[str, ...], Augmented] = {}
        rejected: list[Augmented] = []
        reasons: list[str] = []
        counts: Counter[str] = Counter()
        for part, generator in zip(reversed(self.parts), rng.spawn(len(self.parts)), strict=True):
            share = n - len(outputs) if part is self.parts[0] else n // len(self.parts)
            augmentation = part.augment(sentences, share, generator)
            for output in augmentation:
                id = f"{output.lineage.method}/{output.sentence.id}"
                renamed = replace(output, sentence=replace(output.sentence, id=id))
                outputs.setdefault(output.sentence.tokens, renamed)
            rejected += augmentation.rejected
            counts.update(augmentation.counts)
            reasons += [augmentation.reason] if augmentation.reason is not None else []
        why = "; ".join(reasons) or "the parts generated some sentences twice"
        reason = None if len(outputs) >= n else why
        return Augmentation(tuple(outputs.values()), n, reason, tuple(rejected), dict(counts))
