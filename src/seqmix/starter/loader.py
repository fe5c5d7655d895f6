"""Models by name: `starter`, a local folder, or anything on the Hugging Face hub. Code in or named by a model folder is never run."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.initialization import no_init_weights
from transformers.utils.logging import (
    disable_progress_bar,
    enable_progress_bar,
    is_progress_bar_enabled,
)

from seqmix.data.format_versions import foreign
from seqmix.errors import MissingExtraError, ModelError
from seqmix.starter.guarded import PROBE, refuse_grown, refuse_growth, tokenizing

STARTER = "starter"
ADAPTED, ADAPTED_VERSION = "adapt.json", 1  # what `seqmix adapt` leaves in a folder it wrote
TIED = frozenset(
    ("lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
)  # heads that are not stored
_FILES = Path(__file__).parent / "files"
# What keeps a stranger's files from running code: none of their own is imported, nor asked about; no kernel that their config names is
# fetched from the hub; weights are safetensors, never a pickle.
NO_CODE: Mapping[str, Any] = {
    "trust_remote_code": False,
    "attn_implementation": None,
    "experts_implementation": None,
}
_SAFE: Mapping[str, Any] = {**NO_CODE, "use_safetensors": True, "dtype": torch.float32}
_SPECIAL = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}


def load_encoder(
    name: str = STARTER, masked_lm: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """An encoder in float32 with its tokenizer; with its masked-LM head when asked."""
    if name == STARTER:
        config = BertConfig.from_dict(_config("encoder"))
        with no_init_weights():  # every weight is about to be read
            model: PreTrainedModel = (
                BertForMaskedLM(config) if masked_lm else BertModel(config, add_pooling_layer=False)
            )
        weights = _weights("encoder")
        if not masked_lm:
            weights = {
                key.removeprefix("bert."): value
                for key, value in weights.items()
                if key.startswith("bert.")
            }
        fill(model, weights)
        return model.eval(), starter_tokenizer()
    with _telling(name):
        kind = AutoModelForMaskedLM if masked_lm else AutoModel
        model = kind.from_pretrained(name, **_SAFE)
        return model.eval(), _tokenizer(name)


def load_language_model(name: str = STARTER) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A causal language model in float32 with its tokenizer. A folder that holds one .gguf file is read as GGUF."""
    if name == STARTER:
        with no_init_weights():
            model: PreTrainedModel = GPT2LMHeadModel(GPT2Config.from_dict(_config("lm")))
        fill(model, _weights("lm"))
        return model.eval(), starter_tokenizer()
    gguf = sorted(Path(name).glob("*.gguf")) if Path(name).is_dir() else []
    extra: dict[str, Any] = {"gguf_file": gguf[0].name} if gguf else {}
    with _telling(name):
        refuse_growth(Path(name))
        model = AutoModelForCausalLM.from_pretrained(name, **_SAFE, **extra)
        return model.eval(), AutoTokenizer.from_pretrained(name, trust_remote_code=False, **extra)


def base_encoder(name: str) -> str:
    """The encoder at the root of an adapted one, so that it keeps what suits its kind, as the learning rate; any other is its own."""
    described = Path(name) / ADAPTED
    if name == STARTER or not described.is_file():
        return name
    try:
        found: dict[str, Any] = dict(json.loads(described.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ModelError(
            f"the adapted encoder {name} is damaged: its {ADAPTED} cannot be read; adapt again"
        ) from error
    if (why := foreign(Path(name), found.get("format_version"), ADAPTED_VERSION)) is not None:
        raise ModelError(why)
    base = found.get("base")
    if not isinstance(base, str):
        raise ModelError(
            f"the adapted encoder {name} is damaged: its {ADAPTED} does not name its base; adapt again"
        )
    return base


def plain_backend(tokenizer: PreTrainedTokenizerFast) -> Any:
    """The tokenizer's machine, neither padding nor cutting. subtle: many come with both, and any caller may turn them on for all."""
    backend = deepcopy(tokenizer.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    if backend.normalizer is not None:
        with tokenizing():
            refuse_grown(backend.normalizer.normalize_str(PROBE))
    return backend


def starter_tokenizer() -> PreTrainedTokenizerFast:
    """WordPiece over bert-base-cased's vocabulary; [CLS] and [SEP] double as BOS and EOS of the language model."""
    return PreTrainedTokenizerFast(
        tokenizer_file=str(_FILES / "tokenizer.json"),
        bos_token="[CLS]",
        eos_token="[SEP]",
        model_max_length=256,
        **_SPECIAL,
    )


def _config(which: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((_FILES / f"{which}.json").read_text(encoding="utf-8"))
    return config


@cache  # a loop loads the starter dozens of times; whoever loads copies
def _weights(which: str) -> dict[str, torch.Tensor]:
    return read_int8(_FILES / f"{which}.int8.safetensors")


def read_int8(path: Path) -> dict[str, torch.Tensor]:
    """Float32 weights: int8 matrices times the float16 scale of each row, the rest widened."""
    stored = load_file(path)
    return {
        key: value.float() * stored[f"{key}.scale"].float()[:, None]
        if value.dtype == torch.int8
        else value.float()
        for key, value in stored.items()
        if not key.endswith(".scale")
    }


def fill(model: PreTrainedModel, weights: dict[str, torch.Tensor]) -> None:
    """Put stored weights into a model of their configuration."""
    missing, unexpected = model.load_state_dict(weights, strict=False)
    model.tie_weights()
    if set(missing) - TIED or unexpected:
        raise ModelError(
            f"the starter's files do not fit its configuration: missing {missing[:3]}, unexpected {unexpected[:3]}"
        )


def _tokenizer(name: str) -> PreTrainedTokenizerFast:
    """subtle: byte-level tokenizers see a word as it stands in running text only with the space in front."""
    refuse_growth(Path(name))
    tokenizer = AutoTokenizer.from_pretrained(name, add_prefix_space=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise ModelError(
            f"the model {name!r} has no fast tokenizer (tokenizer.json), which is needed to align pieces with words"
        )
    fast: PreTrainedTokenizerFast = tokenizer
    return fast


@contextmanager
def _telling(name: str) -> Iterator[None]:
    """Whatever a hub or a folder does wrong, as one line that says what to do; the loader's own chatter is kept quiet."""
    chatter = [
        (logger, logger.level)
        for logger in map(logging.getLogger, ("transformers", "huggingface_hub"))
    ]
    for logger, _ in chatter:
        logger.setLevel(logging.ERROR)
    bars = is_progress_bar_enabled() and not sys.stderr.isatty()
    if bars:
        disable_progress_bar()
    try:
        with tokenizing():
            yield
    except ModelError:
        raise
    except ImportError as error:
        if "gguf" in str(error).lower():
            raise MissingExtraError("gguf", f"the GGUF model {name!r}") from error
        raise ModelError(f"cannot load the model {name!r}: {_first_line(error)}") from error
    except Exception as error:  # transformers raises a dozen kinds here
        where = "the folder" if Path(name).exists() else "no such folder here, and from the hub:"
        raise ModelError(
            f"cannot load the model {name!r}: {where} {_first_line(error)}; "
            "give a Hugging Face name or folder, or 'starter', which needs no network"
        ) from error
    finally:
        for logger, level in chatter:
            logger.setLevel(level)
        if bars:
            enable_progress_bar()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
