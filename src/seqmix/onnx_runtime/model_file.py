"""The file of an exported tagger: an ONNX graph, and in its metadata all else it takes to predict.

seqmix       what it is: format, encoder, head, tags, precision, limits of a window
tokenizer    a tokenizer.json
transitions  the scores of starting, moving and ending; forbidden moves have a very low one
crf          the same without what the tag scheme forbids, of a CRF
checksum     the CRC-32 of the file with zeros in its place
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from seqmix.data.files import version_problem
from seqmix.data.overwriting import other_file
from seqmix.data.tagset import TagSet
from seqmix.errors import ModelError, SeqMixError, first_line
from seqmix.extras import import_extra
from seqmix.onnx_runtime.chain import Chain
from seqmix.starter.guarded import PROBE, refuse_growing, refuse_grown, tokenizing
from seqmix.tagger.windows import PlainTokenizer, WordPieces

FORMAT_VERSION = 1
INPUTS, OUTPUT = ("input_ids", "attention_mask"), "logits"  # [rows, width], [rows, width, tags]
_BLANK = "00000000"
_MARK = b"crc32:"


@dataclass(frozen=True)
class Model:
    """An exported tagger, ready to run."""

    session: Any  # an `onnxruntime.InferenceSession`
    description: dict[str, Any]
    tag_set: TagSet
    chain: Chain | None
    pieces: WordPieces


def is_onnx(path: Path) -> bool:
    """Whether this is the name of an exported tagger's file."""
    return path.suffix.lower() == ".onnx"


def refuse_other_file(path: Path) -> None:
    """Refuse to write over a file that is not an exported tagger."""
    if path.is_file() and _MARK not in path.read_bytes():
        raise other_file(path, "a tagger exported by seqmix")


def open_model(path: Path) -> Model:
    """Open an exported tagger; nothing in the file can run code."""
    runtime = import_extra("onnxruntime", "onnx", "running a tagger exported to ONNX")
    with _as_model_error(path):
        content = path.read_bytes()
        _verify(content, path)
        session = runtime.InferenceSession(
            content, _options(runtime), providers=["CPUExecutionProvider"]
        )
        held = session.get_modelmeta().custom_metadata_map
        description = _described(held, path)
        tag_set = TagSet(tuple(description["tags"]))
        shape = session.get_outputs()[0].shape
        if [i.name for i in session.get_inputs()] != [*INPUTS] or shape[-1] != len(tag_set):
            raise ValueError("its graph does not fit its description")
        chain = None if description["head"] != "crf" else _chain(held["crf"], len(tag_set))
        return Model(session, description, tag_set, chain, _pieces(held, description, path))


def describe_model(path: Path) -> dict[str, Any]:
    """Return what an exported tagger is."""
    return {"file": "ONNX", **open_model(path).description}


def metadata(description: Mapping[str, Any], **more: Any) -> dict[str, str]:
    """Return the metadata of a file; its checksum is filled in by `seal`."""
    described = {"format_version": FORMAT_VERSION, "kind": "seqmix tagger", **description}
    values = {"seqmix": described, **more}
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in values.items()
    }
    return {**texts, "checksum": _MARK.decode() + _BLANK}


def seal(path: Path) -> None:
    """Fill in the checksum of a written file."""
    content = path.read_bytes()
    at = content.rindex(_MARK) + len(_MARK)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(f"{crc32(content):08x}".encode())


def _verify(content: bytes, path: Path) -> None:
    """Refuse a file that is not as it was written; one without a checksum is not ours."""
    at = content.rfind(_MARK) + len(_MARK)
    if at < len(_MARK):
        raise ModelError(
            f"{path} is not a tagger exported by seqmix; "
            "seqmix export MODEL --to onnx --out FILE.onnx writes one"
        )
    number = crc32(content[:at])
    number = crc32(_BLANK.encode(), number)
    if crc32(content[at + len(_BLANK) :], number) != int(content[at : at + len(_BLANK)], 16):
        raise ValueError("its checksum differs; restore it from a copy, or export it again")


def _described(held: Mapping[str, str], path: Path) -> dict[str, Any]:
    description: dict[str, Any] = dict(json.loads(held["seqmix"]))
    problem = version_problem(path, description.get("format_version"), FORMAT_VERSION)
    if problem is not None:
        raise ModelError(problem)
    return description


def _chain(text: str, tags: int) -> Chain:
    scores = json.loads(text)
    arrays = [np.array(scores[key], dtype=np.float64) for key in ("transitions", "start", "end")]
    if [array.shape for array in arrays] != [(tags, tags), (tags,), (tags,)]:
        raise ValueError("its transitions do not fit its tags")
    return Chain(*arrays)


def _pieces(held: Mapping[str, str], description: Mapping[str, Any], path: Path) -> WordPieces:
    from tokenizers import Tokenizer

    refuse_growing(held["tokenizer"], path)
    with tokenizing():
        backend = Tokenizer.from_str(held["tokenizer"])
        if backend.normalizer is not None:
            refuse_grown(backend.normalizer.normalize_str(PROBE))
    window = description["window"]
    before, after = (tuple(map(int, window[key])) for key in ("before", "after"))
    tokenizer = PlainTokenizer(backend, before, after, int(window["unknown"]))
    return WordPieces(tokenizer, int(window["pieces"]))


def _options(runtime: Any) -> Any:
    """Return options for batches side by side, each on one thread."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


@contextmanager
def _as_model_error(path: Path) -> Iterator[None]:
    try:
        yield
    except SeqMixError:
        raise
    except OSError as error:
        raise ModelError(f"cannot read the tagger {path}: {error.strerror}") from error
    except Exception as error:  # every file can be broken in its own way
        raise ModelError(f"the tagger {path} is damaged: {first_line(error, 200)}") from error
