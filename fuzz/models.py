"""Target: the files of a tagger's folder.

Its checksums are taken out, so that the loader itself has to notice what is wrong.
"""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast
from transformers.utils import logging

from fuzz.target import Target, named
from seqmix.data.sentence import Sentence
from seqmix.data.tagset import TagSet
from seqmix.tagger import Settings, Tagger

_HEADER = (
    "header"  # stands for the header of model.safetensors; the numbers behind it stay what they are
)
_NAMES = ("tagger.json", "config.json", "tokenizer.json", "tokenizer_config.json", _HEADER)
_PIECES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b")
_SENTENCE = Sentence("s", ("ab", "b", "é"))


def targets() -> list[Target]:
    """The model folder."""
    return [
        Target(
            "model", _load, lambda: [f"{name}\n".encode() + _good()[name] for name in _NAMES], 0.1
        )
    ]


def _load(data: bytes, folder: Path) -> None:
    """Good files stand in for those the input lacks; a folder that can be loaded can also tag."""
    files = named(data, _good(), _NAMES)
    header = files.pop(_HEADER)
    files["model.safetensors"] = (
        len(header).to_bytes(8, "little") + header + files["model.safetensors"]
    )
    for name, content in files.items():
        (folder / name).write_bytes(content)
    logging.set_verbosity_error()
    list(Tagger.load(folder, "cpu").predict([_SENTENCE]))


@cache
def _good() -> dict[str, bytes]:
    """The files of a tagger that loads in a blink.

    JSON is on one line, where the mutations find it.
    """
    with tempfile.TemporaryDirectory() as place:
        _write_encoder(Path(place) / "encoder")
        tagger = Tagger(str(Path(place) / "encoder"), "crf", Settings(max_pieces=16), "cpu")
        tagger.start(TagSet(("O", "B-X", "I-X")), np.random.default_rng(0)).save(
            Path(place) / "tagger"
        )
        files = {path.name: path.read_bytes() for path in (Path(place) / "tagger").iterdir()}
    described = json.loads(files["tagger.json"])
    del described["checksums"]
    files["tagger.json"] = json.dumps({**described, "encoder": "starter"}).encode()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        files[name] = json.dumps(json.loads(files[name])).encode()
    weights = files["model.safetensors"]
    end = 8 + int.from_bytes(weights[:8], "little")
    return {**files, _HEADER: weights[8:end], "model.safetensors": weights[end:]}


def _write_encoder(folder: Path) -> None:
    backend = Tokenizer(
        models.WordPiece({piece: i for i, piece in enumerate(_PIECES)}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    special = {f"{piece.strip('[]').lower()}_token": piece for piece in _PIECES[:5]}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, model_max_length=16, **special)
    shape = {
        "hidden_size": 4,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 4,
    }
    config = BertConfig(vocab_size=len(_PIECES), max_position_embeddings=16, **shape)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
