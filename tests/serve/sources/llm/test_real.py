"""A real OpenAI-compatible server, llama.cpp's, with a small model of random weights.

It needs llama-cpp-python[server], here or in the Python that the variable LLAMA_PYTHON names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest
from sqlalchemy import select

from seqmix.serve.addresses import origin
from seqmix.serve.sources.llm.asking import Asker, read_usage
from seqmix.serve.sources.llm.endpoint import Endpoint
from seqmix.serve.sources.offers import Sources
from seqmix.serve.sources.records import LLM, add_source
from seqmix.serve.store.database.engine import sqlite_url
from seqmix.serve.store.events import read_events
from seqmix.serve.store.schema import suggestions
from tests.support.stores import find_sentence, small_store
from tests.support.waiting import until

pytestmark = pytest.mark.ci
WIDTH, INNER, CONTEXT = 32, 64, 4096


def write_model(path: Path) -> None:
    """A llama of one layer over bytes, with random weights."""
    gguf = pytest.importorskip("gguf", reason="needs the extra gguf")
    kind = gguf.TokenType
    tokens = [
        b"<unk>",
        b"<s>",
        b"</s>",
        *(f"<0x{i:02X}>".encode() for i in range(256)),
        b"\xe2\x96\x81",
    ]
    kinds = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256, kind.NORMAL]
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(2)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // 2)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    shapes = {
        "token_embd": (len(tokens), WIDTH),
        "output": (len(tokens), WIDTH),
        **{f"blk.0.attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")},
        "blk.0.ffn_gate": (INNER, WIDTH),
        "blk.0.ffn_up": (INNER, WIDTH),
        "blk.0.ffn_down": (WIDTH, INNER),
    }
    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(0, 0.5, shape).astype(np.float32))
    for name in ("output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"):
        writer.add_tensor(f"{name}.weight", np.ones(WIDTH, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def llama(tmp_path: Path) -> Iterator[str]:
    """The address of a server."""
    python = os.environ.get("LLAMA_PYTHON")
    if python is None and importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python[server] is not installed, and LLAMA_PYTHON names no Python")
    write_model(tmp_path / "tiny.gguf")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [
        "-m",
        "llama_cpp.server",
        "--model",
        str(tmp_path / "tiny.gguf"),
        "--n_ctx",
        str(CONTEXT),
    ]
    place = ["--host", "127.0.0.1", "--port", str(port), "--n_threads", "1"]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [python or sys.executable, *words, *place], stdout=log, stderr=log, env=environment
        )
        try:
            until(lambda: answers(f"http://127.0.0.1:{port}/v1/models", server))
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(30)


def answers(url: str, server: subprocess.Popen[bytes]) -> bool:
    assert server.poll() is None, "the server ended"
    try:
        return bool(urlopen(url, timeout=5).status == 200)
    except OSError:
        return False


def test_a_real_server_is_asked_and_what_its_random_model_says_is_checked(
    llama: str, tmp_path: Path
) -> None:
    (tmp_path / "store.sqlite").touch()
    with small_store(sqlite_url(tmp_path / "store.sqlite"), n=3) as store:
        settings = Endpoint(llama, "tiny", per_minute=10_000).to_json()
        source = add_source(store, "llama", LLM, settings)
        allowed: list[str] = []
        asker = Asker(store, lambda: allowed)
        assert not asker.step()
        allowed.append(origin(llama))
        until(lambda: not asker.step() and rows(store) == 3)

        used = read_usage(store, source)
        assert used["requests"] >= 3
        assert used["tokens"] > 300  # as the server counted them
        for i in range(3):
            sentence = find_sentence(store, f"s:{i}")
            for offer in Sources(store).offers(sentence):
                for mark in offer.marks:
                    assert 0 <= mark.start < mark.end <= len(sentence)
                    assert mark.tag in store.tags
        assert list(read_events(store)) == []


def rows(store: object) -> int:
    """How many sentences have a suggestion, or why there is none."""
    with store.reading() as conn:  # type: ignore[attr-defined]
        found = [json.loads(spans) for spans in conn.execute(select(suggestions.c.spans)).scalars()]
    return sum(bool(row["marks"] or row.get("problem")) or row["marks"] == [] for row in found)
