"""Export a tagger as a Hugging Face token-classification model, which needs no seqmix to run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import AutoModelForTokenClassification, PreTrainedModel

from seqmix.data.overwriting import FolderKind
from seqmix.data.samples import sample
from seqmix.data.scheme import legal_moves
from seqmix.data.scoring import Score, score
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, ModelError
from seqmix.export import decode as decoder
from seqmix.export.decode import decode
from seqmix.starter.loader import without_bars
from seqmix.tagger.model_folders import MODEL_FILES, writing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seqmix.tagger import Tagger

IMPOSSIBLE = -1e4  # the score of a transition that the tag scheme forbids
COUNTED_ON = "gazette:test"  # if there are no labeled sentences
_MARKERS = ("transitions.json", "decode.py")
_KIND = FolderKind("a Hugging Face export", _MARKERS, ("README.md", *MODEL_FILES))
CARD = """---
library_name: transformers
pipeline_tag: token-classification
tags:
- seqmix
---

# {name}

A token classifier for {types}, trained with seqmix: {encoder}.
Its tags are {tags}.

```python
from transformers import pipeline

tag = pipeline("token-classification", model={folder}, aggregation_strategy="first")
print(tag("Lena Berg left Oslo."))
```

A word has the tag of its first piece; pieces after the first were not trained, so use the
aggregation strategy `first`.
The pipeline takes each token's most probable tag.
The trained tagger takes the best sequence of tags instead: `transitions.json` says which tags may
follow which and how well, and `decode.py` finds the sequence, with numpy only.

```python
import json, runpy
from transformers import AutoModelForTokenClassification, AutoTokenizer

folder, words = {folder}, "Lena Berg left Oslo .".split()
decode = runpy.run_path(folder + "/decode.py")["decode"]
chain = json.load(open(folder + "/transitions.json", encoding="utf-8"))
model = AutoModelForTokenClassification.from_pretrained(folder)
batch = AutoTokenizer.from_pretrained(folder)(words, is_split_into_words=True, return_tensors="pt")
firsts = [batch.word_ids().index(i) for i in range(len(words))]  # the first piece of each word
tags = decode(model(**batch).logits[0, firsts].detach().numpy(), chain)
print(json.dumps(list(zip(words, tags))))
```

{figures}"""


@dataclass(frozen=True)
class Measured:
    """How the exported model does with and without its decoder."""

    sentences: int
    tokens: int
    differing: int  # tokens whose most probable tag alone is not the decoder's
    with_decoder: Score | None = None  # on labeled sentences
    without: Score | None = None


def export_hf(tagger: Tagger, folder: Path, test: Sequence[Sentence] = ()) -> Measured:
    """Write a folder for `AutoModelForTokenClassification` and `pipeline`; measure it on `test`.

    Without labeled sentences there is no F1: the tags that the decoder changes are counted on
    the sample's sentences.
    """
    _KIND.refuse_other(folder)  # before it takes time
    model = hf_model(tagger)
    chain = transitions(tagger)
    gold = gold_tags(test)
    measured = _measure(tagger, chain, test or sample(COUNTED_ON), gold)
    with writing(folder, _KIND) as beside, without_bars():
        model.save_pretrained(beside)
        tagger.tokenizer.save_pretrained(str(beside))
        _name_tokenizer(beside / "tokenizer_config.json")
        (beside / "transitions.json").write_text(
            json.dumps(chain, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        shutil.copyfile(Path(decoder.__file__), beside / "decode.py")
        (beside / "README.md").write_text(card(tagger, folder.name, measured), encoding="utf-8")
    return measured


def _name_tokenizer(file: Path) -> None:
    """Name the tokenizer's class as transformers 4 knows it, and leave out where it was read."""
    config = json.loads(file.read_text(encoding="utf-8"))
    kept = {key: config[key] for key in config if key not in ("is_local", "local_files_only")}
    if kept.get("tokenizer_class") == "TokenizersBackend":  # the name since transformers 5
        kept["tokenizer_class"] = "PreTrainedTokenizerFast"
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def hf_model(tagger: Tagger) -> PreTrainedModel:
    """Return the tagger's encoder and head as a Hugging Face model for token classification."""
    network, tags = tagger.network, tagger.tags
    config = deepcopy(network.encoder.config)
    config.id2label = dict(enumerate(tags))
    config.label2id = {tag: i for i, tag in enumerate(tags)}
    config.classifier_dropout = tagger.settings.dropout
    model = AutoModelForTokenClassification.from_config(config, trust_remote_code=False)
    base = getattr(model, model.base_model_prefix)
    missing, unexpected = base.load_state_dict(network.encoder.state_dict(), strict=False)
    unexpected = [key for key in unexpected if ".pooler." not in f".{key}"]
    head = getattr(model, "classifier", None)
    if missing or unexpected or not isinstance(head, torch.nn.Linear):
        raise ModelError(
            f"an encoder of the kind {config.model_type!r} cannot be exported: "
            "Hugging Face's model for token classification has another shape"
        )
    head.load_state_dict(network.classifier.state_dict())
    model.eval()
    return model


def transitions(tagger: Tagger) -> dict[str, object]:
    """Return the tags with the scores of starting, moving and ending, also of forbidden moves."""
    n = len(tagger.tags)
    chain = tagger.network.chain
    scores = (
        [np.zeros(n), np.zeros((n, n)), np.zeros(n)]
        if chain is None
        else [
            weights.detach().double().cpu().numpy()
            for weights in (chain.start, chain.transitions, chain.end)
        ]
    )
    allowed = legal_moves(tagger.tag_set) if tagger.tag_set is not None else ()
    names = ("start", "transitions", "end")
    return {
        "tags": list(tagger.tags),
        **{
            name: np.where(mask, weights, IMPOSSIBLE).tolist()
            for name, weights, mask in zip(names, scores, allowed, strict=True)
        },
    }


def emissions(tagger: Tagger, sentences: Sequence[Sentence]) -> Iterator[NDArray[np.float64]]:
    """Yield the head's scores of each sentence [n_tokens, n_tags]."""
    weight, bias = (
        tensor.detach().double().cpu().numpy()
        for tensor in (tagger.network.classifier.weight, tagger.network.classifier.bias)
    )
    for states in tagger.embeddings(sentences):
        yield states @ weight.T + bias


def gold_tags(test: Sequence[Sentence]) -> list[list[str]]:
    """Return one tag per token; a missing one is an error."""
    if not all(sentence.labeled and None not in sentence.tags for sentence in test):
        raise DataError("the sentences to measure on must be labeled completely")
    return [[str(tag) for tag in sentence.hardened().tags] for sentence in test]


def _measure(
    tagger: Tagger, chain: dict[str, object], sentences: Sequence[Sentence], gold: list[list[str]]
) -> Measured:
    scores = list(emissions(tagger, [sentence.unlabeled() for sentence in sentences]))
    decoded = [decode(rows, chain) if len(rows) else [] for rows in scores]
    alone = [[tagger.tags[i] for i in rows.argmax(axis=1)] for rows in scores]
    differing = sum(
        a != b
        for ours, theirs in zip(decoded, alone, strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )
    measured = Measured(len(scores), sum(map(len, scores)), differing)
    if not gold:
        return measured
    return replace(measured, with_decoder=score(gold, decoded), without=score(gold, alone))


def card(tagger: Tagger, name: str, measured: Measured) -> str:
    """Return the model card."""
    types = sorted({tag[2:] if tag[1:2] == "-" else tag for tag in tagger.tags} - {"O"})
    kind = "a CRF" if tagger.network.chain is not None else "a linear"
    return CARD.format(
        name=name,
        folder=json.dumps(name, ensure_ascii=False),
        types=", ".join(types),
        tags=", ".join(f"`{tag}`" for tag in tagger.tags),
        encoder=f"encoder `{tagger.encoder}` with {kind} head",
        figures=_figures(measured),
    )


def _figures(measured: Measured) -> str:
    """Return what was measured, as Markdown."""
    share = 100 * measured.differing / max(1, measured.tokens)
    differ = f"{measured.differing:,} of {measured.tokens:,} tags ({share:.2f} %) differ"
    if measured.with_decoder is None or measured.without is None:
        return (
            f"{differ} between the two on the {measured.sentences:,} sentences of "
            f"`{COUNTED_ON}`, a sample of news that comes with seqmix.\n"
            "Precision, recall and F1 were not measured when it was exported.\n"
        )
    return f"""| {measured.sentences:,} sentences | precision | recall | F1 |
|---|---:|---:|---:|
| with `decode.py` | {_percent(measured.with_decoder)} |
| most probable tag of each token | {_percent(measured.without)} |

{differ} between the two.
"""


def _percent(result: Score) -> str:
    return " | ".join(
        f"{100 * value:.1f}" for value in (result.precision, result.recall, result.f1)
    )
