"""From a config and a data folder to a plan the loop can run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from seqmix.app.build import build_augmenter, build_table
from seqmix.app.config import Config
from seqmix.app.provenance import folder_digest
from seqmix.augment.discriminator import Perplexity
from seqmix.augment.seqmix import characters
from seqmix.augment.settings import AugmentSettings
from seqmix.data.files import locked
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError
from seqmix.loop.guard import Guard
from seqmix.loop.learner import ActiveLearner, Fit
from seqmix.loop.mixed_lessons import mixed_lessons
from seqmix.loop.pool import labels_of
from seqmix.loop.run import Plan
from seqmix.loop.seeds import generator, table_generator
from seqmix.loop.selftraining import MoreLessons, self_trained
from seqmix.loop.stopping import Stopping
from seqmix.protocols import Augmenter
from seqmix.protocols import Tagger as AnyTagger
from seqmix.query.part import SentencePart
from seqmix.query.policies import combined
from seqmix.settings import at
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.adaptation.adapt import pieces_read
from seqmix.tagger.ensemble.averaged import AveragedTagger, load_trained
from seqmix.tagger.training.loop import Progress


@dataclass
class PiecesRead:
    """How many word pieces the trainings of taggers have read so far."""

    total: int = 0


def build_plan(
    config: Config,
    splits: dict[str, list[Sentence]],
    place: Path | None = None,
    reading: Progress | None = None,
    training: Progress | None = None,
) -> Plan:
    """Return the plan of a simulated run, whose pool is the training data.

    Adapted encoders are kept in `place`; the steps of adapting and of training can be followed.
    """
    # duplicates are asked once, so they count once, or the last round would run dry
    unique = {sentence.tokens: sentence for sentence in reversed(splits["train"])}
    train = list(unique.values())[::-1]
    chosen, loop = _draw(train, config), config.loop
    seed_set = chosen[: loop.seed_size]
    text = [sentence.unlabeled() for sentence in train]
    encoder = encoder_of(config, text, place, reading)
    tags, count = TagSet.of(train), PiecesRead()
    learner, guard = build_learner(config, tags, seed_set, text, encoder, training, count)
    return Plan(
        learner=learner,
        seed_set=seed_set,
        pool=chosen[loop.seed_size :],
        label=labels_of(chosen),
        splits={name: splits[name] for name in ("dev", "test") if name in splits},
        sizes=lambda round: at(config.query.size, round - 1),
        rounds=loop.rounds,
        load_tagger=partial(load_trained, device=config.tagger.device),
        names={
            "arm": config.arm,
            "policy": config.query.policy,
            "variant": config.augment.variant,
            "config": config.digest,
        },
        stopping=Stopping(
            loop.stop_sentences,
            loop.stop_tokens,
            loop.stop_agreement,
            uncertainty=loop.stop_uncertainty,
        ),
        guard=guard,
        pieces=lambda: count.total,
        adapted=lambda: pieces_read(Path(encoder())) if config.adapt.epochs else 0,
        seed=config.seed,
    )


def _draw(train: Sequence[Sentence], config: Config) -> list[Sentence]:
    """Return the sentences of the seed set and the pool, in random order."""
    order = generator(config.seed, 0, "seed").permutation(len(train))[: config.loop.slice]
    rounds = config.loop.rounds
    needed = config.loop.seed_size + sum(at(config.query.size, r) for r in range(rounds))
    if needed > len(order):
        raise ConfigError(
            f"loop.seed_size and {rounds} rounds of query.size need {needed} different "
            f"sentences, but there are {len(order)}; lower them"
        )
    return [train[i] for i in order]


def encoder_of(
    config: Config,
    text: Sequence[Sentence],
    place: Path | None,
    progress: Progress | None = None,
    resumes: bool = False,
) -> Callable[[], str]:
    """Return a function that gives the encoder's name, and adapts it to the text first if asked to.

    The same encoder, text and seed are adapted once, by whichever run comes first.
    With `resumes`, a killed adaptation leaves a checkpoint for the next one.
    """
    if not config.adapt.epochs:
        return lambda: config.tagger.encoder
    if place is None:
        raise ConfigError(
            "adapt.epochs needs a folder for the adapted encoder; "
            "or run seqmix adapt and give its folder as tagger.encoder"
        )

    @cache
    def encoder() -> str:
        from seqmix.tagger.adaptation.adapt import adapt
        from seqmix.tagger.settings import AdaptSettings

        folder = adapted_folder(config, text, place)
        # several runs of a sweep may want the same encoder
        with locked(folder.with_suffix(".lock"), wait=True):
            if not folder.exists():
                epochs, lr = config.adapt.epochs, config.adapt.lr
                settings = AdaptSettings(epochs=epochs, lr=lr, seed=config.seed)
                name, device = config.tagger.encoder, config.tagger.device
                tokens = [sentence.tokens for sentence in text]
                kept = folder.with_suffix(".checkpoint") if resumes else None
                adapt(name, tokens, settings, folder, None, device, progress, kept)
        return str(folder)

    return encoder


def adapted_folder(config: Config, text: Sequence[Sentence], place: Path) -> Path:
    """Return the folder of the encoder as it is once adapted to this text."""
    source = Path(config.tagger.encoder)
    local = [folder_digest(source)] if source.is_dir() else []
    tokens = [sentence.tokens for sentence in text]
    described = json.dumps(
        [config.tagger.encoder, asdict(config.adapt), config.seed, tokens, *local]
    )
    return place / hashlib.sha256(described.encode()).hexdigest()[:12]


def build_learner(
    config: Config,
    tag_set: TagSet,
    seed_set: Sequence[Sentence],
    unlabeled: Sequence[Sentence] = (),
    encoder: Callable[[], str] | None = None,
    progress: Progress | None = None,
    count: PiecesRead | None = None,
) -> tuple[partial[ActiveLearner], Guard | None]:
    """Return how to make the learner of a pool, and the guard if there is one."""
    encoder = encoder or (lambda: config.tagger.encoder)
    fit = _fit(config, tag_set, encoder, progress, count or PiecesRead())
    augmenter = _augmenters(config.augment, config.seed, seed_set, unlabeled, encoder)
    learns = fit
    if config.self_training.teachers:
        more = _mixed(config, seed_set, unlabeled, encoder)
        learns = self_trained(fit, lambda: unlabeled, config.self_training, more)
    part = SentencePart(config.query.part, config.query.tokens) if config.query.part else None
    query, augment, steps = config.query, config.augment, config.training.steps_for
    learner = partial(
        ActiveLearner,
        tagger=learns,
        policy=combined(
            query.policy,
            query.diverse,
            query.without_entity,
            None if part else query.tokens,  # a part is not known before its sentence is chosen
            query.apart,
        ),
        part=part,
        augmenter=augmenter,
        rate=augment.rate,
        steps=steps,
        match_steps=config.loop.match_steps,
        warm=config.loop.warm,
    )
    if not augment.guard or augment.variant == "none":
        return learner, None
    return learner, Guard(fit, augmenter, augment.rate, steps, augment.guard, config.seed)


def _fit(
    config: Config,
    tag_set: TagSet,
    encoder: Callable[[], str],
    progress: Progress | None,
    count: PiecesRead,
) -> Fit:
    """Return the function that trains a tagger, from the last one where there is one."""
    shared = {field.name: getattr(config.training, field.name) for field in fields(Settings)}

    def fit(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: AnyTagger | None,
    ) -> AnyTagger:
        if isinstance(last, Tagger):
            tagger = last.twin()
        else:
            tagger = Tagger(encoder(), config.tagger.head, device=config.tagger.device)
        tagger.settings = Settings(**shared | {"steps": steps})
        tagger.fit(sentences, rng, tag_set, warm=last is not None, progress=progress)
        count.total += tagger.pieces_read
        return tagger

    members = config.training.members
    return fit if members == 1 else _averaged(fit, members)


def _averaged(fit: Fit, members: int) -> Fit:
    """Return a fit that trains so many taggers, which differ by their seed, and averages them."""

    def fit_all(
        sentences: Sequence[Sentence],
        steps: int | None,
        rng: np.random.Generator,
        last: AnyTagger | None,
    ) -> AnyTagger:
        before = last.members if isinstance(last, AveragedTagger) else [None] * members
        pairs = zip(rng.spawn(members), before, strict=True)
        return AveragedTagger([fit(sentences, steps, draw, tagger) for draw, tagger in pairs])

    return fit_all


def _mixed(
    config: Config,
    seed_set: Sequence[Sentence],
    unlabeled: Sequence[Sentence],
    encoder: Callable[[], str],
) -> MoreLessons | None:
    """Return what gives a student mixed sentences, if it is to have any."""
    how = config.mixed
    if how.variant == "none":
        return None
    augmenters = _augmenters(how, config.seed, seed_set, unlabeled, encoder)

    def more(
        teachers: Sequence[AnyTagger], sentences: Sequence[Sentence], rng: np.random.Generator
    ) -> Sequence[Sentence]:
        augmenter, n = augmenters(0), round(how.rate * len(sentences))
        assert augmenter is not None  # the variant is one
        choice = how.labels, how.band, how.loss_weight
        return mixed_lessons(augmenter, n, teachers, sentences, rng, *choice)

    return more


def _augmenters(
    settings: AugmentSettings,
    seed: int,
    seed_set: Sequence[Sentence],
    unlabeled: Sequence[Sentence],
    encoder: Callable[[], str],
) -> Callable[[int], Augmenter | None]:
    """Return the augmenter of each round; table and language model load once, when first used."""

    @cache
    def parts() -> dict[str, Any]:
        rng = table_generator(seed)
        text = {sentence.tokens: sentence for sentence in (*seed_set, *unlabeled)}.values()
        table = build_table(
            settings.table, encoder(), settings.distance, seed_set, rng, unlabeled=unlabeled
        ).narrowed(text, settings.seen, settings.alphabetic, settings.min_count)
        judge = Perplexity(settings.lm, settings.base or "e") if settings.limits else None
        alphabet = characters(text)
        return {"table": table, "masked_lm": encoder(), "alphabet": alphabet, "judge": judge}

    def augmenter(round: int) -> Augmenter | None:
        if settings.variant == "none":
            return None
        return build_augmenter(settings, round, **(parts() if settings.mixes else {}))

    return augmenter
