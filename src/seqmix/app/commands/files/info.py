"""`seqmix info`: what a run, a project, a tagger, a corpus, a pool or this installation is."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from seqmix import __version__
from seqmix.app.console import emit
from seqmix.app.description.progress import Description, describe_project, describe_run
from seqmix.app.options import Json, Read, ReadOptions, parse_read
from seqmix.app.reading.data import read_data
from seqmix.data import formats
from seqmix.data.latest_model import newest_model
from seqmix.data.scheme import detect
from seqmix.data.spans import prefixed, spans
from seqmix.onnx_runtime.model_file import describe_model, is_onnx

What = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="A run, project, tagger, pool, file, folder of data or sample; "
        "without it, the installation.",
    ),
]


def info(what: What = "", json_out: Json = False, read: Read = "") -> None:
    """Describe a run, a project, a tagger, a corpus, a pool or this installation."""
    facts, lines = _describe(what, parse_read(read, misaligned="drop"))
    emit(json.dumps(facts, ensure_ascii=False) if json_out else "\n".join(lines))


def _describe(what: str, reading: ReadOptions) -> Description:
    from seqmix.scale.pool import is_pool

    path = Path(what)
    if what and (path / "project.toml").exists():
        return describe_project(path)
    if what and (path / "config.toml").exists():
        return describe_run(path)
    if not what:
        facts = _installation()
    elif ((folder := newest_model(path)) / "tagger.json").exists():
        from seqmix.tagger.model_folders import describe

        facts = describe(folder)
    elif is_onnx(path):
        facts = describe_model(path)
    elif is_pool(path):
        facts = _pool_facts(path)
    else:
        facts = _corpus_facts(what, reading)
    return facts, (f"{key}: {_plain(value)}" for key, value in facts.items())


def _installation() -> dict[str, Any]:
    import torch
    import transformers

    return {
        "seqmix": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": "cuda" if torch.cuda.is_available() else "cpu",
        "formats": list(formats.FORMATS),
    }


def _pool_facts(folder: Path) -> dict[str, Any]:
    from seqmix.scale.pool import open_pool

    pool = open_pool(folder)
    return {
        "sentences": pool.sentences,
        "tokens": pool.tokens,
        "longest": pool.longest,
        "shards": len(pool.shards),
        "bytes": pool.bytes,
        **{f"left out, {why}": n for why, n in pool.left_out.items()},
        "digest": pool.digest,
    }


def _corpus_facts(name: str, reading: ReadOptions) -> dict[str, Any]:
    sentences = tokens = labeled = soft = longest = 0
    tags: Counter[str] = Counter()
    types: Counter[str] = Counter()
    for sentence in read_data(name, reading):
        sentences, tokens = sentences + 1, tokens + len(sentence)
        labeled += sentence.labeled
        soft += any(isinstance(row, Mapping) for row in sentence.tags)
        longest = max(longest, len(sentence))
        hard = [str(tag) for tag in sentence.hardened().tags if tag is not None]
        tags.update(hard)
        if any(prefixed(tag) for tag in hard):
            types.update(span.type for span in spans(hard))
    return {
        "sentences": sentences,
        "labeled": labeled,
        "with soft labels": soft,
        "tokens": tokens,
        "longest": longest,
        "scheme": detect(tags) if tags else None,
        "spans": sum(types.values()),
        "spans by type": dict(sorted(types.items())),
        "tags": dict(tags.most_common()),
        **reading.options.counts,
    }


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number}" for key, number in value.items()) or "none"
    return ", ".join(str(v) for v in value) if isinstance(value, list) else str(value)
