"""The process that trains for `seqmix annotate`: the trainer of `serve` with concrete parts.

python -m seqmix.app.trainer_process PROJECT PARENT_PID
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.app.console import say
from seqmix.app.project_config import project_config
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import OUTSIDE, TagSet
from seqmix.errors import SeqMixError
from seqmix.protocols import Tagger as AnyTagger
from seqmix.serve.project import START, Project, open_project
from seqmix.serve.trainer.process import work
from seqmix.serve.trainer.suggestions import Guess
from seqmix.serve.trainer.trainer import Parts

# Least optimizer steps per epoch: of the first model, which must come soon, and of later ones with
# few sentences and with many, generated ones included. Ten epochs are 60, 300 and 600 steps, behind
# which are the figures of docs/defaults.md.
_QUICK, _FEW, _MANY, _MANY_SENTENCES = 6, 30, 60, 400


def build_parts(project: Project) -> Parts:
    """Return what the trainer of a project works with."""
    import torch

    from seqmix.app.plan import build_learner
    from seqmix.query.policies import FIRST, combined
    from seqmix.tagger import Tagger

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))  # set by the server
    config = project_config(project.folder, project.settings)
    tag_set = TagSet.ordered(
        [OUTSIDE, *(prefix + tag for tag in project.settings.tags for prefix in ("B-", "I-"))]
    )
    training, query = config.training, config.query
    learner, _ = build_learner(config, tag_set, ())
    policy = combined(query.policy, query.diverse)  # the trainer keeps the quota in its ranking

    start = None
    if (folder := project.models / START).is_dir():
        start = Tagger.load(folder, config.tagger.device)
    same_tags = start is not None and set(start.tag_set.tags if start.tag_set else ()) == set(
        tag_set.tags
    )

    def steps(count: int) -> int:
        per_epoch = _MANY if count >= _MANY_SENTENCES else _FEW
        least = training.min_steps or per_epoch * training.epochs
        return training.steps or max(least, training.total_steps(count))

    def untrained(rng: np.random.Generator) -> AnyTagger:
        return Tagger(config.tagger.encoder, device=config.tagger.device).start(tag_set, rng)

    return Parts(
        learner=partial(learner, policy=policy, steps=steps, match_steps=False, warm=same_tags),
        untrained=untrained,
        spread=FIRST,
        paths=guesses,
        without_entity=query.without_entity,
        start=start,
        quick=None
        if training.steps or training.min_steps or start is not None
        else _QUICK * training.epochs,
    )


def guesses(tagger: Any, sentences: Sequence[Sentence]) -> Iterator[Guess]:
    """Yield what a tagger suggests for each sentence."""
    for best in tagger.best_paths(sentences, by_token=True):
        yield Guess(best[0].tags, best[0].probability, best[0].by_token)


def main(folder: str, parent: str) -> int:
    """Train for a project until the process `parent` is gone."""
    try:
        while True:  # once for every set of tags
            with open_project(Path(folder)) as project:
                work(project, partial(build_parts, project), int(parent))
    except SeqMixError as error:
        say(f"error: {error}")
        return 2


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
