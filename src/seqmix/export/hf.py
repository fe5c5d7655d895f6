"""Export a tagger as a Hugging Face token-classification model, which needs no seqmix to run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import AutoModelForTokenClassification, PreTrainedModel

from seqmix.data.scheme import legal_moves
from seqmix.data.scoring import Score, score
from seqmix.data.sentence import Sentence
from seqmix.errors import DataError, ModelError
from seqmix.export import decode as decoder
from seqmix.export.decode import decode
from seqmix.tagger.model_folders import writing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seqmix.tagger import Tagger

IMPOSSIBLE = -1e4  # the score of a transition that the tag scheme forbids
FILES = ("config.json", "model.safetensors", "transitions.json", "decode.py", "README.md")


@dataclass(frozen=True)
class Measured:
    """How the exported model does on labeled sentences."""

    sentences: int
    tokens: int
    with_decoder: Score
    without: Score
    differing: int  # tokens whose most probable tag alone is not the decoder's


def export_hf(tagger: Tagger, folder: Path, test: Sequence[Sentence] = ()) -> Measured | None:
    """Write a folder for `AutoModelForTokenClassification` and `pipeline`; measure it on `test`."""
    model = hf_model(tagger)
    chain = transitions(tagger)
    measured = _measure(tagger, chain, test) if test else None
    with writing(folder) as beside:
        model.save_pretrained(beside)
        tagger.tokenizer.save_pretrained(str(beside))
        (beside / "transitions.json").write_text(
            json.dumps(chain, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        shutil.copyfile(Path(decoder.__file__), beside / "decode.py")
        (beside / "README.md").write_text(card(tagger, folder.name, measured), encoding="utf-8")
    return measured


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


def _measure(tagger: Tagger, chain: dict[str, object], test: Sequence[Sentence]) -> Measured:
    gold = [[str(tag) for tag in sentence.hardened().tags] for sentence in test]
    if not all(sentence.labeled and None not in sentence.tags for sentence in test):
        raise DataError("the sentences to measure on must be labeled completely")
    bare = [sentence.unlabeled() for sentence in test]
    scores = list(emissions(tagger, bare))
    decoded = [decode(rows, chain) if len(rows) else [] for rows in scores]
    alone = [[tagger.tags[i] for i in rows.argmax(axis=1)] for rows in scores]
    differing = sum(
        a != b
        for ours, theirs in zip(decoded, alone, strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )
    tokens = sum(map(len, gold))
    return Measured(len(test), tokens, score(gold, decoded), score(gold, alone), differing)


def card(tagger: Tagger, name: str, measured: Measured | None) -> str:
    """Return the model card."""
    types = sorted({tag[2:] if tag[1:2] == "-" else tag for tag in tagger.tags} - {"O"})
    kind = "a CRF" if tagger.network.chain is not None else "a linear"
    figures = "It was not measured when it was exported.\n"
    if measured is not None:
        share = 100 * measured.differing / max(1, measured.tokens)
        figures = f"""| {measured.sentences:,} sentences | precision | recall | F1 |
|---|---:|---:|---:|
| with `decode.py` | {_percent(measured.with_decoder)} |
| most probable tag of each token | {_percent(measured.without)} |

{measured.differing:,} of {measured.tokens:,} tags ({share:.2f} %) differ between the two.
"""
    return f"""---
library_name: transformers
pipeline_tag: token-classification
---

# {name}

A token classifier for {", ".join(types)}, trained with seqmix: \
encoder `{tagger.encoder}` with {kind} head.

```python
from transformers import pipeline

tag = pipeline("token-classification", model="{name}", aggregation_strategy="first")
print(tag("..."))
```

A word has the tag of its first piece; pieces after the first were not trained, so use the
aggregation strategy `first`.
The pipeline takes each token's most probable tag.
To get exactly the tags of the trained tagger, take the logits of each word's first piece and give
them to `decode` in `decode.py` with `transitions.json`, which knows which tags may follow which.

{figures}"""


def _percent(result: Score) -> str:
    return " | ".join(
        f"{100 * value:.1f}" for value in (result.precision, result.recall, result.f1)
    )
