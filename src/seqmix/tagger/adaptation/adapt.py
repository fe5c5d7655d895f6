"""Adapt an encoder to the text it will tag: masked-LM training on sentences without labels.

Words are hidden and guessed from their context, as in the encoder's pretraining but on the user's
text.
The result is an ordinary Hugging Face folder, which can be given wherever an encoder's name can.
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

from seqmix.data.overwriting import NEW
from seqmix.errors import DataError, ModelError
from seqmix.starter.loader import (
    ADAPTED,
    ADAPTED_VERSION,
    base_encoder,
    default_learning_rate,
)
from seqmix.tagger.adaptation.checkpoint import Checkpoint
from seqmix.tagger.adaptation.masked_lm import (
    MaskedLM,
    held_out_loss,
    load_masked_lm,
    pieces_in,
    train,
)
from seqmix.tagger.adaptation.masking import Rows, Vocabulary, rows_of
from seqmix.tagger.encoders import device_of
from seqmix.tagger.model_folders import writing
from seqmix.tagger.settings import AdaptSettings
from seqmix.tagger.training.determinism import repeatable, seeded
from seqmix.tagger.training.loop import Progress
from seqmix.tagger.windows import WordPieces

Text = tuple[str, ...]


@dataclass(frozen=True)
class Adapted:
    """What was adapted.

    Losses are nats per hidden piece on the held-out sentences, None if no sentence was held out.
    """

    folder: Path
    encoder: str
    base: str  # what the encoder was adapted from, or the encoder itself
    sentences: int
    held_out: int
    tokens: int
    pieces: int
    steps: int
    lr: float
    before: float | None
    after: float | None
    pieces_read: int  # in all steps


def adapt(
    encoder: str,
    sentences: Iterable[Sequence[str]],
    settings: AdaptSettings,
    out: Path | str,
    rng: np.random.Generator | None = None,
    device: str | None = None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Adapted:
    """Train an encoder as a masked LM on tokenized sentences, and write it to a new folder.

    Args:
        encoder: `starter`, a Hugging Face name, or a folder.
        sentences: The tokens of each sentence; labels are not needed.
        settings: How to train.
        out: The folder to write, which must not exist.
        rng: The source of all randomness; by default made from the settings' seed.
        device: `cpu` or `cuda`; by default the best available.
        progress: Called with (steps done, steps in all, recent loss).
        checkpoint: A file to resume from if it is there, written while it trains.
    """
    out, target = Path(out), device_of(device)
    _check_place(out)
    texts = _with_words(sentences)
    model, tokenizer = load_masked_lm(encoder)
    lr = settings.lr or default_learning_rate(encoder)
    seed = settings.seed if rng is None else None
    rng = rng or np.random.default_rng(seed)
    lm, vocabulary = MaskedLM(model.to(target)), Vocabulary.of(tokenizer)
    split = hold_out(texts, settings.held_out, rng)
    seen, unseen = _lay_out(split, lm, vocabulary, tokenizer, settings)
    _check_pieces(seen, encoder, len(texts))
    dropout_seed, mask_seed = (int(drawn) for drawn in rng.integers(2**62, size=2))
    with repeatable(target, lm.packs), seeded(dropout_seed):
        before = held_out_loss(lm, unseen, vocabulary, settings, mask_seed)
        kept = None if checkpoint is None else Checkpoint(checkpoint)
        steps = train(lm, seen, vocabulary, settings, lr, rng, progress, kept)
        after = held_out_loss(lm, unseen, vocabulary, settings, mask_seed)
    n_pieces = int((seen.segments > 0).sum() + (unseen.segments > 0).sum())
    sizes = (len(texts), len(split[1]), sum(map(len, texts)), n_pieces, steps)
    read = pieces_in(seen, settings, steps)
    adapted = Adapted(out, encoder, base_encoder(encoder), *sizes, lr, before, after, read)
    _save(model, tokenizer, adapted, settings, seed, _fingerprint(texts))
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return adapted


def pieces_read(folder: Path) -> int | None:
    """Return how many word pieces adapting this encoder read; None where its folder is older."""
    try:
        read = json.loads((folder / ADAPTED).read_text(encoding="utf-8")).get("pieces_read")
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise ModelError(f"{folder} is not an adapted encoder: see its {ADAPTED}") from error
    return read if isinstance(read, int) else None


def _with_words(sentences: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    texts = [tuple(tokens) for tokens in sentences if len(tokens)]
    if not texts:
        raise DataError("there is no sentence to adapt to; give text with at least one word in it")
    return texts


def _check_place(out: Path) -> None:
    """Fail before the training rather than after it if the result cannot be written."""
    if out.exists() or out.is_symlink():
        raise DataError(
            "already exists; adapted encoders never overwrite anything: choose another folder", out
        )
    nearest = next(path for path in out.absolute().parents if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise DataError("cannot write here: expected a folder that is writable", nearest)


def _check_pieces(seen: Rows, encoder: str, sentences: int) -> None:
    """Refuse text in which the encoder knows no word."""
    if not seen.units.any():
        raise DataError(
            f"{encoder!r} has pieces for no word in {sentences} sentences; "
            "give text in a language it knows"
        )


def hold_out(
    texts: Sequence[Text], share: float, rng: np.random.Generator
) -> tuple[list[Text], list[Text]]:
    """Return the sentences to train on, in random order, and those to hold out: 20 or more of 200.

    A held-out sentence leaves the training set with all its copies, which would be remembered.
    """
    distinct = list(dict.fromkeys(texts))
    n = int(share * len(distinct))
    n = max(n, 20) if share and len(distinct) >= 200 else n
    unseen = [distinct[i] for i in rng.permutation(len(distinct))[:n]]
    excluded = set(unseen)
    return [texts[i] for i in rng.permutation(len(texts)) if texts[i] not in excluded], unseen


def _lay_out(
    split: Iterable[Sequence[Text]],
    lm: MaskedLM,
    vocabulary: Vocabulary,
    tokenizer: PreTrainedTokenizerFast,
    settings: AdaptSettings,
) -> list[Rows]:
    """Return the rows of pieces of both parts of the text."""
    places = getattr(lm.model.config, "max_position_embeddings", 512) - lm.first_position
    limit = min(settings.max_pieces, places, tokenizer.model_max_length)
    pieces, pad = WordPieces(tokenizer, limit), tokenizer.pad_token_id or 0
    how = (vocabulary.special, settings.whole_words, lm.packs, lm.first_position, pad)
    return [rows_of(part, pieces, *how) for part in split]


def _fingerprint(texts: Iterable[Text]) -> str:
    digest = hashlib.sha256()
    for tokens in texts:
        digest.update((json.dumps(tokens) + "\n").encode("ascii"))
    return digest.hexdigest()


def _save(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    adapted: Adapted,
    settings: AdaptSettings,
    seed: int | None,
    sha256: str,
) -> None:
    described = {
        "format_version": ADAPTED_VERSION,
        "kind": "seqmix adapted encoder",
        "base": adapted.base,
        "encoder": adapted.encoder,
        "text": {
            key: getattr(adapted, key) for key in ("sentences", "held_out", "tokens", "pieces")
        }
        | {"sha256": sha256},
        "settings": asdict(settings) | {"seed": seed},
        "steps": adapted.steps,
        "pieces_read": adapted.pieces_read,
        "lr": adapted.lr,
        "held_out_loss": {"before": adapted.before, "after": adapted.after},
    }
    with writing(adapted.folder, NEW) as beside, _no_bars():
        model.to("cpu").save_pretrained(str(beside))
        tokenizer.save_pretrained(str(beside))
        (beside / ADAPTED).write_text(
            json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


@contextmanager
def _no_bars() -> Iterator[None]:
    """Hide the library's progress bar, which would appear between our lines."""
    shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            enable_progress_bar()
