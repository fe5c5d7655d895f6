"""Adapt an encoder to the text it will tag: masked-LM training on sentences without labels.

Words are hidden and guessed from their surroundings, as in the encoder's pretraining but on the user's own text. What comes out is an
ordinary Hugging Face folder, so that it can stand wherever an encoder's name can.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils.logging import (
    disable_progress_bar,
    enable_progress_bar,
    is_progress_bar_enabled,
)

from seqmix.errors import DataError
from seqmix.starter import STARTER
from seqmix.starter.loader import ADAPTED, ADAPTED_VERSION, base_encoder
from seqmix.tagger.adaptation.masked_lm import (
    AdaptSettings,
    MaskedLM,
    held_out_loss,
    load_masked_lm,
    train,
)
from seqmix.tagger.adaptation.masking import Vocabulary, rows_of
from seqmix.tagger.encoders import device_of
from seqmix.tagger.model_folders import writing
from seqmix.tagger.pieces import WordPieces
from seqmix.tagger.training.determinism import repeatable
from seqmix.tagger.training.loop import Progress, seeded

__all__ = ["AdaptSettings", "Adapted", "adapt"]
Text = tuple[str, ...]


@dataclass(frozen=True)
class Adapted:
    """What was done. Losses are nats a hidden piece on the held-out sentences; None where the text is too small to hold any out."""

    folder: Path
    encoder: str
    base: str  # the encoder at the root, when this one had been adapted before
    sentences: int
    held_out: int
    tokens: int
    pieces: int
    steps: int
    lr: float
    before: float | None
    after: float | None


def adapt(
    encoder: str,
    sentences: Iterable[Sequence[str]],
    settings: AdaptSettings,
    out: Path | str,
    rng: np.random.Generator | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Adapted:
    """Train the encoder as a masked LM on tokenized sentences and write it to the folder `out`, which must not be there yet."""
    out, where = Path(out), device_of(device)
    _check_place(out)
    texts = [tuple(tokens) for tokens in sentences if len(tokens)]
    if not texts:
        raise DataError("there is no sentence to adapt to; give text with at least one word in it")
    model, tokenizer = load_masked_lm(encoder)
    base = base_encoder(encoder)
    lr = settings.lr or (3e-4 if base == STARTER else 5e-5)
    seed, rng = (
        (settings.seed, np.random.default_rng(settings.seed)) if rng is None else (None, rng)
    )
    lm, vocabulary = MaskedLM(model.to(where)), Vocabulary.of(tokenizer)
    places = getattr(model.config, "max_position_embeddings", 512) - lm.first_position
    pieces = WordPieces(tokenizer, min(settings.max_pieces, places, tokenizer.model_max_length))
    split = _split(texts, settings.held_out, rng)
    known, unseen = (
        rows_of(
            own,
            pieces,
            vocabulary.special,
            settings.whole_words,
            lm.packs,
            lm.first_position,
            tokenizer.pad_token_id or 0,
        )
        for own in split
    )
    if not known.units.any():
        raise DataError(
            f"no word in {len(texts)} sentences is one that {encoder!r} has pieces for; give text in a language it knows"
        )
    drawn, measured = (int(seed) for seed in rng.integers(2**62, size=2))
    with repeatable(where, lm.packs), seeded(drawn):
        before = held_out_loss(lm, unseen, vocabulary, settings, measured)
        steps = train(lm, known, vocabulary, settings, lr, rng, progress)
        after = held_out_loss(lm, unseen, vocabulary, settings, measured)
    n_tokens, n_pieces = (
        sum(map(len, texts)),
        int((known.segments > 0).sum() + (unseen.segments > 0).sum()),
    )
    done = Adapted(
        out, encoder, base, len(texts), len(split[1]), n_tokens, n_pieces, steps, lr, before, after
    )
    _save(model, tokenizer, done, settings, seed, _fingerprint(texts))
    return done


def _check_place(out: Path) -> None:
    """Fail before the training rather than after it when its result has no place."""
    if out.exists() or out.is_symlink():
        raise DataError(
            "this is there already, and an adapted encoder is not written over anything; choose another folder",
            out,
        )
    nearest = next(path for path in out.absolute().parents if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise DataError("cannot write here: expected a folder that is writable", nearest)


def _split(
    texts: Sequence[Text], share: float, rng: np.random.Generator
) -> tuple[list[Text], list[Text]]:
    """Sentences to train on, in random order, and some to hold out: at least 20 where there are 200.

    subtle: a held-out sentence leaves the training set with all its copies. News repeats itself, and a copy would be remembered.
    """
    distinct = list(dict.fromkeys(texts))
    n = int(share * len(distinct))
    n = max(n, 20) if share and len(distinct) >= 200 else n
    unseen = [distinct[i] for i in rng.permutation(len(distinct))[:n]]
    left_out = set(unseen)
    return [texts[i] for i in rng.permutation(len(texts)) if texts[i] not in left_out], unseen


def _fingerprint(texts: Iterable[Text]) -> str:
    digest = hashlib.sha256()
    for tokens in texts:
        digest.update((json.dumps(tokens) + "\n").encode("ascii"))
    return digest.hexdigest()


def _save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    done: Adapted,
    settings: AdaptSettings,
    seed: int | None,
    sha256: str,
) -> None:
    described = {
        "format_version": ADAPTED_VERSION,
        "kind": "seqmix adapted encoder",
        "base": done.base,
        "encoder": done.encoder,
        "text": {key: getattr(done, key) for key in ("sentences", "held_out", "tokens", "pieces")}
        | {"sha256": sha256},
        "settings": asdict(settings) | {"seed": seed},
        "steps": done.steps,
        "lr": done.lr,
        "held_out_loss": {"before": done.before, "after": done.after},
    }
    with writing(done.folder) as beside, _no_bars():
        model.to("cpu").save_pretrained(str(beside))
        tokenizer.save_pretrained(str(beside))
        (beside / ADAPTED).write_text(
            json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


@contextmanager
def _no_bars() -> Iterator[None]:
    """The library's bar for writing one file would stand between our lines."""
    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            enable_progress_bar()
