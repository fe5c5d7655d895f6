"""Load a tagger by its name: a folder, a project, an exported file, or another library's model."""

from __future__ import annotations

from dataclasses import replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqmix.app.provenance import folder_digest
from seqmix.data.latest_model import newest_model, using_model
from seqmix.errors import ConfigError, DataError
from seqmix.external.names import is_external, parse_external
from seqmix.onnx_runtime.model_file import describe_model, is_onnx

if TYPE_CHECKING:
    from seqmix.external.tagger import ExternalTagger
    from seqmix.serve.settings import ProjectSettings


def absolute_name(name: Path | str) -> str:
    """Return the same name from any working directory."""
    return str(parse_external(name).absolute() if is_external(name) else Path(name).absolute())


def is_tagger(name: Path | str) -> bool:
    """Whether this names a tagger; a file of predictions does not."""
    path = Path(name)
    return is_external(name) or is_onnx(path) or (newest_model(path) / "tagger.json").exists()


def load_tagger(name: Path | str, device: str | None = None) -> Any:
    """Return the tagger of this name."""
    if is_external(name):
        return load_external(name, device)
    if is_onnx(Path(name)):
        from seqmix.onnx_runtime.tagger import OnnxTagger

        if device not in (None, "cpu"):
            raise ConfigError(f"a tagger exported to ONNX runs on the CPU; got the device {device}")
        return OnnxTagger(name)
    from seqmix.tagger import Tagger

    with using_model(Path(name)) as folder:
        return Tagger.load(folder, device)


def load_external(name: Path | str, device: str | None = None) -> ExternalTagger:
    """Return a model from another library as a tagger."""
    from seqmix.external.tagger import ExternalTagger

    parsed = parse_external(name)
    if parsed.library == "spacy":
        from seqmix.external.spacy import SpacyReader

        return ExternalTagger(parsed, SpacyReader(parsed))
    from seqmix.external.hf import HuggingFaceReader

    return ExternalTagger(parsed, HuggingFaceReader(parsed, device))


def with_start(settings: ProjectSettings) -> ProjectSettings:
    """Return a project's settings once it is certain that its start tagger is of use."""
    if settings.start is None:
        return settings
    name = absolute_name(settings.start)
    types = {tag[2:] for tag in tags_of(name)}
    if types.isdisjoint(settings.tags):
        raise ConfigError(
            f"the start tagger must suggest at least one of {', '.join(settings.tags)}; "
            f"{settings.start} has {', '.join(sorted(types - {''}))}; "
            f"{settings.start.split(':')[0]}:MODEL:THEIRS=OURS maps the types of another library"
        )
    return replace(settings, start=name)


def misfits(tagger: Any) -> list[str]:
    """Return what of another library's spans did not fit so far, one phrase per reason."""
    return [f"{n} spans {why}" for why, n in sorted(getattr(tagger, "counts", {}).items()) if n]


def tags_of(name: Path | str) -> list[str]:
    """Return the tags of a tagger in order."""
    if is_external(name):
        tag_set = load_external(name, "cpu").tag_set
        return [] if tag_set is None else list(tag_set.tags)
    if is_onnx(Path(name)):
        return [*describe_model(Path(name))["tags"]]
    from seqmix.tagger.model_folders import describe

    return [*describe(Path(name))["tags"]]


def digest_of(name: Path | str) -> str:
    """Return what tells a tagger from another, so that a job is not resumed with another."""
    if is_external(name):
        parsed = parse_external(name).absolute()
        folder = Path(parsed.model)
        return f"{parsed} {folder_digest(folder) if folder.is_dir() else ''}".strip()
    weights = Path(name) if is_onnx(Path(name)) else Path(name) / "model.safetensors"
    try:
        with weights.open("rb") as file:
            return file_digest(file, "blake2b").hexdigest()[:32]
    except OSError as error:
        raise DataError(f"cannot read: {error.strerror}", weights) from error
