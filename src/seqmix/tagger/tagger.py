"""The tagger people use: fit, predict, probabilities, embeddings, save, load."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import asdict
from functools import partial
from pathlib import Path as FilePath
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from seqmix.data.scheme import legal_moves
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.errors import ConfigError, DataError, ModelError, TagError
from seqmix.protocols import Measure
from seqmix.starter import STARTER
from seqmix.starter.guarded import refuse_growth, tokenizing
from seqmix.starter.loader import NO_CODE, base_encoder
from seqmix.tagger import decoding
from seqmix.tagger.crf import Chain
from seqmix.tagger.decoding import Path
from seqmix.tagger.encoders import device_of, pieces_of, pretrained
from seqmix.tagger.inference import MEASURES, Reduce, Tell, by_sentence, chunks, read
from seqmix.tagger.int8 import quantized, whole
from seqmix.tagger.model_folders import FORMAT_VERSION, check, checksums, describe, writing
from seqmix.tagger.model_size_check import counts, fits
from seqmix.tagger.network import HEADS, Network
from seqmix.tagger.pieces import WordPieces
from seqmix.tagger.settings import Settings
from seqmix.tagger.training.loop import Progress, seeded, train
from seqmix.tagger.training.memory import stretches
from seqmix.tagger.training.processes import ALONE, Processes

T = TypeVar("T")
MOST_TAGS = 2000


class Tagger:
    """An encoder with a head. `Tagger().fit(sentences, rng)` trains the embedded starter.

    `encoder` is `starter`, a Hugging Face name or a folder; `head` is `linear` or `crf`.
    """

    def __init__(
        self,
        encoder: str = STARTER,
        head: str = "linear",
        settings: Settings | None = None,
        device: str | None = None,
    ) -> None:
        if head not in HEADS:
            raise ConfigError(f"there is no head {head!r}; there are {' and '.join(HEADS)}")
        self.encoder, self.head, self.settings = encoder, head, settings or Settings()
        self.device = device_of(device)
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
        processes: Processes = ALONE,
    ) -> Tagger:
        """Train on labeled sentences, from the pretrained weights or (`warm`) from where the last fit ended.

        A training whose loss becomes no number, or that memory does not hold, is a `ModelError` and leaves the tagger as it was.
        `processes` that train one tagger together call this with the same sentences and the same rng: see `seqmix.tagger.training.processes`.
        """
        labeled = [
            part for sentence in sentences if sentence.labeled for part in stretches(sentence)
        ]
        if not labeled:
            raise DataError("there is no labeled sentence to train on")
        if warm and self._network is not None:
            whole(self._network)
        before = (
            deepcopy(self._network) if warm else self._network,
            self._tokenizer,
            self._pieces,
            self.tag_set,
        )
        if not warm or self._network is None:
            self.start(tag_set or TagSet.of(labeled), rng)
        network, pieces, known = self._ready()
        windows = pieces.encode(sentence.tokens for sentence in labeled)
        rows = [known.rows(sentence) for sentence in labeled]
        try:
            names = [sentence.id for sentence in labeled]
            train(
                network,
                windows,
                rows,
                self.settings,
                self.learning_rate,
                rng,
                progress,
                processes,
                names,
            )
        except ModelError:
            self._network, self._tokenizer, self._pieces, self.tag_set = before
            raise
        finally:
            network.eval()  # also when it was broken off: a tagger never predicts with dropout
        return self

    def start(self, tag_set: TagSet, rng: np.random.Generator) -> Tagger:
        """The pretrained encoder with a head that knows nothing yet: enough for embeddings."""
        if len(tag_set) > MOST_TAGS:
            few = ", ".join(tag_set.tags[:5])
            raise TagError(
                f"there are {len(tag_set)} tags, {few}, …; a tagger takes at most {MOST_TAGS}: is this the column of the tags?"
            )
        self.tag_set = tag_set
        model, tokenizer = pretrained(self.encoder)
        with seeded(0):  # weights are drawn, then drawn again from the run's own generator
            self._build(
                deepcopy(model), tokenizer, torch.Generator().manual_seed(int(rng.integers(2**62)))
            )
        return self

    def twin(self) -> Tagger:
        """The same tagger with weights of its own: training one leaves the other as it is."""
        made = copy(self)
        made._network = deepcopy(self._network)
        return made

    def int8(self) -> Tagger:
        """A copy for looking at a pool on a CPU, with the encoder's weights in int8; it can be neither trained nor saved."""
        network, _, _ = self._ready()
        if self.device.type != "cpu":
            raise ConfigError(
                f"int8 is for CPUs, and this tagger is on {self.device}; give device cpu, or leave int8 off"
            )
        made = copy(self)
        made._network = quantized(network)
        return made

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
    def learning_rate(self) -> float:
        """The rate asked for, or the encoder's own: 3e-4 for the starter, the paper's 5e-5 for others."""
        return self.settings.lr or (3e-4 if base_encoder(self.encoder) == STARTER else 5e-5)

    def probabilities(self, sentences: Iterable[Sentence]) -> Iterator[NDArray[np.float32]]:
        """p(tag | token) for each sentence [n_tokens, n_tags], in order and in a stream; for a CRF these are the marginals."""
        _, _, known = self._ready()

        def reduce(
            scores: torch.Tensor, own: Sequence[Sentence], ends: torch.Tensor
        ) -> tuple[torch.Tensor, ...]:
            return (self._by_token(scores, own, ends),)

        return self._map(
            sentences, reduce, by_sentence, np.zeros((0, len(known)), dtype=np.float32)
        )

    def unsure(self, sentences: Iterable[Sentence], measure: Measure) -> Iterator[float]:
        """One number a sentence from its p(tag | token), computed where these are: of a GPU's work only the numbers leave the GPU.

        `entropy` is the mean over tokens, `least` what the best tags leave over in sum, `margin` how close the second tag comes to the
        first in the mean.
        """

        def reduce(
            scores: torch.Tensor, own: Sequence[Sentence], ends: torch.Tensor
        ) -> tuple[torch.Tensor, ...]:
            by_token = MEASURES[measure](self._by_token(scores, own, ends).double())
            sums = torch.segment_reduce(
                by_token, "sum", lengths=ends, unsafe=True
            )  # unsafe: the lengths are ours, and checking waits
            return (sums if measure == "least" else sums / ends,)

        return self._map(sentences, reduce, lambda found, own: found[0].tolist(), 0.0)

    def best_paths(
        self,
        sentences: Iterable[Sentence],
        n: int = 1,
        legal: bool = True,
        keep: bool = False,
        by_token: bool = False,
    ) -> Iterator[list[Path]]:
        """The n most probable ways to tag each sentence, best first.

        Only legal ones (no I- without its B-) unless told. `keep`: only ones that agree with the labels a sentence already has.
        `by_token`: with the probability of each token's tag beside.
        """
        _, _, known = self._ready()
        start, moves, end = (torch.from_numpy(mask).to(self.device) for mask in legal_moves(known))
        rules = (start, moves, end) if legal else None

        def reduce(
            scores: torch.Tensor, own: Sequence[Sentence], ends: torch.Tensor
        ) -> tuple[torch.Tensor, ...]:
            sure = (self._by_token(scores, own, ends),) if by_token else ()
            return *decoding.search(scores, own, ends, self._chain(), known, n, rules, keep), *sure

        return self._map(sentences, reduce, partial(decoding.told, known=known), [Path((), 1.0)])

    def predict(
        self, sentences: Iterable[Sentence], legal: bool = True, keep: bool = False
    ) -> Iterator[Sentence]:
        """The sentences with their most probable tags."""
        for chunk in chunks(sentences):
            for sentence, paths in zip(
                chunk, self.best_paths(chunk, legal=legal, keep=keep), strict=True
            ):
                yield sentence.with_tags(paths[0].tags)

    def embeddings(self, sentences: Iterable[Sentence]) -> Iterator[NDArray[np.float32]]:
        """The last hidden state of each token [n_tokens, width]."""
        network, _, _ = self._ready()
        empty = np.zeros((0, network.classifier.in_features), dtype=np.float32)
        return self._map(
            sentences, lambda states, own, ends: (states.float(),), by_sentence, empty, hidden=True
        )

    def dropped(
        self, sentences: Iterable[Sentence], passes: int, rng: np.random.Generator
    ) -> Iterator[NDArray[np.float32]]:
        """p(tag | token) under `passes` dropout masks in the head only [passes, n_tokens, n_tags]: the encoder runs once."""
        network, _, _ = self._ready()
        weight, bias = (
            t.detach().cpu().numpy() for t in (network.classifier.weight, network.classifier.bias)
        )
        keep = 1 - self.settings.dropout
        masks = (rng.random((passes, weight.shape[1])) < keep).astype(np.float32) / keep
        for states in self.embeddings(sentences):
            scores = np.einsum("th,ph,kh->ptk", states, masks, weight, optimize=True) + bias
            scores -= scores.max(axis=2, keepdims=True)
            odds = np.exp(scores)
            yield odds / odds.sum(axis=2, keepdims=True)

    def input_embeddings(self) -> tuple[list[str], NDArray[np.float32], PreTrainedTokenizerFast]:
        """The encoder's vocabulary, its input embeddings [n_pieces, width] as trained so far, and its tokenizer."""
        network, _, _ = self._ready()
        assert self._tokenizer is not None  # set together with the network
        vectors = network.encoder.get_input_embeddings().weight.detach().cpu().numpy()
        words = self._tokenizer.convert_ids_to_tokens(list(range(len(vectors))))
        return [word or "[unused]" for word in words], vectors, self._tokenizer

    def save(self, folder: FilePath | str) -> None:
        """Write everything needed to load the tagger anywhere: weights, tokenizer, tag set, settings."""
        network, _, known = self._ready()
        whole(network)
        described: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "kind": "seqmix tagger",
            "encoder": self.encoder,
            "head": self.head,
            "tags": list(known.tags),
            "settings": asdict(self.settings),
        }
        with writing(FilePath(folder)) as beside:
            save_file(
                {
                    key: value.detach().cpu().contiguous()
                    for key, value in network.state_dict().items()
                },
                beside / "model.safetensors",
            )
            network.encoder.config.to_json_file(str(beside / "config.json"))
            if self._tokenizer is not None:
                self._tokenizer.save_pretrained(str(beside))
            described["checksums"] = checksums(beside)
            (beside / "tagger.json").write_text(
                json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
            )

    @classmethod
    def load(cls, folder: FilePath | str, device: str | None = None) -> Tagger:
        """A tagger that `save` wrote."""
        folder, device = FilePath(folder), str(device_of(device))
        described = describe(folder)
        try:
            check(folder, described.get("checksums", {}))
            tagger = cls(
                described["encoder"], described["head"], Settings(**described["settings"]), device
            )
            tagger.tag_set = TagSet(tuple(described["tags"]))
            with seeded(0), tokenizing():  # weights are drawn, then overwritten
                counts(folder / "config.json")
                refuse_growth(folder)
                config = AutoConfig.from_pretrained(folder, **NO_CODE)
                fits(folder / "model.safetensors", config, len(tagger.tag_set))
                model = AutoModel.from_config(config, trust_remote_code=False)
                tagger._build(
                    model, PreTrainedTokenizerFast.from_pretrained(folder), torch.Generator()
                )
            network, _, _ = tagger._ready()
            missing, unexpected = network.load_state_dict(
                load_file(folder / "model.safetensors"), strict=False
            )
            wrong = [
                key for key in missing if ".pooler." not in key
            ] + unexpected  # the starter has no pooler, and none is used
            if wrong:
                raise ValueError(f"its weights do not fit its config.json ({wrong[0]})")
        except Exception as error:  # every file can be broken in its own way
            why = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelError(f"the model folder {folder} is damaged: {why}") from error
        return tagger

    def _build(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, generator: torch.Generator
    ) -> None:
        assert self.tag_set is not None  # both callers have just set it
        network = Network(model, len(self.tag_set), self.head, self.settings.dropout, generator)
        places = getattr(model.config, "max_position_embeddings", 512) - network.first_position
        limit = min(
            self.settings.max_pieces,
            places if tokenizer.model_max_length > 1_000_000 else tokenizer.model_max_length,
        )
        self._tokenizer, self._pieces = tokenizer, pieces_of(tokenizer, limit)
        self._network = network.to(self.device).eval()

    def _ready(self) -> tuple[Network, WordPieces, TagSet]:
        if self._network is None or self._pieces is None or self.tag_set is None:
            raise ModelError("this tagger is not trained yet; call fit first, or load one")
        return self._network, self._pieces, self.tag_set

    def _chain(self) -> Chain | None:
        network, _, _ = self._ready()
        return network.chain() if network.chain is not None else None

    def _by_token(
        self, scores: torch.Tensor, own: Sequence[Sentence], ends: torch.Tensor
    ) -> torch.Tensor:
        return decoding.by_token(scores, own, ends, self._chain())

    def _map(
        self,
        sentences: Iterable[Sentence],
        reduce: Reduce,
        tell: Tell[T],
        empty: T,
        hidden: bool = False,
    ) -> Iterator[T]:
        network, pieces, _ = self._ready()
        return read(network, pieces, self.device, sentences, reduce, tell, empty, hidden)
