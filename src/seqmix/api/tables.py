"""Sentences from files, datasets and pandas tables, and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, overload

from seqmix.api.frames import frame_of, sentences_of_frame
from seqmix.data import formats
from seqmix.data.formats import Options
from seqmix.data.formats.hf import dataset_of, sentences_of
from seqmix.data.inputs import checked_path
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame


class AnyDataset(Protocol):
    """A dataset of Hugging Face."""

    @property
    def column_names(self) -> object: ...  # noqa: D102


class AnyFrame(Protocol):
    """A table of pandas."""

    @property
    def columns(self) -> object: ...  # noqa: D102


Source = Path | str | AnyDataset | AnyFrame


@overload
def read(
    source: Mapping[str, Source], format: str | None = None, options: Options | None = None
) -> dict[str, list[Sentence]]: ...
@overload
def read(
    source: Source, format: str | None = None, options: Options | None = None
) -> Iterator[Sentence]: ...
def read(
    source: Source | Mapping[str, Source],
    format: str | None = None,
    options: Options | None = None,
) -> Iterator[Sentence] | dict[str, list[Sentence]]:
    """Return a stream of the sentences of a file, folder, dataset or table, with spans in BIO.

    Args:
        source: A path; a Dataset with tokens and ner_tags; or a pandas table with one row per
            sentence (tokens, ner_tags) or per token (sentence_id, token, tag), or with a column
            text. Several of them by name, such as a DatasetDict, give lists by name.
        format: For a path: a name in `seqmix.data.formats.FORMATS`; by default it is guessed.
        options: How to read it, such as the column of the tags.
    """
    options = options or Options()
    if isinstance(source, Mapping):
        return {name: list(read(part, format, options)) for name, part in source.items()}
    if hasattr(source, "column_names") and hasattr(source, "features"):
        return formats.cleaned(sentences_of(source, Path("dataset"), options), options)
    if hasattr(source, "columns") and hasattr(source, "iterrows"):
        return formats.cleaned(sentences_of_frame(source), options)
    if isinstance(source, list | tuple):
        raise DataError(
            "read takes a file, a folder, a dataset or a table; got a list: "
            "Sentence.from_text(text) makes a sentence of a text"
        )
    what = "a file, a folder, a dataset or a pandas table"
    return formats.read(checked_path(source, what), format, options)  # type: ignore[arg-type]


def to_dataset(sentences: Iterable[Sentence]) -> Dataset:
    """Return sentences as a `datasets.Dataset` with tokens and ner_tags; `read` is its inverse.

    Soft labels do not fit: `sentence.hardened()` keeps the heaviest tag.
    """
    return dataset_of(_hard(sentences))


def to_pandas(
    sentences: Iterable[Sentence], rows: Literal["sentences", "tokens"] = "sentences"
) -> DataFrame:
    """Return sentences as a pandas table; `read` is its inverse.

    Args:
        sentences: What to write, in this order.
        rows: One row for each of the sentences (id, tokens, ner_tags) or of their tokens
            (sentence_id, token, tag).
    """
    if rows not in ("sentences", "tokens"):
        raise DataError(f"rows must be sentences or tokens; got {rows!r}")
    return frame_of(sentences, rows == "tokens")


def _hard(sentences: Iterable[Sentence]) -> Iterator[Sentence]:
    for sentence in sentences:
        if any(isinstance(row, Mapping) for row in sentence.tags):
            raise DataError(
                f"sentence {sentence.id!r} has soft labels, which a dataset cannot hold; "
                "sentence.hardened() keeps the heaviest tag, and to_pandas keeps all"
            )
        yield sentence
