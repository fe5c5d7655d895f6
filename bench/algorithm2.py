"""Algorithm 2 read literally from the paper, loop by loop: the fast path is checked against it.

Nothing here is shared with the package but the values. Given the pairs to visit and their λ, it
mixes token by token over the whole table (Eq. 7), mixes labels row by row (Eq. 8), rewrites both
parents, scores each candidate alone (Eq. 9) and keeps those in the range (Eq. 10). Beyond the
paper, as in the package: no piece of a parent's word comes out, no character the text does not
have, and no sentence whose heaviest tags are no spans of BIO where its parent's are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch

Row = str | Mapping[str, float] | None


def nearest_token(
    mixed: np.ndarray, vectors: np.ndarray, admissible: Sequence[bool], parents: Sequence[int]
) -> tuple[int, float]:
    """argmin over e in E of the L2 distance, one entry after the other."""
    best, least = -1, math.inf
    for entry in range(len(vectors)):
        if not admissible[entry] or entry in parents:
            continue
        distance = math.sqrt(float(((vectors[entry].astype(np.float64) - mixed) ** 2).sum()))
        if distance < least:
            best, least = entry, distance
    return best, least


def mix_label(one: Row, other: Row, weight: float) -> dict[str, float]:
    """λ y_i + (1 − λ) y_j over all tags."""
    mixed: dict[str, float] = {}
    for row, share in ((one, weight), (other, 1 - weight)):
        for tag, part in ({row: 1.0} if isinstance(row, str) else dict(row or {})).items():
            mixed[tag] = mixed.get(tag, 0.0) + share * part
    return mixed


def legal(rows: Sequence[Row]) -> bool:
    """Whether the heaviest tags are BIO: an I- follows the B- or I- of its type."""
    before = "O"
    for row in rows:
        tag = (
            row
            if isinstance(row, str)
            else min(row, key=lambda name: (-row[name], name))
            if row
            else "O"
        )
        if tag != "O" and tag[:2] not in ("B-", "I-"):
            return False
        if tag[:2] == "I-" and before not in (f"B-{tag[2:]}", tag):
            return False
        before = tag
    return True


def perplexity(text: str, model: torch.nn.Module, tokenizer, bos: int) -> float:
    """exp of the mean natural-log loss of the sentence alone, in one forward pass."""
    ids = [bos, *tokenizer(text, add_special_tokens=False).input_ids]
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].double()
    loss = 0.0
    for at in range(1, len(ids)):
        loss -= float(torch.log_softmax(logits[at - 1], dim=0)[ids[at]])
    return math.exp(loss / (len(ids) - 1))


def generate(
    sentences: Sequence,
    pairs: Iterable[tuple],
    weights: Iterable[float],
    vectors: np.ndarray,
    words: Sequence[str],
    admissible: Sequence[bool],
    split: Callable[[str], Sequence[int]],
    score: Callable[[str], float] | None,
    low: float,
    high: float,
    n: int,
    whole: bool,
    nearest: Callable[..., tuple[int, float]] = nearest_token,
) -> list[tuple[tuple[str, ...], list[Row], float]]:
    """Tokens, tag rows and score of each sentence kept, in order, up to n."""
    letters = {letter for sentence in sentences for token in sentence.tokens for letter in token}
    spelled = [
        bool(fine) and set(word) <= letters for fine, word in zip(admissible, words, strict=True)
    ]
    admissible = spelled if sum(spelled) >= 32 else admissible
    entry_of = {}
    for entry in range(len(words) - 1, -1, -1):
        if admissible[entry]:
            entry_of[words[entry]] = entry
    kept: list[tuple[tuple[str, ...], list[Row], float]] = []
    for (one, other), weight in zip(pairs, weights, strict=False):
        mixed_tokens, mixed_rows = [], []
        for t in range(one.end - one.start):
            word_i, word_j = (
                sentences[one.parent].tokens[one.start + t],
                sentences[other.parent].tokens[other.start + t],
            )
            e_i = np.mean([vectors[p].astype(np.float64) for p in split(word_i)], axis=0)
            e_j = np.mean([vectors[p].astype(np.float64) for p in split(word_j)], axis=0)
            parts = [word_i, word_j, *(words[p] for p in (*split(word_i), *split(word_j)))]
            excluded = [entry_of[w] for w in parts if w in entry_of]
            entry, _ = nearest(weight * e_i + (1 - weight) * e_j, vectors, admissible, excluded)
            mixed_tokens.append(words[entry])
            mixed_rows.append(
                mix_label(
                    sentences[one.parent].tags[one.start + t],
                    sentences[other.parent].tags[other.start + t],
                    weight,
                )
            )
        for stretch in (one,) if whole else (one, other):
            parent = sentences[stretch.parent]
            tokens = (*parent.tokens[: stretch.start], *mixed_tokens, *parent.tokens[stretch.end :])
            rows = [*parent.tags[: stretch.start], *mixed_rows, *parent.tags[stretch.end :]]
            if legal(parent.tags) and not legal(rows):
                continue
            value = score(" ".join(tokens)) if score is not None else 0.0
            if score is None or low <= value <= high:
                kept.append((tokens, rows, value))
            if len(kept) >= n:
                return kept
    return kept
