"""Where the table's words and embeddings come from: an encoder's vocabulary, or a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from seqmix.augment.settings import Distance
from seqmix.augment.table import Table, Vectors
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.starter import STARTER, load_encoder
from seqmix.starter.guarded import MAX_LETTERS, plain_backend, tokenizing


def vocabulary_table(
    words: Sequence[str],
    vectors: Vectors,
    tokenizer: PreTrainedTokenizerFast,
    distance: Distance = "l2",
) -> Table:
    """Return the encoder's vocabulary and input embeddings without special and unused entries."""
    special = set(tokenizer.all_special_ids)
    marked = np.array([word[:1] in ("Ġ", "▁") for word in words])  # how a word starts in BPE
    if marked.any():
        starts = np.array([m and len(word) > 1 for m, word in zip(marked, words, strict=True)])
        spelled = [word.lstrip("Ġ▁") if m else word for m, word in zip(marked, words, strict=True)]
    else:
        starts = np.array([not word.startswith("##") for word in words])
        spelled = [word.removeprefix("##") for word in words]
    starts &= np.array(
        [
            i not in special and not _unused(word) and "\ufffd" not in word
            for i, word in enumerate(words)
        ]
    )
    starts &= np.array([word.isprintable() and " " not in word and word != "" for word in spelled])
    return Table(
        tuple(spelled),
        np.ascontiguousarray(vectors, dtype=np.float32),
        starts,
        _splitter(tokenizer),
        distance,
    )


def _splitter(tokenizer: PreTrainedTokenizerFast) -> Callable[[str], Sequence[int]]:
    backend = plain_backend(tokenizer)
    unknown = tokenizer.unk_token_id or 0
    pieces: dict[str, Sequence[int]] = {}

    def split(word: str) -> Sequence[int]:
        if word not in pieces:
            with tokenizing():
                encoding = backend.encode(
                    [word[:MAX_LETTERS]], is_pretokenized=True, add_special_tokens=False
                )
            pieces[word] = tuple(encoding.ids) or (unknown,)
        return pieces[word]

    return split


def encoder_table(name: str = STARTER, distance: Distance = "l2") -> Table:
    """Return the table of a pretrained encoder."""
    model, tokenizer = load_encoder(name)
    vectors = model.get_input_embeddings().weight.detach().numpy()
    words = tokenizer.convert_ids_to_tokens(list(range(len(vectors))))
    return vocabulary_table([word or "[unused]" for word in words], vectors, tokenizer, distance)


def contextual_table(
    sentences: Sequence[Sentence], states: Iterable[NDArray[Any]], distance: Distance = "l2"
) -> Table:
    """Return the words of a corpus, each with the mean of its hidden states [n_tokens, width]."""
    sums: dict[str, NDArray[np.float64]] = {}
    counts: Counter[str] = Counter()
    for sentence, hidden in zip(sentences, states, strict=True):
        for token, state in zip(sentence.tokens, hidden, strict=True):
            sums[token] = sums[token] + state if token in sums else state.astype(np.float64)
            counts[token] += 1
    if not sums:
        raise ConfigError("a table of contextual embeddings needs sentences; got none")
    words = tuple(sorted(sums))
    ids: Mapping[str, Sequence[int]] = {word: (i,) for i, word in enumerate(words)}
    vectors = np.stack([sums[word] / counts[word] for word in words]).astype(np.float32)

    def split(word: str) -> Sequence[int]:
        if word not in ids:
            raise ConfigError(
                f"the word {word!r} is not in the table of contextual embeddings; "
                "build it on the sentences to be mixed"
            )
        return ids[word]

    return Table(words, vectors, np.ones(len(words), dtype=bool), split, distance)


def _unused(word: str) -> bool:
    return word.startswith(("[unused", "<unused", "[PAD", "<pad", "<|")) or word in (
        "<s>",
        "</s>",
        "<unk>",
        "<mask>",
    )
