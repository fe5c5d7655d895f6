"""The process that trains for `seqmix annotate`: the trainer of `serve` with concrete parts.

python -m seqmix.app.trainer_process PROJECT PARENT_PID
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import numpy as np

from seqmix.app.console import say
from seqmix.app.project_config import project_config
from seqmix.app.sections import Tagging, Training
from seqmix.app.stages.names import Stages, Watch
from seqmix.app.suggesting import build_suggest, guesses
from seqmix.app.taggers import load_tagger
from seqmix.data.tagset import TagSet
from seqmix.errors import SeqMixError
from seqmix.protocols import Tagger as AnyTagger
from seqmix.protocols import Trainable
from seqmix.serve.project import Project, open_project
from seqmix.serve.trainer.lessons import TEACHERS
from seqmix.serve.trainer.parts import Parts
from seqmix.serve.trainer.process import work
from seqmix.tagger.training.plain import enough_steps

_QUICK = 6  # optimizer steps per epoch of the first model, which must come soon


def build_parts(
    project: Project, watch: Watch = lambda stage: lambda done, total, loss: None
) -> Parts:
    """Return what the trainer of a project works with; `watch` hears how far a training is."""
    import torch

    from seqmix.app.plan import build_learner
    from seqmix.app.stages.reading import AdaptedEncoder
    from seqmix.app.stages.teaching import fit_of, teach
    from seqmix.loop.selftraining import student_of
    from seqmix.query.policies import FIRST, combined

    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS") or 1))  # set by the server
    config = project_config(project.folder, project.settings)
    tag_set = TagSet.of_types(project.settings.tags)
    training, query, how = config.training, config.query, config.self_training
    start = None if project.start is None else load_tagger(project.start, config.tagger.device)
    same_tags = _has_tags(start, tag_set)
    reads = config.adapt.epochs and not same_tags  # or a tagger to begin with is trained further
    reading = AdaptedEncoder(project, config, watch) if reads else None

    def encoder() -> str:
        return config.tagger.encoder if reading is None else reading.encoder

    fit = fit_of(config, tag_set, encoder, Stages(0, watch).training)
    quick = None if training.steps or training.min_steps or start else _QUICK * training.epochs
    teachers = partial(teach, config, tag_set, encoder, project.models / TEACHERS, watch)
    return Parts(
        learner=partial(
            build_learner(config, tag_set, (), (), encoder)[0],
            tagger=fit,
            policy=combined(query.policy, query.diverse),  # quota and templates: as it ranks
            match_steps=False,
            warm=same_tags,
        ),
        untrained=partial(_untrained, config.tagger, tag_set),
        spread=FIRST,
        paths=guesses,
        without_entity=query.without_entity,
        apart=query.apart,
        start=start,
        quick=quick,
        steps=partial(_steps, training),
        reading=reading,
        suggest=build_suggest,
        teach=teachers if how.teachers else None,
        student=lambda lessons: student_of(fit, lessons, how),
    )


def _has_tags(start: AnyTagger | None, tag_set: TagSet) -> bool:
    """Whether a tagger to begin with can be trained further; other libraries' only suggest."""
    tags = start.tag_set.tags if isinstance(start, Trainable) and start.tag_set else ()
    return set(tags) == set(tag_set.tags)


def _untrained(settings: Tagging, tag_set: TagSet, rng: np.random.Generator) -> AnyTagger:
    from seqmix.tagger import Tagger

    return Tagger(settings.encoder, device=settings.device).start(tag_set, rng)


def _steps(training: Training, labeled: int) -> int:
    if training.steps or training.min_steps:
        return training.steps_for(labeled)
    return enough_steps(labeled, training.batch_size, training.epochs)


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
