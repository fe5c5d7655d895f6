"""Export a tagger as one ONNX file, which onnxruntime runs without torch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from seqmix.data.files import replacing
from seqmix.data.samples import sample
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.errors import ModelError, SeqMixError, first_line
from seqmix.export.hf import emissions, gold_tags, transitions
from seqmix.extras import import_extra
from seqmix.onnx_runtime.model_file import INPUTS, OUTPUT, metadata, refuse_other_file, seal
from seqmix.onnx_runtime.tagger import OnnxTagger
from seqmix.tagger.network import Network

if TYPE_CHECKING:
    from seqmix.tagger import Tagger

CLOSE = 1e-3  # the largest difference of a float32 score
FEW = 0.05  # the largest share of tags that int8 may change
_NEEDED_FOR = "exporting to ONNX"


@dataclass(frozen=True)
class Checked:
    """How the exported tagger compares with the one it came from."""

    sentences: int
    tokens: int
    differing: int  # tags
    largest: float  # difference of a score
    f1: float | None = None  # on labeled sentences
    original: float | None = None  # the tagger's


def export_onnx(
    tagger: Tagger, path: Path, precision: str = "float32", test: Sequence[Sentence] = ()
) -> Checked:
    """Write the tagger as one file, and compare the two on the sample's sentences and `test`.

    A file that tags otherwise is an error and is not kept; int8 may change 5 % of the tags.
    """
    onnx = import_extra("onnx", "onnx", _NEEDED_FOR)
    import_extra("onnxruntime", "onnx", _NEEDED_FOR)
    import_extra("onnxscript", "onnx", _NEEDED_FOR)
    refuse_other_file(path)
    described = _metadata(tagger, precision)
    with replacing(path) as beside, _as_model_error(path), _quiet():
        model = _graph(tagger.network)
        if precision == "int8":
            model = _quantized(model, beside)
        onnx.helper.set_model_props(model, described)
        onnx.save(model, beside)
        seal(beside)
        checked = compare(tagger, OnnxTagger(beside), test)
        _refuse(checked, precision, path)
    return checked


def compare(tagger: Tagger, exported: OnnxTagger, test: Sequence[Sentence] = ()) -> Checked:
    """Compare tags and scores on `test` and on the sample's sentences, and F1 on `test`."""
    bare = [sentence.unlabeled() for sentence in (*test, *_sentences())]
    scores = zip(emissions(tagger, bare), exported.emissions(bare), strict=True)
    largest = max(float(np.abs(a - b).max(initial=0.0)) for a, b in scores)
    ours, theirs = ([s.tags for s in model.predict(bare)] for model in (tagger, exported))
    pairs = [pair for tags in zip(ours, theirs, strict=True) for pair in zip(*tags, strict=True)]
    checked = Checked(len(bare), len(pairs), sum(a != b for a, b in pairs), largest)
    if not test:
        return checked
    gold = gold_tags(test)
    theirs_f1, ours_f1 = (
        score(gold, [[str(tag) for tag in tags] for tags in tagged[: len(gold)]]).f1
        for tagged in (theirs, ours)
    )
    return replace(checked, f1=theirs_f1, original=ours_f1)


class _Graph(nn.Module):
    """Scores of every piece, so that a graph needs no more than Hugging Face's two inputs."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.encoder, self.classifier = deepcopy(network.encoder), network.classifier
        self.packs, self.first_position = network.packs, network.first_position
        if self.packs:
            self.encoder.set_attn_implementation("eager")  # its graph is the smallest

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        inputs = {"attention_mask": attention_mask}
        if self.packs:
            forbidden = (1 - attention_mask.float()) * -1e9
            places = torch.arange(input_ids.shape[1], device=input_ids.device)
            inputs = {
                "attention_mask": forbidden[:, None, None, :],
                "position_ids": (places + self.first_position)[None, :],
            }
        states = self.encoder(input_ids=input_ids, **inputs).last_hidden_state
        scores: Tensor = self.classifier(states)
        return scores


def _graph(network: Network) -> Any:
    """Return the network as an ONNX model for batches of any size."""
    ids, mask = torch.ones((2, 7), dtype=torch.long), torch.ones((2, 7), dtype=torch.long)
    axes = {0: torch.export.Dim("rows"), 1: torch.export.Dim("width")}
    program = torch.onnx.export(
        _Graph(network).eval(),
        (ids, mask),
        dynamo=True,
        input_names=INPUTS,
        output_names=(OUTPUT,),
        dynamic_shapes=(axes, axes),
        verbose=False,
    )
    assert program is not None  # the old exporter returns None
    return program.model_proto


def _quantized(model: Any, beside: Path) -> Any:
    """Return the model with int8 products, except for the head."""
    from onnx import load
    from onnxruntime.quantization import QuantType, quantize_dynamic

    head = [node.name for node in model.graph.node if node.op_type in ("MatMul", "Gemm")][-1]
    quantize_dynamic(
        model,
        beside,
        op_types_to_quantize=["MatMul", "Gemm"],
        per_channel=True,
        reduce_range=True,  # CPUs without VNNI add two products in 16 bits, which overflows
        weight_type=QuantType.QInt8,
        nodes_to_exclude=[head],
        extra_options={"MatMulConstBOnly": True},
    )
    return load(beside)


def _metadata(tagger: Tagger, precision: str) -> dict[str, str]:
    """Return what the file says beside the graph."""
    pieces = tagger.pieces
    tokenizer, chain = pieces.tokenizer, tagger.network.chain
    description = {
        "encoder": tagger.encoder,
        "head": tagger.head,
        "tags": list(tagger.tags),
        "precision": precision,
        "window": {
            "pieces": pieces.limit,
            "before": tokenizer.before,
            "after": tokenizer.after,
            "unknown": tokenizer.unknown,
        },
    }
    more: dict[str, Any] = {"transitions": transitions(tagger)}
    if chain is not None:
        weights = {"transitions": chain.transitions, "start": chain.start, "end": chain.end}
        more["crf"] = {name: tensor.detach().cpu().tolist() for name, tensor in weights.items()}
    return metadata(description, tokenizer=tokenizer.backend.to_str(), **more)


def _sentences() -> list[Sentence]:
    """Return sentences to compare on: a hundred of the sample, and one of several windows."""
    sentences = sample("gazette:dev")[:100]
    document = chain.from_iterable(sentence.tokens for sentence in sentences[:30])
    return [*sentences, Sentence("document", tuple(document))]


def _refuse(checked: Checked, precision: str, path: Path) -> None:
    """Refuse a file that does not do what the tagger does."""
    exact = precision == "float32"
    allowed = 0 if exact else FEW * checked.tokens
    if checked.differing > allowed or not checked.largest < (CLOSE if exact else np.inf):
        raise ModelError(
            f"{path} must give the tagger's tags; {checked.differing} of {checked.tokens} differ "
            f"(scores by up to {checked.largest:.2g}), so it was not kept"
            + ("" if exact else "; --to onnx writes float32")
        )


@contextmanager
def _as_model_error(path: Path) -> Iterator[None]:
    """Turn errors of three libraries into one line."""
    try:
        yield
    except (OSError, SeqMixError):
        raise
    except Exception as error:
        raise ModelError(f"cannot export to {path}: {first_line(error, 200)}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what the exporter and the quantizer say about themselves."""
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)
