"""The tagger: fit, predict, probabilities, embeddings, save, load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import asdict
from functools import partial
from pathlib import Path as FilePath
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from seqmix.data.inputs import Text, as_sentences
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, DataError, ModelError, TagError
from seqmix.protocols import Measure
from seqmix.starter import STARTER
from seqmix.starter.loader import default_learning_rate
from seqmix.tagger import decoding, inference
from seqmix.tagger.crf import Chain
from seqmix.tagger.encoders import device_of, pieces_of, pretrained
from seqmix.tagger.int8 import quantized, refuse_quantized
from seqmix.tagger.model_folders import load_encoder_of, load_weights, open_folder, write_folder
from seqmix.tagger.network import Network
from seqmix.tagger.paths import Path, best_tagged
from seqmix.tagger.settings import HEADS, Settings
from seqmix.tagger.training.determinism import seeded
from seqmix.tagger.training.loop import Progress, train
from seqmix.tagger.training.memory import stretches
from seqmix.tagger.training.schedule import TrainingSet, weights_of
from seqmix.tagger.windows import WordPieces

T = TypeVar("T")
MAX_TAGS = 2000


class Tagger:
    """An encoder with a linear or CRF head: `Tagger(head="crf").fit(sentences, rng)`.

    Args:
        encoder: `starter`, a Hugging Face name, or a folder.
        head: `linear` or `crf`.
        settings: How to train; the paper's values by default.
        device: `cpu` or `cuda`; by default the best available.
    """

    def __init__(
        self,
        encoder: str = STARTER,
        head: str = "linear",
        settings: Settings | None = None,
        device: str | None = None,
    ) -> None:
        if head not in HEADS:
            raise ConfigError(f"head must be {' or '.join(HEADS)}; got {head!r}")
        self.encoder, self.head, self.settings = encoder, head, settings or Settings()
        self.device, self.pieces_read = device_of(device), 0  # pieces read by the last training
        self.tag_set: TagSet | None = None
        self._network: Network | None = None
        self._tokenizer: PreTrainedTokenizerFast | None = None
        self._pieces: WordPieces | None = None

    def fit(
        self,
        sentences: Sequence[Sentence],
        rng: np.random.Generator,
        tag_set: TagSet | None = None,
        warm: bool = False,
        progress: Progress | None = None,
    ) -> Tagger:
        """Train on labeled sentences and return the tagger itself.

        If the loss diverges or memory runs out, it raises a ModelError and is as it was before.

        Args:
            sentences: Sentences with hard, soft or missing tags; unlabeled ones are ignored.
            rng: The source of all randomness: the same generator gives the same weights.
            tag_set: The tags to learn; by default those of the sentences.
            warm: Continue from the current weights instead of the pretrained ones.
            progress: Called with (steps done, steps in all, recent loss).
        """
        labeled = [part for s in sentences if s.labeled for part in stretches(s)]
        if not labeled:
            raise DataError("there is no labeled sentence to train on")
        if warm and self._network is not None:
            refuse_quantized(self._network)
        network = deepcopy(self._network) if warm else self._network
        before = (network, self._tokenizer, self._pieces, self.tag_set)
        if not warm or self._network is None:
            self.start(tag_set or TagSet.of(labeled), rng)
        network, pieces, tags = self._ready()
        data = TrainingSet(
            pieces.encode(sentence.tokens for sentence in labeled),
            [tags.rows(sentence) for sentence in labeled],
            [sentence.id for sentence in labeled],
            weights_of(labeled),
        )
        try:
            how = (self.settings, self.learning_rate, rng, progress)
            self.pieces_read = train(network, data, *how)
        except ModelError:
            self._network, self._tokenizer, self._pieces, self.tag_set = before
            raise
        finally:
            network.eval()  # also after an interruption: a tagger never predicts with dropout
        return self

    def start(self, tag_set: TagSet, rng: np.random.Generator) -> Tagger:
        """Load the pretrained encoder with an untrained head, which is enough for embeddings."""
        if len(tag_set) > MAX_TAGS:
            raise TagError(
                f"a tagger takes at most {MAX_TAGS} tags; got {len(tag_set)}, "
                f"{', '.join(tag_set.tags[:5])}, …: is this the column of the tags?"
            )
        self.tag_set = tag_set
        model, tokenizer = pretrained(self.encoder)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        with seeded(0):  # weights are drawn, then drawn again from the run's generator
            self._build(deepcopy(model), tokenizer, generator)
        return self

    def twin(self) -> Tagger:
        """Return a copy with its own weights: training one leaves the other as it is."""
        twin = copy(self)
        twin._network = deepcopy(self._network)
        return twin

    def int8(self) -> Tagger:
        """Return a copy with int8 weights, faster on a CPU; it cannot be trained or saved."""
        rounded = copy(self)
        rounded._network = quantized(self.network, self.device)
        return rounded

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags in the order of the head's scores."""
        return self._ready()[2].tags

    @property
    def network(self) -> Network:
        """The encoder with its head."""
        return self._ready()[0]

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The encoder's tokenizer."""
        self._ready()
        assert self._tokenizer is not None  # set together with the network
        return self._tokenizer

    @property
    def pieces(self) -> WordPieces:
        """How words are cut into pieces, and sentences into windows."""
        return self._ready()[1]

    @property
    def learning_rate(self) -> float:
        """The learning rate of the settings, or else the one that suits the encoder."""
        return self.settings.lr or default_learning_rate(self.encoder)

    def probabilities(self, sentences: Iterable[Text]) -> Iterator[NDArray[np.float32]]:
        """Yield p(tag | token) for each sentence [n_tokens, n_tags], in a stream.

        For a CRF these are the marginals; columns are in the order of `tag_set`.
        """
        empty = np.zeros((0, len(self.tags)), dtype=np.float32)
        return self._map(
            sentences, lambda *batch: (self._by_token(*batch),), inference.by_sentence, empty
        )

    def unsure(self, sentences: Iterable[Text], measure: Measure) -> Iterator[float]:
        """Yield how unsure the tagger is of each sentence, computed on the device.

        Args:
            sentences: Any number of sentences.
            measure: `entropy` is the mean entropy of tokens; `least` sums 1 - p of each token's
                best tag; `margin` is the mean of 1 - p(best tag) + p(second tag).
        """

        def reduce(scores: Tensor, batch: Sequence[Sentence], ends: Tensor) -> inference.Tensors:
            by_token = inference.MEASURES[measure](self._by_token(scores, batch, ends).double())
            # Unsafe skips a check of the lengths, which would wait for the device.
            sums = torch.segment_reduce(by_token, "sum", lengths=ends, unsafe=True)
            return (sums if measure == "least" else sums / ends,)

        return self._map(sentences, reduce, lambda tensors, batch: tensors[0].tolist(), 0.0)

    def best_paths(
        self,
        sentences: Iterable[Text],
        n: int = 1,
        legal: bool = True,
        keep: bool = False,
        by_token: bool = False,
    ) -> Iterator[list[Path]]:
        """Yield the n most probable taggings of each sentence, best first.

        Args:
            sentences: Any number of sentences.
            n: How many; a short sentence may have fewer.
            legal: Only legal taggings, without an I- that has no B-.
            keep: Only taggings that agree with the labels a sentence already has.
            by_token: Add the probability of each token's tag.
        """
        _, _, tags = self._ready()
        rules = decoding.legal_rules(tags, self.device) if legal else None

        def reduce(scores: Tensor, batch: Sequence[Sentence], ends: Tensor) -> inference.Tensors:
            rows = (self._by_token(scores, batch, ends),) if by_token else ()
            chain = self._chain()
            return *decoding.search(scores, batch, ends, chain, tags, n, rules, keep), *rows

        finish = partial(decoding.to_paths, tag_set=tags)
        return self._map(sentences, reduce, finish, [Path((), 1.0)])

    def predict(
        self, sentences: Iterable[Text], legal: bool = True, keep: bool = False
    ) -> Iterator[Sentence]:
        """Yield the sentences with their most probable tags; for the options see `best_paths`."""
        best_paths = partial(self.best_paths, legal=legal, keep=keep)
        yield from best_tagged(as_sentences(sentences), best_paths)

    def embeddings(self, sentences: Iterable[Text]) -> Iterator[NDArray[np.float32]]:
        """Yield the last hidden states of each sentence's tokens [n_tokens, width]."""
        empty = np.zeros((0, self.network.classifier.in_features), dtype=np.float32)
        return self._map(sentences, inference.states, inference.by_sentence, empty, hidden=True)

    def dropped(
        self, sentences: Iterable[Text], passes: int, rng: np.random.Generator
    ) -> Iterator[NDArray[np.float32]]:
        """Yield p(tag | token) under dropout in the head only [passes, n_tokens, n_tags]."""
        head, dropout = self.network.classifier, self.settings.dropout
        return decoding.with_dropout(self.embeddings(sentences), head, dropout, passes, rng)

    def input_embeddings(self) -> tuple[list[str], NDArray[np.float32], PreTrainedTokenizerFast]:
        """Return the vocabulary, its input embeddings [n_pieces, width], and the tokenizer."""
        vectors = self.network.encoder.get_input_embeddings().weight.detach().cpu().numpy()
        words = self.tokenizer.convert_ids_to_tokens(list(range(len(vectors))))
        return [word or "[unused]" for word in words], vectors, self.tokenizer

    def save(self, folder: FilePath | str) -> None:
        """Write weights, tokenizer, tag set and settings to a folder that `load` reads."""
        refuse_quantized(self.network)
        model = {"encoder": self.encoder, "head": self.head, "tags": list(self.tags)}
        how = asdict(self.settings) | {"epochs": self.settings.passes}
        write_folder(FilePath(folder), {**model, "settings": how}, self.network, self._tokenizer)

    @classmethod
    def load(cls, folder: FilePath | str, device: str | None = None) -> Tagger:
        """Return the tagger that `save` wrote to a folder; code in the folder is never run."""
        folder, device = FilePath(folder), str(device_of(device))
        with open_folder(folder) as description:
            settings = Settings(**description["settings"])
            tagger = cls(description["encoder"], description["head"], settings, device)
            tagger.tag_set = TagSet(tuple(description["tags"]))
            with seeded(0):  # weights are drawn, then overwritten
                model, tokenizer = load_encoder_of(folder, len(tagger.tag_set))
                tagger._build(model, tokenizer, torch.Generator())
            load_weights(folder, tagger.network)
        return tagger

    def _build(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, generator: torch.Generator
    ) -> None:
        assert self.tag_set is not None  # both callers have just set it
        network = Network(model, len(self.tag_set), self.head, self.settings.dropout, generator)
        places = getattr(model.config, "max_position_embeddings", 512) - network.first_position
        limit = tokenizer.model_max_length  # a huge number where the tokenizer has none
        limit = min(self.settings.max_pieces, places if limit > 1_000_000 else limit)
        self._tokenizer, self._pieces = tokenizer, pieces_of(tokenizer, limit)
        self._network = network.to(self.device).eval()

    def _ready(self) -> tuple[Network, WordPieces, TagSet]:
        if self._network is None or self._pieces is None or self.tag_set is None:
            raise ModelError("this tagger is not trained yet; call fit first, or load one")
        return self._network, self._pieces, self.tag_set

    def _chain(self) -> Chain | None:
        chain = self.network.chain
        return None if chain is None else chain()

    def _by_token(self, scores: Tensor, batch: Sequence[Sentence], ends: Tensor) -> Tensor:
        return decoding.by_token(scores, batch, ends, self._chain())

    def _map(
        self,
        sentences: Iterable[Text],
        reduce: inference.Reduce,
        finish: inference.Finish[T],
        empty: T,
        hidden: bool = False,
    ) -> Iterator[T]:
        model = (*self._ready()[:2], self.device)
        return inference.run_batches(*model, as_sentences(sentences), reduce, finish, empty, hidden)
