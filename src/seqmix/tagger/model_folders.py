"""Model folders: written whole or not at all, and verified by the checksums of their files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from seqmix.data.files import replacing, version_problem
from seqmix.data.overwriting import FolderKind
from seqmix.errors import ModelError, SeqMixError, first_line
from seqmix.starter.guarded import refuse_growth, tokenizing
from seqmix.starter.loader import NO_CODE
from seqmix.tagger.model_size_check import check_counts, check_size
from seqmix.tagger.network import Network

FORMAT_VERSION = 1  # of a tagger
MODEL_FILES = (  # of any model and tokenizer that transformers writes
    *("config.json", "generation_config.json", "model*.safetensors", "*.safetensors.index.json"),
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.txt", "vocab.json", "merges.txt", "*.model", "chat_template.jinja"),
)
TAGGER = FolderKind("a tagger", ("tagger.json",), MODEL_FILES)
_CHUNK = 1 << 20


@contextmanager
def writing(folder: Path, kind: FolderKind) -> Iterator[Path]:
    """Write a model folder like `replacing`, for libraries whose disk errors are not OSErrors."""
    with replacing(folder, kind) as beside:
        mode = beside.stat().st_mode & 0o666
        try:
            yield beside
            for file in beside.rglob("*"):
                if file.is_file():
                    file.chmod(mode)  # some libraries ignore the umask
        except (OSError, SeqMixError):
            raise
        except Exception as error:
            raise ModelError(
                f"cannot write the model folder {folder}: {first_line(error)}"
            ) from error


def checksums(folder: Path) -> dict[str, int]:
    """Return the CRC-32 of every file: a flipped bit in a weight would only be a worse model."""
    return {file.name: _checksum(file) for file in sorted(folder.iterdir())}


def check(folder: Path, expected: Mapping[str, int]) -> None:
    """Refuse files whose checksums differ; names may not lead out of the folder."""
    if not isinstance(expected, Mapping):
        raise ValueError("its checksums must be an object of file names and numbers")
    for name, number in expected.items():
        if name != Path(name).name or not (folder / name).is_file():
            raise ValueError(f"its checksums name {name[:80]!r}, and there is no such file in it")
        if _checksum(folder / name) != number:
            raise ValueError(
                f"{name} is not what was written, its checksum differs; "
                "restore it from a copy, or train again"
            )


def describe(folder: Path) -> dict[str, Any]:
    """Return the content of a saved tagger's tagger.json."""
    try:
        for file in folder.iterdir():
            if not (file.is_file() or file.is_dir()):
                raise ModelError(
                    f"{folder} is not a tagger: {file.name[:80]!r} in it must be a file"
                )
        described: dict[str, Any] = dict(
            json.loads((folder / "tagger.json").read_text(encoding="utf-8"))
        )
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ModelError(f"{folder} is not a tagger: it has no readable tagger.json") from error
    problem = version_problem(folder, described.get("format_version"), FORMAT_VERSION)
    if problem is not None:
        raise ModelError(problem)
    lacking = [key for key in ("encoder", "head", "tags", "settings") if key not in described]
    if lacking:
        raise ModelError(f"{folder} is not a tagger: its tagger.json lacks {', '.join(lacking)}")
    return described


def write_folder(
    folder: Path,
    description: Mapping[str, Any],
    network: Network,
    tokenizer: PreTrainedTokenizerFast | None,
) -> None:
    """Write a tagger's folder: weights, configuration, tokenizer, and tagger.json."""
    weights = {
        key: value.detach().cpu().contiguous() for key, value in network.state_dict().items()
    }
    with writing(folder, TAGGER) as beside:
        save_file(weights, beside / "model.safetensors")
        network.encoder.config.to_json_file(str(beside / "config.json"))
        if tokenizer is not None:
            tokenizer.save_pretrained(str(beside))
        described = {
            "format_version": FORMAT_VERSION,
            "kind": "seqmix tagger",
            **description,
            "checksums": checksums(beside),
        }
        (beside / "tagger.json").write_text(
            json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )


@contextmanager
def open_folder(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the content of tagger.json; any error inside means that the folder is damaged."""
    description = describe(folder)
    try:
        check(folder, description.get("checksums", {}))
        yield description
    except Exception as error:  # every file can be broken in its own way
        raise ModelError(f"the model folder {folder} is damaged: {first_line(error)}") from error


def load_encoder_of(folder: Path, n_tags: int) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Return a tagger's encoder without its weights, and its tokenizer."""
    with tokenizing():
        check_counts(folder / "config.json")
        refuse_growth(folder)
        config = AutoConfig.from_pretrained(folder, **NO_CODE)
        check_size(folder / "model.safetensors", config, n_tags)
        model: PreTrainedModel = AutoModel.from_config(config, trust_remote_code=False)
        return model, PreTrainedTokenizerFast.from_pretrained(folder)


def load_weights(folder: Path, network: Network) -> None:
    """Put the stored weights into a tagger's network."""
    weights = load_file(folder / "model.safetensors")
    missing, unexpected = network.load_state_dict(weights, strict=False)
    wrong = [key for key in missing if ".pooler." not in key] + unexpected
    if wrong:
        raise ValueError(f"its weights do not fit its config.json ({wrong[0]})")


def _checksum(file: Path) -> int:
    number = 0
    with file.open("rb") as content:
        while chunk := content.read(_CHUNK):
            number = crc32(chunk, number)
    return number
