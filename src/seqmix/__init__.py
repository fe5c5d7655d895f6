"""Active sequence labeling with augmentation that is measured, not assumed.

    import seqmix
    tagger = seqmix.Tagger().fit(seqmix.sample("gazette:train"))
    tagger("Lena Okafor left Acme for the University of Oslo.")

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
    from seqmix.api.loading import load
    from seqmix.api.project import Project, ProjectStatus
    from seqmix.api.tables import read, to_dataset, to_pandas
    from seqmix.api.tagger import Tagger
    from seqmix.augment.discriminator import Perplexity
    from seqmix.augment.replacement import Replacement
    from seqmix.augment.score_range import ScoreRange
    from seqmix.augment.seqmix import SeqMix
    from seqmix.data.formats import write
    from seqmix.data.samples import sample
    from seqmix.data.scoring import score
    from seqmix.data.sentence import Sentence
    from seqmix.data.spans import Entity, Span, spans
    from seqmix.data.tagset import TagSet
    from seqmix.data.text import tokenize
    from seqmix.errors import SeqMixError
    from seqmix.loop.learner import ActiveLearner
    from seqmix.loop.pool import Pool
    from seqmix.loop.round_record import RoundRecord
    from seqmix.onnx_runtime.tagger import OnnxTagger
    from seqmix.query.policies import POLICIES
    from seqmix.query.spec import PolicySpec
    from seqmix.tagger import Settings

__version__ = "0.1.0"

# OpenMP reads this once, when torch loads it, so it must be set before any of its users
if "torch" not in sys.modules and os.environ.keys().isdisjoint(
    ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
):
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

_PUBLIC = {
    "Sentence": "seqmix.data.sentence",
    "Span": "seqmix.data.spans",
    "Entity": "seqmix.data.spans",
    "TagSet": "seqmix.data.tagset",
    "read": "seqmix.api.tables",
    "to_dataset": "seqmix.api.tables",
    "to_pandas": "seqmix.api.tables",
    "write": "seqmix.data.formats",
    "sample": "seqmix.data.samples",
    "score": "seqmix.data.scoring",
    "spans": "seqmix.data.spans",
    "tokenize": "seqmix.data.text",
    "Tagger": "seqmix.api.tagger",
    "load": "seqmix.api.loading",
    "Project": "seqmix.api.project",
    "ProjectStatus": "seqmix.api.project",
    "Settings": "seqmix.tagger",
    "OnnxTagger": "seqmix.onnx_runtime.tagger",
    "SeqMix": "seqmix.augment.seqmix",
    "Replacement": "seqmix.augment.replacement",
    "Perplexity": "seqmix.augment.discriminator",
    "ScoreRange": "seqmix.augment.score_range",
    "ActiveLearner": "seqmix.loop.learner",
    "PolicySpec": "seqmix.query.spec",
    "POLICIES": "seqmix.query.policies",
    "Pool": "seqmix.loop.pool",
    "SeqMixError": "seqmix.errors",
    "RoundRecord": "seqmix.loop.round_record",
}
_HERE_IT_IS = {  # what other libraries call it
    "pipeline": "seqmix.load(folder)",
    "from_dataset": "seqmix.read(dataset)",
    "from_pandas": "seqmix.read(table)",
    "train_few_labels": "seqmix.Tagger().fit(labeled, unlabeled=text)",
}
__all__ = [
    "POLICIES",
    "ActiveLearner",
    "Entity",
    "OnnxTagger",
    "Perplexity",
    "PolicySpec",
    "Pool",
    "Project",
    "ProjectStatus",
    "Replacement",
    "RoundRecord",
    "ScoreRange",
    "Sentence",
    "SeqMix",
    "SeqMixError",
    "Settings",
    "Span",
    "TagSet",
    "Tagger",
    "__version__",
    "load",
    "read",
    "sample",
    "score",
    "spans",
    "to_dataset",
    "to_pandas",
    "tokenize",
    "write",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    hint = f"; type {_HERE_IT_IS[name]}" if name in _HERE_IT_IS else ""
    raise AttributeError(f"module 'seqmix' has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted(__all__)
