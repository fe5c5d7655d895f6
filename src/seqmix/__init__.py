"""Active sequence labeling with augmentation that is measured, not assumed.

    import numpy as np
    import seqmix
    tagger = seqmix.Tagger().fit(seqmix.sample("gazette:train"), np.random.default_rng(0))

Names are imported when first used: reading data needs no torch. Where torch is not loaded yet, its
threads will sleep while they wait for each other (`OMP_WAIT_POLICY`, unless something is set):
on shared cores, spinning takes several times the CPU time.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # so that editors and type checkers see what is imported when first used
    from seqmix.app.few_labels import train_few_labels
    from seqmix.augment.discriminator import Perplexity
    from seqmix.augment.replacement import Replacement
    from seqmix.augment.score_range import ScoreRange
    from seqmix.augment.seqmix import SeqMix
    from seqmix.data.formats import read, write
    from seqmix.data.samples import sample
    from seqmix.data.scheme import spans
    from seqmix.data.scoring import score
    from seqmix.data.sentence import Sentence, Span
    from seqmix.data.tagset import TagSet
    from seqmix.errors import SeqMixError
    from seqmix.loop.learner import ActiveLearner
    from seqmix.loop.pool import Pool
    from seqmix.query.policies import POLICIES
    from seqmix.query.spec import PolicySpec
    from seqmix.tagger import Settings, Tagger

__version__ = "0.1.0"

# OpenMP reads this once, when torch loads it, so it must be set before any of its users
if "torch" not in sys.modules and os.environ.keys().isdisjoint(
    ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
):
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

_PUBLIC = {
    "Sentence": "seqmix.data.sentence",
    "Span": "seqmix.data.sentence",
    "TagSet": "seqmix.data.tagset",
    "read": "seqmix.data.formats",
    "write": "seqmix.data.formats",
    "sample": "seqmix.data.samples",
    "score": "seqmix.data.scoring",
    "spans": "seqmix.data.scheme",
    "Tagger": "seqmix.tagger",
    "Settings": "seqmix.tagger",
    "SeqMix": "seqmix.augment.seqmix",
    "Replacement": "seqmix.augment.replacement",
    "Perplexity": "seqmix.augment.discriminator",
    "ScoreRange": "seqmix.augment.score_range",
    "ActiveLearner": "seqmix.loop.learner",
    "PolicySpec": "seqmix.query.spec",
    "POLICIES": "seqmix.query.policies",
    "Pool": "seqmix.loop.pool",
    "SeqMixError": "seqmix.errors",
    "train_few_labels": "seqmix.app.few_labels",
}
__all__ = [
    "POLICIES",
    "ActiveLearner",
    "Perplexity",
    "PolicySpec",
    "Pool",
    "Replacement",
    "ScoreRange",
    "Sentence",
    "SeqMix",
    "SeqMixError",
    "Settings",
    "Span",
    "TagSet",
    "Tagger",
    "__version__",
    "read",
    "sample",
    "score",
    "spans",
    "train_few_labels",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'seqmix' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
