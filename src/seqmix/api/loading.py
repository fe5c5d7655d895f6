"""Open any tagger by its name, as the commands do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seqmix.app.taggers import load_external
from seqmix.data.inputs import checked_path
from seqmix.errors import ConfigError
from seqmix.external.names import is_external
from seqmix.onnx_runtime.model_file import is_onnx

if TYPE_CHECKING:
    from seqmix.api.tagger import Tagger
    from seqmix.external.tagger import ExternalTagger
    from seqmix.onnx_runtime.tagger import OnnxTagger


def load(name: Path | str, device: str | None = None) -> Tagger | OnnxTagger | ExternalTagger:
    """Return a tagger by its name: `seqmix.load("hf:dslim/bert-base-NER")("Lena left Oslo.")`.

    Args:
        name: The folder of a tagger, a project (its newest tagger), a file exported to ONNX, or a
            model from another library, `hf:NAME` or `spacy:NAME`.
        device: `cpu` or `cuda`; by default the best available.
    """
    path = checked_path(name, "the name of a tagger")
    if is_external(name):
        return load_external(name, device)
    if not is_onnx(path):
        from seqmix.api.tagger import Tagger  # here, since it loads torch

        return Tagger.load(path, device)
    if device not in (None, "cpu"):
        raise ConfigError(f"a tagger exported to ONNX runs on the CPU; got the device {device}")
    from seqmix.onnx_runtime.tagger import OnnxTagger

    return OnnxTagger(path)
