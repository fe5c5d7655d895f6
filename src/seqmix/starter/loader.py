"""Load models by name: `starter`, a local folder, or a Hugging Face name; their code never runs."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForTokenClassification,
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

from seqmix.data.files import version_problem
from seqmix.errors import MissingExtraError, ModelError, first_line
from seqmix.starter.guarded import refuse_growth, tokenizing

STARTER = "starter"
ADAPTED, ADAPTED_VERSION = "adapt.json", 1  # the file that `seqmix adapt` adds to its folders
TIED = frozenset(
    ("lm_head.weight", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias")
)  # heads that are not stored
STARTER_FILES = Path(__file__).parent / "files"
# Downloaded files must not run code: none of their own is imported, no kernel that their config
# names is fetched from the hub, and weights are safetensors, never a pickle.
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
    """Return an encoder in float32 and its tokenizer, on request with its masked-LM head."""
    if name == STARTER:
        config = BertConfig.from_dict(_config("encoder"))
        with no_init_weights():  # every weight is about to be read
            model: PreTrainedModel = (
                BertForMaskedLM(config) if masked_lm else BertModel(config, add_pooling_layer=False)
            )
        weights = starter_weights("encoder")
        if not masked_lm:
            weights = {
                key.removeprefix("bert."): value
                for key, value in weights.items()
                if key.startswith("bert.")
            }
        fill(model, weights)
        return model.eval(), starter_tokenizer()
    with _as_model_error(name):
        kind = AutoModelForMaskedLM if masked_lm else AutoModel
        model = kind.from_pretrained(name, **_SAFE)
        return model.eval(), _tokenizer(name)


def load_language_model(name: str = STARTER) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return a causal language model in float32 and its tokenizer.

    A folder that holds a .gguf file is read as GGUF.
    """
    if name == STARTER:
        with no_init_weights():
            model: PreTrainedModel = GPT2LMHeadModel(GPT2Config.from_dict(_config("lm")))
        fill(model, starter_weights("lm"))
        return model.eval(), starter_tokenizer()
    gguf = sorted(Path(name).glob("*.gguf")) if Path(name).is_dir() else []
    options: dict[str, Any] = {"gguf_file": gguf[0].name} if gguf else {}
    with _as_model_error(name):
        refuse_growth(Path(name))
        model = AutoModelForCausalLM.from_pretrained(name, **_SAFE, **options)
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False, **options)
        return model.eval(), tokenizer


def load_token_classifier(name: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return a Hugging Face model for token classification in float32, and its tokenizer."""
    with _as_model_error(name):
        model, info = AutoModelForTokenClassification.from_pretrained(
            name, output_loading_info=True, **_SAFE
        )
        if info["missing_keys"]:
            raise ModelError(
                f"the model {name!r} must be one for token classification; "
                f"it has no {min(info['missing_keys'])}"
            )
        return model.eval(), _tokenizer(name)


def base_encoder(name: str) -> str:
    """Return the name of the encoder that an adapted one started from, or the name itself."""
    file = Path(name) / ADAPTED
    if name == STARTER or not file.is_file():
        return name
    damaged = f"the adapted encoder {name} is damaged: its {ADAPTED}"
    try:
        content: dict[str, Any] = dict(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ModelError(f"{damaged} cannot be read; adapt again") from error
    problem = version_problem(Path(name), content.get("format_version"), ADAPTED_VERSION)
    if problem is not None:
        raise ModelError(problem)
    base = content.get("base")
    if not isinstance(base, str):
        raise ModelError(f"{damaged} does not name its base; adapt again")
    return base


def default_learning_rate(encoder: str) -> float:
    """Return 3e-4 for the starter and encoders adapted from it, the paper's 5e-5 for others."""
    return 3e-4 if base_encoder(encoder) == STARTER else 5e-5


def starter_tokenizer() -> PreTrainedTokenizerFast:
    """Return WordPiece over bert-base-cased's vocabulary; [CLS] and [SEP] are also BOS and EOS."""
    return PreTrainedTokenizerFast(
        tokenizer_file=str(STARTER_FILES / "tokenizer.json"),
        bos_token="[CLS]",
        eos_token="[SEP]",
        model_max_length=256,
        **_SPECIAL,
    )


def _config(model: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(
        (STARTER_FILES / f"{model}.json").read_text(encoding="utf-8")
    )
    return config


@cache  # a loop loads the starter dozens of times; callers copy
def starter_weights(model: str) -> dict[str, torch.Tensor]:
    """Return the weights of the starter's `encoder` or `lm`."""
    return read_int8(STARTER_FILES / f"{model}.int8.safetensors")


def read_int8(path: Path) -> dict[str, torch.Tensor]:
    """Return float32 weights: int8 matrices times the float16 scale of each row, others widened."""
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
            "the starter's files do not fit its configuration: "
            f"missing {missing[:3]}, unexpected {unexpected[:3]}"
        )


def _tokenizer(name: str) -> PreTrainedTokenizerFast:
    """Load a fast tokenizer; a byte-level one needs the space in front of a word."""
    refuse_growth(Path(name))
    tokenizer = AutoTokenizer.from_pretrained(name, add_prefix_space=True, trust_remote_code=False)
    if not tokenizer.is_fast:
        raise ModelError(
            f"the model {name!r} has no fast tokenizer (tokenizer.json), "
            "which is needed to align pieces with words"
        )
    fast: PreTrainedTokenizerFast = tokenizer
    return fast


@contextmanager
def _as_model_error(name: str) -> Iterator[None]:
    """Turn errors of a hub or folder into one line that says what to do, without log messages."""
    loggers = [logging.getLogger(name) for name in ("transformers", "huggingface_hub")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with tokenizing(), without_bars():
            yield
    except ModelError:
        raise
    except ImportError as error:
        if "gguf" in str(error).lower():
            raise MissingExtraError("gguf", f"the GGUF model {name!r}") from error
        raise ModelError(f"cannot load the model {name!r}: {first_line(error, 200)}") from error
    except Exception as error:  # transformers raises a dozen kinds here
        where = "the folder" if Path(name).exists() else "no such folder here, and from the hub:"
        raise ModelError(
            f"cannot load the model {name!r}: {where} {first_line(error, 200)}; "
            "give a Hugging Face name or folder, or 'starter', which needs no network"
        ) from error
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def without_bars() -> Iterator[None]:
    """Show no progress bars of transformers where nobody watches them."""
    bars = is_progress_bar_enabled() and not sys.stderr.isatty()
    if bars:
        disable_progress_bar()
    try:
        yield
    finally:
        if bars:
            enable_progress_bar()
