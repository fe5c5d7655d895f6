"""The tagger people use: text in, entities out, and every way to train it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Self, overload

import numpy as np

from seqmix.data.inputs import Labeled, Text, as_labeled, as_sentences, checked_path, entities_in
from seqmix.data.latest_model import using_model
from seqmix.data.scoring import Score, score
from seqmix.data.sentence import Sentence, unique_ids
from seqmix.data.spans import Entity
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, DataError, ModelError
from seqmix.external.names import is_external
from seqmix.onnx_runtime.model_file import is_onnx
from seqmix.starter import STARTER
from seqmix.tagger import tagger as core
from seqmix.tagger.settings import Head, Settings
from seqmix.tagger.training.loop import Progress
from seqmix.tagger.training.plain import plain_settings

_HERE_IT_IS = {  # what other libraries call it
    "config": "tagger.settings",
    "evaluate": "tagger.score(sentences)",
    "pipe": "tagger(texts) or tagger.predict(texts)",
    "predict_proba": "tagger.probabilities(sentences)",
    "save_pretrained": "tagger.save(folder), or seqmix export --to hf for Hugging Face",
    "to": "Tagger.load(folder, device)",
    "to_disk": "tagger.save(folder)",
    "train": "tagger.fit(sentences)",
    "transform": "tagger.predict(sentences)",
}

_TO_LOAD = {  # the same for the class
    "from_pretrained": 'seqmix.load(folder), or seqmix.load("hf:NAME") for Hugging Face\'s',
    "from_disk": "seqmix.load(folder)",
}


class _Hints(type):
    """Says what to type where a class has no such name."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            hint = f"; type {_TO_LOAD[name]}" if name in _TO_LOAD else ""
            raise AttributeError(f"'Tagger' has no attribute {name!r}{hint}", name=name)


class Tagger(core.Tagger, metaclass=_Hints):
    """Finds entities in text: `Tagger().fit(sentences)("Lena left Oslo.")`.

    Every method that takes sentences takes raw texts and lists of tokens too.

    Args:
        encoder: `starter`, a Hugging Face name, or a folder.
        head: `linear` or `crf`.
        settings: How to train; without steps or epochs, as many steps as the sentences need.
        device: `cpu` or `cuda`; by default the best available.
    """

    def __init__(
        self,
        encoder: str | Path = STARTER,
        head: Head = "crf",
        settings: Settings | None = None,
        device: str | None = None,
    ) -> None:
        if not isinstance(encoder, str | Path):
            raise ConfigError(
                f"encoder must be starter, a Hugging Face name or a folder; got {encoder!r}"
            )
        if settings is not None and not isinstance(settings, Settings):
            raise ConfigError(
                f"settings must be seqmix.Settings(…), such as Settings(epochs=3); got {settings!r}"
            )
        super().__init__(str(encoder), head, settings, device)
        self._completed = (self.settings, self.settings)  # as given, and as used by a training

    def __repr__(self) -> str:
        known = "not trained" if self.tag_set is None else f"labels={list(self.tag_set.types)}"
        device = str(self.device)
        return f"Tagger(encoder={self.encoder!r}, head={self.head!r}, {device=}, {known})"

    if not TYPE_CHECKING:  # an editor would take every name for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            hint = f"; type {_HERE_IT_IS[name]}" if name in _HERE_IT_IS else ""
            raise AttributeError(f"'Tagger' object has no attribute {name!r}{hint}", name=name)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its entities."""
        return self._ready()[2].types

    @overload
    def __call__(self, text: str | Sentence) -> list[Entity]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, text: Iterable[Text]) -> list[list[Entity]]: ...
    def __call__(self, text: str | Sentence | Iterable[Text]) -> list[Entity] | list[list[Entity]]:
        """Return the entities of a text, or of each of many, with offsets and probabilities.

        Args:
            text: A text or Sentence gives its entities; a list of texts, Sentences or lists of
                tokens gives a list for each. Offsets in tokens count single spaces between them.
        """
        return entities_in(text, self.best_paths)

    def predict(
        self, sentences: Iterable[Text], legal: bool = True, keep: bool = False
    ) -> Iterator[Sentence]:
        """Return a stream of the sentences with their most probable tags.

        Args:
            sentences: Any number of texts, Sentences or lists of tokens.
            legal: Only legal taggings, without an I- that has no B-.
            keep: Only taggings that agree with the labels a sentence already has.
        """
        self._ready()
        return super().predict(as_sentences(sentences), legal, keep)

    def fit(
        self,
        sentences: Iterable[Labeled],
        rng: np.random.Generator | int | None = None,
        tag_set: TagSet | None = None,
        warm: bool = False,
        progress: Progress | None = None,
        *,
        seed: int | None = None,
        unlabeled: Iterable[Text] | None = None,
    ) -> Self:
        """Train on labeled sentences and return the tagger itself.

        Unless the settings say how long, it takes ten epochs, but at least 300 steps, and 600 from
        100 sentences on.
        If the loss diverges or memory runs out, it raises a ModelError and is as it was before.

        Args:
            sentences: Sentences with hard, soft or missing tags, or pairs of tokens and tags.
            rng: The source of all randomness: the same generator gives the same weights.
            tag_set: The tags to learn; by default those of the sentences.
            warm: Continue from the current weights instead of the pretrained ones.
            progress: Called with (steps done, steps in all, recent loss).
            seed: A number in place of a generator; 0 by default.
            unlabeled: Text to learn from as well, with the recipe few-labels: the encoder reads it,
                and a student learns from what three teachers find in it.
        """
        number = _seed_of(rng, seed)
        labeled = as_labeled(sentences)
        if tag_set is not None and not isinstance(tag_set, TagSet):
            raise ConfigError(
                f"tag_set must be a seqmix.TagSet, such as TagSet.ordered(tags); got {tag_set!r}"
            )
        if unlabeled is None:
            drawn = np.random.default_rng(number) if number is not None else rng
            assert isinstance(drawn, np.random.Generator)  # _seed_of refuses anything else
            return self._fit_plain(labeled, drawn, tag_set, warm, progress)
        if number is None or warm or tag_set is not None:
            raise ConfigError(
                "with unlabeled text, fit takes a seed, and neither rng, warm nor tag_set"
            )
        return self._fit_few_labels(labeled, list(as_sentences(unlabeled)), number, progress)

    def score(self, sentences: Iterable[Labeled]) -> Score:
        """Return precision, recall and F1 on labeled sentences: `tagger.score(test).f1`."""
        gold = as_labeled(sentences)
        if any(None in sentence.tags for sentence in gold):
            raise DataError("some tokens have no label, so an F1 would mean nothing")
        tags = [[str(tag) for tag in sentence.hardened().tags] for sentence in gold]
        predicted = self.best_paths(sentence.unlabeled() for sentence in gold)
        return score(tags, [paths[0].tags for paths in predicted])

    @classmethod
    def load(cls, folder: Path | str, device: str | None = None) -> Self:
        """Return the tagger of a folder that `save` wrote, or the newest one of a project."""
        path = checked_path(folder, "the folder of a tagger")
        if is_external(folder) or is_onnx(path):
            raise ModelError(f"{folder} is not a tagger folder; type seqmix.load({str(folder)!r})")
        with using_model(path) as newest:
            tagger = super().load(newest, device)
        assert isinstance(tagger, cls)  # the core makes one of this class
        return tagger

    def _fit_plain(
        self,
        labeled: Sequence[Sentence],
        rng: np.random.Generator,
        tag_set: TagSet | None,
        warm: bool,
        progress: Progress | None,
    ) -> Self:
        """Train with the steps and the rate that suit, unless the settings say them."""
        asked = self._asked_settings()
        count = sum(sentence.labeled for sentence in labeled)
        self.settings = plain_settings(asked, count, self.encoder)
        try:
            super().fit(labeled, rng, tag_set, warm, progress)
        except BaseException:
            self.settings = asked
            raise
        self._completed = (asked, self.settings)
        return self

    def _asked_settings(self) -> Settings:
        """Return the settings without what the last training added to them."""
        asked, used = self._completed
        return asked if self.settings is used else self.settings

    def _fit_few_labels(
        self,
        labeled: Sequence[Sentence],
        text: Sequence[Sentence],
        seed: int,
        progress: Progress | None,
    ) -> Self:
        """Train with the recipe few-labels; what this tagger was given overrides it."""
        from seqmix.app.few_labels import few_labels_config, train_few_labels

        asked, plain = self._asked_settings(), Settings()
        training = {
            field.name: value
            for field in fields(Settings)
            if (value := getattr(asked, field.name)) != getattr(plain, field.name)
        }
        if "steps" in training:
            training["min_steps"] = training.pop("steps")
        tagger = {"encoder": self.encoder, "device": str(self.device), "head": self.head}
        config = few_labels_config({"tagger": tagger, "training": training}, seed=seed)
        watch = None if progress is None else (lambda stage: progress)
        trained = train_few_labels(unique_ids(labeled), text, config, watch)
        self.head, self.tag_set = trained.head, trained.tag_set
        self.settings = trained.settings
        self._completed = (asked, self.settings)
        self._network, self._tokenizer = trained._network, trained._tokenizer
        self._pieces = trained._pieces
        return self


def _seed_of(rng: np.random.Generator | int | None, seed: int | None) -> int | None:
    """Return the seed to draw from, or None where there is a generator."""
    if rng is not None and seed is not None:
        raise ConfigError("give fit an rng or a seed, not both")
    if isinstance(rng, np.random.Generator):
        return None
    value = 0 if rng is None and seed is None else rng if seed is None else seed
    if isinstance(value, list | tuple):
        raise ConfigError(
            "fit takes tokens and tags together: fit(zip(tokens, tags)), and then rng or seed; "
            f"got {type(value).__name__} as rng"
        )
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ConfigError(
            f"seed must be a whole number of 0 or more, and rng a numpy Generator; got {value!r}"
        )
    return int(value)
