r"""Exports as other libraries run them, without seqmix: do they find the tagger's spans?

python bench/exports_foreign.py --python VENV/bin/python [--taggers FOLDER] \
    [--data ../shared/data/conll03] [--sentences 500]

VENV has torch, transformers, spaCy and onnxruntime, and no seqmix. FOLDER is that of
bench/exports.py. The figures on raw text say what spaCy's own tokenization changes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import Doc

from common import load, show
from exports import Tags, differences, predict, spans_of, tagger_of
from seqmix.data.samples import sample
from seqmix.data.scheme import tag
from seqmix.data.sentence import Sentence
from seqmix.data.spans import Span
from seqmix.data.text import CharSpan, tags_from_text
from seqmix.export.hf import export_hf
from seqmix.export.onnx import export_onnx
from seqmix.export.spacy import export_spacy, export_spacy_onnx
from seqmix.tagger import Tagger

ALONE = Path(__file__).with_name("exports_alone.py")
ONNX = Path(__file__).parents[1] / "examples" / "onnx_predict.py"


def elsewhere(python: str, words: Sequence[object], text: str) -> str:
    """What a script prints in the other environment."""
    command = [python, "-I", *map(str, words)]
    ended = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout


def by_hugging_face(
    tagger: Tagger, folder: Path, python: str, sentences: Sequence[Sentence]
) -> dict[str, Tags]:
    """The tags that decode.py gives, and the spans of the pipeline as tags."""
    export_hf(tagger, folder / "hf")
    words = json.dumps([sentence.tokens for sentence in sentences])
    answer = json.loads(elsewhere(python, [ALONE, "hf", folder / "hf"], words))
    piped = []
    for sentence, entities in zip(sentences, answer["spans"], strict=True):
        text, offsets = Sentence("", sentence.tokens).located()
        marks = [CharSpan(*entity) for entity in entities]
        piped.append(tuple(tags_from_text(offsets, marks, "expand", Counter(), text)))
    return {"hf, decode.py": [tuple(tags) for tags in answer["tags"]], "hf, pipeline": piped}


def by_onnxruntime(
    tagger: Tagger, folder: Path, python: str, sentences: Sequence[Sentence]
) -> dict[str, Tags]:
    """The tags of the example of 20 lines, which reads words between spaces."""
    lines = "".join(" ".join(sentence.tokens) + "\n" for sentence in sentences)
    runs: dict[str, Tags] = {}
    for name, precision in (("onnx", "float32"), ("onnx-int8", "int8")):
        file = folder / f"{name}.onnx"
        export_onnx(tagger, file, precision)
        printed = elsewhere(python, [ONNX, file], lines).splitlines()
        runs[name] = [tuple(word.rpartition("/")[2] for word in line.split()) for line in printed]
    return runs


def by_spacy_alone(
    tagger: Tagger, folder: Path, python: str, sentences: Sequence[Sentence]
) -> dict[str, Tags]:
    """The entities of the pipeline that needs no seqmix, as tags."""
    export_spacy_onnx(tagger, folder / "spacy-onnx")
    words = json.dumps([sentence.tokens for sentence in sentences])
    answer = json.loads(elsewhere(python, [ALONE, "spacy", folder / "spacy-onnx"], words))
    return {
        "spacy-onnx": [
            tuple(tag([Span(*span) for span in marks], len(sentence)))
            for sentence, marks in zip(sentences, answer["spans"], strict=True)
        ]
    }


def by_spacy(nlp: Any, sentences: Sequence[Sentence]) -> Tags:
    """The pipeline's entities on the sentences' own tokens, as tags."""
    docs = nlp.pipe(Doc(nlp.vocab, words=list(sentence.tokens)) for sentence in sentences)
    return [
        tuple(tag([Span(e.start, e.end, e.label_) for e in doc.ents], len(doc))) for doc in docs
    ]


def on_raw_text(tagger: Tagger, nlp: Any, sentences: Sequence[Sentence]) -> list[int]:
    """Texts; spans of the tagger, of the pipeline, of both; spans that cut a token of spaCy's."""
    texts = [sentence.located()[0] for sentence in sentences]
    counts: Counter[str] = Counter()
    tagged = tagger.predict([Sentence.from_text(text) for text in texts])
    for ours, doc in zip(tagged, nlp.pipe(texts), strict=True):
        mine = {(entity.start, entity.end, entity.label) for entity in ours.entities()}
        theirs = {(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents}
        counts.update(mine=len(mine), theirs=len(theirs), same=len(mine & theirs))
        counts["cut"] += sum(doc.char_span(start, end) is None for start, end, _ in mine)
    return [len(texts), counts["mine"], counts["theirs"], counts["same"], counts["cut"]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", required=True, help="a Python without seqmix")
    parser.add_argument("--taggers", type=Path, default=Path("runs/exports"))
    parser.add_argument("--data", default=None, help="a folder with CoNLL-03's files")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--show", type=int, default=20, help="differing spans to list")
    args = parser.parse_args()
    given, raw = [], []
    for corpus in {corpus.name: corpus for corpus in (load("none"), load(args.data))}.values():
        sentences = list(corpus.test)
        if corpus.name == "gazette":  # its test set alone is smaller
            sentences += [
                s for part in ("dev", "reserve", "train") for s in sample(f"gazette:{part}")
            ]
        bare = [sentence.unlabeled() for sentence in sentences if len(sentence)][: args.sentences]
        for head in ("linear", "crf"):
            tagger = tagger_of(args.taggers, corpus, head)
            ours = predict(tagger, bare)
            with tempfile.TemporaryDirectory() as place:
                runs = {
                    name: tags
                    for way in (by_hugging_face, by_onnxruntime, by_spacy_alone)
                    for name, tags in way(tagger, Path(place), args.python, bare).items()
                }
                export_spacy(tagger, Path(place) / "spacy")
                nlp = spacy.load(Path(place) / "spacy")
            runs["spacy, with seqmix"] = by_spacy(nlp, bare)
            for name, tags in runs.items():
                changed = [*differences(ours, tags, bare)]
                given.append(
                    [corpus.name, head, name, len(bare), sum(spans_of(ours)), len(changed)]
                )
                print(*given[-1], sep=", ", flush=True)
                if changed and name != "hf, pipeline":
                    print(f"{corpus.name}, {head}, {name}:", *changed[: args.show], sep="\n")
            raw.append([corpus.name, head, *on_raw_text(tagger, nlp, bare)])
    print(f"the same tokens, {sys.version.split()[0]} and {args.python}:")
    show(["data", "head", "export", "sentences", "spans", "spans that differ"], given)
    print("raw text, each cut by its own rules:")
    show(["data", "head", "texts", "tagger", "spaCy", "the same", "cut a spaCy token"], raw)
