"""Point at names: the type head of the starter's encoder, which learned from unlabeled articles.

Its types are nouns such as village or footballer, which fit no project's tags, so only whether a
word is part of a mention is of use: neighboring words that are make a name. The threshold is the
best of seven on 400 sentences of CoNLL-03's validation split (F1 of places).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from safetensors.torch import load_file

from seqmix.data.sentence import Sentence
from seqmix.starter.guarded import tokenizing
from seqmix.starter.loader import STARTER_FILES, load_encoder

_WORDS = 120  # of a stretch that is read at once
_AT_ONCE = 16  # stretches
_OUTSIDE = 0.95  # a word that is outside all mentions with a higher probability is no name


class Pointer:
    """The starter's encoder with its type head."""

    def __init__(self) -> None:
        self._encoder, self._tokenizer = load_encoder()
        head = load_file(STARTER_FILES / "types.safetensors")
        self._weight, self._bias = head["types.weight"].float(), head["types.bias"].float()

    def names(self, sentences: Iterable[Sentence]) -> Iterator[list[tuple[int, int]]]:
        """Yield the places of each sentence that look like names, as [start, end) of tokens."""
        rest = iter(sentences)
        while page := list(islice(rest, _AT_ONCE)):
            stretches = [
                sentence.tokens[at : at + _WORDS] for sentence in page for at in _starts(sentence)
            ]
            inside = iter(self._inside(stretches))
            for sentence in page:
                yield mentions([word for _ in _starts(sentence) for word in next(inside)])

    def _inside(self, stretches: Sequence[Sequence[str]]) -> Iterator[list[bool]]:
        """Yield for each word whether it is part of a mention; one that does not fit is not."""
        for at in range(0, len(stretches), _AT_ONCE):
            page = [[word or " " for word in stretch] for stretch in stretches[at : at + _AT_ONCE]]
            with tokenizing():
                batch = self._tokenizer(
                    page,
                    is_split_into_words=True,
                    truncation=True,
                    max_length=256,
                    padding=True,
                    return_tensors="pt",
                )
            outside = self._outside(batch["input_ids"], batch["attention_mask"]).tolist()
            for row, words in enumerate(page):
                first = dict[int, int]()
                for place, word in enumerate(batch.word_ids(row)):
                    if word is not None:
                        first.setdefault(word, place)
                yield [
                    word in first and outside[row][first[word]] <= _OUTSIDE
                    for word in range(len(words))
                ]

    @torch.inference_mode()
    def _outside(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return p(outside) of each piece [n_rows, n_pieces]; class 0 of the head."""
        hidden = self._encoder(ids, attention_mask=mask).last_hidden_state
        return torch.softmax(hidden @ self._weight.T + self._bias, -1)[..., 0]


def _starts(sentence: Sentence) -> range:
    return range(0, len(sentence), _WORDS)


def mentions(inside: Sequence[bool]) -> list[tuple[int, int]]:
    """Return the stretches of words inside: [True, True, False, True] -> [(0, 2), (3, 4)]."""
    ends = [*inside, False]
    starts = [at for at, word in enumerate(inside) if word and not (at and inside[at - 1])]
    return [(at, ends.index(False, at)) for at in starts]
