"""A tagger as a component of a spaCy pipeline.

    nlp = spacy.blank("en")
    nlp.add_pipe("seqmix", config={"model": "ner"})
    nlp("Lena left Oslo.").ents

spaCy imports this module in every process that makes a pipeline, so it loads no model library.
"""

from __future__ import annotations

import inspect
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from seqmix import __version__
from seqmix.data.overwriting import FolderKind
from seqmix.data.scoring import Score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.errors import ModelError
from seqmix.extras import import_extra

if TYPE_CHECKING:
    from seqmix.tagger import Tagger

FACTORY = "seqmix"
spacy: Any = import_extra("spacy", "spacy", "the spaCy component")
import_extra("spacy.scorer", "spacy", "the spaCy component")


class TaggerComponent:
    """Tags the tokens that spaCy cut, sentence by sentence where the Doc has sentences.

    Spans go to `doc.ents`, and with their probabilities to `doc.spans[spans_key]`, whose
    `attrs["scores"]` has one number per span: that of its least probable token.
    Entities that another component has set stay; spans that overlap them are counted in `counts`.
    """

    def __init__(
        self,
        name: str = FACTORY,
        model: str | None = None,
        device: str | None = None,
        spans_key: str = FACTORY,
    ) -> None:
        self.name, self.spans_key = name, spans_key
        self.counts: Counter[str] = Counter()
        self._model, self._device = model, device
        self._tagger: Tagger | None = None

    @property
    def tagger(self) -> Tagger:
        """The tagger, loaded when first used: spaCy makes a component before it reads its files."""
        if self._tagger is None:
            if self._model is None:
                raise ModelError(
                    f"the component {self.name!r} must have a tagger: add it with "
                    'config={"model": FOLDER}, a folder that seqmix train wrote'
                )
            self._tagger = load(self._model, self._device)
        return self._tagger

    @property
    def labels(self) -> tuple[str, ...]:
        """The types of spans it finds; spaCy asks for them before the tagger is read."""
        absent = self._model is None or not (Path(self._model) / "tagger.json").is_file()
        if (self._tagger is None and absent) or self.tagger.tag_set is None:
            return ()
        return self.tagger.tag_set.types

    def use(self, tagger: Tagger) -> None:
        """Tag with this tagger from now on."""
        self._tagger = tagger

    def __call__(self, doc: Any) -> Any:
        """Return the Doc with its entities."""
        (tagged,) = self._tag([doc])
        return tagged

    def pipe(self, stream: Iterable[Any], *, batch_size: int = 128) -> Iterator[Any]:
        """Yield the Docs with their entities; the sentences of a batch are tagged together."""
        for docs in spacy.util.minibatch(stream, batch_size):
            yield from self._tag(docs)

    def _tag(self, docs: Sequence[Any]) -> Sequence[Any]:
        places = [(at, tokens) for at, doc in enumerate(docs) for tokens in _sentences(doc)]
        sentences = (
            Sentence(str(number), tuple(token.text for token in tokens))
            for number, (_, tokens) in enumerate(places)
        )
        scored: list[list[tuple[Any, float]]] = [[] for _ in docs]
        paths = self.tagger.best_paths(sentences, by_token=True)
        for (at, tokens), (best, *_) in zip(places, paths, strict=True):
            for span in spans(best.tags):
                first, last = tokens[span.start].i, tokens[span.end - 1].i + 1
                score = min(best.by_token[span.start : span.end])
                scored[at].append((_span(docs[at], first, last, span.type), score))
        for doc, marked in zip(docs, scored, strict=True):
            self._write(doc, marked)
        return docs

    def _write(self, doc: Any, scored: list[tuple[Any, float]]) -> None:
        """Set the entities that fit beside those that are there, and all with their scores."""
        taken = {token.i for entity in doc.ents for token in entity}
        free = [span for span, _ in scored if taken.isdisjoint(range(span.start, span.end))]
        if len(free) < len(scored):
            if not self.counts:
                warnings.warn(
                    f"{self.name}: spans that overlap entities of other components are left out "
                    f"of doc.ents; all are in doc.spans[{self.spans_key!r}]",
                    stacklevel=2,
                )
            self.counts["overlapping"] += len(scored) - len(free)
        doc.ents = [*doc.ents, *free]
        doc.spans[self.spans_key] = [span for span, _ in scored]
        doc.spans[self.spans_key].attrs["scores"] = [score for _, score in scored]

    def score(self, examples: Iterable[Any], **_: object) -> dict[str, Any]:
        """Return precision, recall and F1 of the entities, for `nlp.evaluate`."""
        scores: dict[str, Any] = spacy.scorer.get_ner_prf(examples)
        return scores

    def to_disk(self, path: Path | str, *, exclude: Sequence[str] = ()) -> None:
        """Write the tagger's folder: the pipeline takes it along."""
        self.tagger.save(path)

    def from_disk(self, path: Path | str, *, exclude: Sequence[str] = ()) -> TaggerComponent:
        """Read what `to_disk` wrote."""
        self._tagger = load(path, self._device)
        return self

    def to_bytes(self, *, exclude: Sequence[str] = ()) -> bytes:
        """Return the tagger's files as bytes."""
        with _folder() as folder:
            self.tagger.save(folder)
            files = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
        packed: bytes = _srsly().msgpack_dumps(files)
        return packed

    def from_bytes(self, data: bytes, *, exclude: Sequence[str] = ()) -> TaggerComponent:
        """Read what `to_bytes` returned; a name that leads out of its folder is refused."""
        with _folder() as folder:
            folder.mkdir()
            for name, content in _srsly().msgpack_loads(data).items():
                if name != Path(name).name or name in ("", ".", ".."):
                    raise ModelError(f"a tagger's file must have a plain name; got {name[:80]!r}")
                (folder / name).write_bytes(content)
            self._tagger = load(folder, self._device)
        return self


def _sentences(doc: Any) -> Iterator[list[Any]]:
    """Yield the tokens of each sentence, of the whole Doc if it is not cut, without white space."""
    parts = doc.sents if doc.has_annotation("SENT_START") else [doc]
    for part in parts:
        tokens = [token for token in part if not token.is_space]
        if tokens:
            yield tokens


def _span(doc: Any, start: int, end: int, type: str) -> Any:
    return spacy.tokens.Span(doc, start, end, label=type)


def _srsly() -> Any:
    return import_extra("srsly", "spacy", "the spaCy component")


@contextmanager
def _folder() -> Iterator[Path]:
    """Yield the path of a folder that can be made, and is removed in the end."""
    with tempfile.TemporaryDirectory(prefix="seqmix-") as place:
        yield Path(place) / "tagger"


def load(folder: Path | str, device: str | None) -> Tagger:
    """Return the tagger in a folder."""
    from seqmix.tagger import Tagger

    return Tagger.load(folder, device)


def create(
    nlp: Any, name: str, model: str | None, device: str | None, spans_key: str
) -> TaggerComponent:
    """Return the component: what spaCy calls for `nlp.add_pipe("seqmix")`."""
    # what `spacy package` writes down; spaCy finds by itself only packages that setuptools made
    required = nlp.meta.setdefault("requirements", [])
    if not any(name.startswith("seqmix") for name in required):
        required.append(f"seqmix{spacy.util.get_minor_version_range(__version__)}")
    return TaggerComponent(name, model, device, spans_key)


spacy.Language.factory(
    FACTORY,
    default_config={"model": None, "device": None, "spans_key": FACTORY},
    assigns=["doc.ents", "doc.spans", "token.ent_iob", "token.ent_type"],
    default_score_weights={"ents_f": 1.0, "ents_p": 0.0, "ents_r": 0.0},
    func=create,
)


def _kind() -> FolderKind:
    """Return how to tell a pipeline that was exported; other pipelines have other components."""
    from seqmix.export import spacy_onnx
    from seqmix.tagger.model_folders import MODEL_FILES

    vocab = ("key2row", "lookups.bin", "strings.json", "vectors", "vectors.cfg")
    files = (
        *("tokenizer", "tokenizer/*"),
        *(f"vocab/{name}" for name in vocab),
        *(f"{FACTORY}/{name}" for name in ("tagger.json", *MODEL_FILES)),
        f"{spacy_onnx.FACTORY}/{spacy_onnx.FILE}",
        *(f"{spacy_onnx.MODULE}.py", f"__pycache__/{spacy_onnx.MODULE}.*.pyc"),
    )
    return FolderKind("an exported pipeline", ("config.cfg", "meta.json"), files)


def export_spacy(
    tagger: Tagger, folder: Path, language: str = "en", measured: Score | None = None
) -> None:
    """Write a pipeline of this component alone, which `spacy.load` opens where seqmix is."""
    _kind().refuse_other(folder)
    nlp = _blank(language)
    nlp.add_pipe(FACTORY).use(tagger)
    _write(nlp, tagger, folder, measured)


def export_spacy_onnx(
    tagger: Tagger, folder: Path, language: str = "en", measured: Score | None = None
) -> None:
    """Write a pipeline that spaCy opens without seqmix, once the file beside it is imported."""
    from seqmix.export import spacy_onnx
    from seqmix.export.onnx import export_onnx

    _kind().refuse_other(folder)  # before it takes time
    nlp = _blank(language)
    with _folder() as place:
        place.mkdir()
        export_onnx(tagger, place / spacy_onnx.FILE)
        nlp.add_pipe(spacy_onnx.FACTORY).from_disk(place)
    _write(nlp, tagger, folder, measured, {f"{spacy_onnx.MODULE}.py": _alone(spacy_onnx)})


def _alone(component: ModuleType) -> str:
    """Return the source of a module, after that of the modules of seqmix that it imports.

    subtle: its annotations are evaluated. `spacy package` imports a file without naming it in
    `sys.modules`, where a dataclass would look up annotations that are strings.
    """
    imports = re.compile(r"^from (seqmix\.\S+) import .*\n", re.M)
    source = inspect.getsource(component)
    sources = [inspect.getsource(import_module(name)) for name in imports.findall(source)]
    body = "\n\n".join([*sources, imports.sub("", source)])
    about = "# A component of spaCy, and what it needs of seqmix: import it before spacy.load."
    return f"{about}\n" + body.replace("from __future__ import annotations\n", "")


def _blank(language: str) -> Any:
    try:
        return spacy.blank(language)
    except ImportError as error:
        raise ModelError(
            f"the language must be a code that spaCy knows, such as en, de or xx; got {language!r}"
        ) from error


def _write(
    nlp: Any,
    tagger: Tagger,
    folder: Path,
    measured: Score | None,
    beside_it: Mapping[str, str] | None = None,
) -> None:
    """Write a pipeline with what is known of its tagger, and texts beside it."""
    from seqmix.tagger.model_folders import writing

    nlp.meta["name"] = re.sub(r"\W+", "_", folder.name.lower())
    nlp.meta["description"] = f"Trained with seqmix: {tagger.encoder}, {tagger.head} head"
    if measured is not None:
        scores = (measured.precision, measured.recall, measured.f1)
        nlp.meta["performance"] = dict(zip(("ents_p", "ents_r", "ents_f"), scores, strict=True))
    with writing(folder, _kind()) as beside:
        nlp.to_disk(beside)
        for name, text in (beside_it or {}).items():
            (beside / name).write_text(text, encoding="utf-8")
