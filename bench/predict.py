"""Prediction: ours against `pipeline("token-classification", batch_size=32)`, and the bare forward pass as the limit; one model.

python bench/predict.py [--sizes 3453] [--data ../shared/data/conll03]
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from functools import partial

import numpy as np
from transformers import BertForTokenClassification, pipeline

from common import Corpus, load, record, show
from score import bare, ready, seconds
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger

logging.getLogger("transformers").setLevel(logging.ERROR)


def ours(tagger: Tagger, sentences: list[Sentence]) -> tuple[float, list[tuple[str, ...]]]:
    """Seconds, and the tags of each sentence (token-wise best, as the pipeline gives them)."""
    start = time.perf_counter()
    found = [s.tags for s in tagger.predict([s.unlabeled() for s in sentences], legal=False)]
    return time.perf_counter() - start, found


def peer(
    tagger: Tagger, sentences: list[Sentence], corpus: Corpus
) -> tuple[float, list[list[str]]]:
    """The same weights through the pipeline, which takes raw text and names the pieces that are not O."""
    network = tagger._network
    config = network.encoder.config
    config.num_labels, config.id2label = len(corpus.tags), dict(enumerate(corpus.tags.tags))
    model = BertForTokenClassification(config)
    model.bert.load_state_dict(network.encoder.state_dict())
    model.classifier.load_state_dict(network.classifier.state_dict())
    tag = pipeline(
        "token-classification",
        model=model.eval(),
        tokenizer=tagger._tokenizer,
        batch_size=32,
        device=tagger.device,
    )
    texts = [s.located() for s in sentences]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = list(tag([text for text, _ in texts]))
    seconds = time.perf_counter() - start
    firsts = [{a: i for i, (a, _) in enumerate(offsets)} for _, offsets in texts]
    found = [["O"] * len(s) for s in sentences]
    for tags, first, answer in zip(found, firsts, answers, strict=True):
        for piece in answer:
            if piece["start"] in first:
                tags[first[piece["start"]]] = piece["entity"]
    return seconds, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[3453])
    parser.add_argument(
        "--data",
        default=None,
        help="a folder with CoNLL-03's train.txt and test.txt; the gazette without it",
    )
    args = parser.parse_args()
    corpus = load(args.data)
    tagger = Tagger(settings=Settings(epochs=5)).fit(
        corpus.train[:200], np.random.default_rng(0), corpus.tags
    )
    rows = []
    for n in args.sizes:
        sentences = corpus.test[:n]
        gold = [s.tags for s in sentences]
        ours(tagger, sentences[:200])  # warm
        batches = ready(tagger, sentences)
        bare(tagger, batches)
        limit, (us, found), (them, theirs) = (
            seconds(partial(bare, tagger, batches), tagger.device),
            ours(tagger, sentences),
            peer(tagger, sentences, corpus),
        )
        same = np.mean(
            [a == b for f, g in zip(found, theirs, strict=True) for a, b in zip(f, g, strict=True)]
        )
        n = len(sentences)
        rows.append(
            [corpus.name, n, f"{n / us:.0f}/s", f"{n / them:.0f}/s", f"{them / us:.2f}×", f"{n / limit:.0f}/s", f"{limit / us:.0%}",
             f"{100 * score(gold, found).f1:.2f}", f"{100 * score(gold, theirs).f1:.2f}", f"{same:.4%}"]
        )  # fmt: skip
        record(
            "predict", f"{tagger.device.type}, {n} sentences", n / us, "1/s", peer=n / them, limit=n / limit,
            note=f"peer: pipeline, batch_size=32; {limit / us:.0%} of the limit; same tags {same:.4%}",
        )  # fmt: skip
    show(
        [
            "data",
            "sentences",
            "seqmix",
            "pipeline",
            "ratio",
            "bare forward",
            "of limit",
            "F1 seqmix",
            "F1 pipeline",
            "same tags",
        ],
        rows,
    )
