"""The part of `seqmix export` for taggers: a table of what they can become."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seqmix.app.console import count, say
from seqmix.app.options import ReadOptions
from seqmix.app.reading.data import labeled_data
from seqmix.data import formats
from seqmix.data.latest_model import newest_model, using_model
from seqmix.data.overwriting import refuse_source
from seqmix.data.sentence import Sentence
from seqmix.errors import ConfigError
from seqmix.external.names import is_external
from seqmix.onnx_runtime.model_file import is_onnx

if TYPE_CHECKING:
    from seqmix.tagger import Tagger

Export = Callable[["Tagger", Path, Sequence[Sentence]], None]


def is_of_tagger(folder: Path, to: str, out: Path) -> bool:
    """Whether a tagger is exported, and not labels: of a project, what only a tagger can become."""
    if is_external(folder) or is_onnx(folder):
        raise ConfigError(
            f"{folder} cannot be exported; give the folder of a tagger that seqmix train wrote"
        )
    if (folder / "project.toml").exists():
        target = _target(to, out).partition(":")[0]
        return target in TARGETS and target not in formats.FORMATS
    if not (newest_model(folder) / "tagger.json").is_file():
        raise ConfigError(
            f"{folder} is not a project, which seqmix init creates, "
            "nor a tagger, which seqmix train writes"
        )
    return True


def _target(to: str, out: Path) -> str:
    """Return what to write: as --to says, or ONNX where the name of the file says so."""
    return to or ("onnx" if is_onnx(out) else "")


def export_tagger(folder: Path, out: Path, to: str, test: str | None) -> None:
    """Export a trained tagger for another library, and measure it on labeled sentences."""
    to = _target(to, out)
    target, _, language = to.partition(":")
    export = TARGETS.get(target)
    if language and target in ("spacy", "spacy-onnx"):
        export = partial(_to_spacy, language=language, alone=target == "spacy-onnx")
    elif export is None or language:
        names = " or ".join(f"--to {name}" for name in TARGETS)
        got = f"; got {to!r}" if to else ""
        raise ConfigError(f"a tagger is exported with {names}{got}")
    from seqmix.tagger import Tagger

    with using_model(folder) as model:
        refuse_source(out, model, test)
        sentences = labeled_data(test, ReadOptions(None, formats.Options())) if test else []
        export(Tagger.load(model, "cpu"), out, sentences)


def _to_hf(tagger: Tagger, out: Path, test: Sequence[Sentence]) -> None:
    from seqmix.export.hf import COUNTED_ON, export_hf

    measured = export_hf(tagger, out, test)
    say(f"a Hugging Face model is in {out}; its README.md says how to use it")
    differ = f"{count(measured.differing, 'tag')} of {measured.tokens} differ"
    if measured.with_decoder is None or measured.without is None:
        say(f"{differ} without its decode.py, on {COUNTED_ON}; --test measures F1")
        return
    f1 = 100 * measured.with_decoder.f1
    say(f"F1 {f1:.2f} with its decode.py, {100 * measured.without.f1:.2f} without; {differ}")


def _to_onnx(tagger: Tagger, out: Path, test: Sequence[Sentence], precision: str) -> None:
    from seqmix.export.onnx import export_onnx

    checked = export_onnx(tagger, out, precision, test)
    say(
        f"{out} holds the tagger in {precision}; "
        f"{count(checked.differing, 'tag')} of {checked.tokens} differ from the tagger's, "
        f"scores by at most {checked.largest:.2g}"
    )
    if checked.f1 is not None and checked.original is not None:
        say(f"F1 {100 * checked.f1:.2f}; the tagger has {100 * checked.original:.2f}")


def _to_spacy(
    tagger: Tagger,
    out: Path,
    test: Sequence[Sentence],
    language: str = "en",
    alone: bool = False,
) -> None:
    from seqmix.app.commands.train.evaluate import score_tagger
    from seqmix.extras import import_extra

    import_extra("spacy", "spacy", "the export to spaCy")
    from seqmix.export.spacy import export_spacy, export_spacy_onnx

    result = score_tagger(tagger, list(test), "test") if test else None
    if alone:
        export_spacy_onnx(tagger, out, language, result)
        say(f"a spaCy pipeline is in {out}; spacy.load opens it after its seqmix_component.py")
    else:
        export_spacy(tagger, out, language, result)
        say(f"a spaCy pipeline is in {out}; spacy.load opens it where seqmix is installed")
    if result is not None:
        say(f"F1 {100 * result.f1:.2f}, given the tokens; it is in meta.json")


TARGETS: Mapping[str, Export] = {
    "hf": _to_hf,
    "onnx": partial(_to_onnx, precision="float32"),
    "onnx-int8": partial(_to_onnx, precision="int8"),
    "spacy": _to_spacy,
    "spacy-onnx": partial(_to_spacy, alone=True),
}
