"""Prediction: ours against `pipeline("token-classification", batch_size=32)`, and the bare forward pass as the limit; one model.

python bench/predict.py [--sizes 3453] [--data ../shared/data/conll03]
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings

import numpy as np
import torch
from transformers import BertForTokenClassification, pipeline

from common import Corpus, load, show
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.tagger import Settings, Tagger
from seqmix.tagger.pieces import by_length, pack

logging.getLogger("transformers").setLevel(logging.ERROR)


def ours(tagger: Tagger, sentences: list[Sentence]) -> tuple[float, list[tuple[str, ...]]]:
    """Seconds, and the tags of each sentence (token-wise best, as the pipeline gives them)."""
    start = time.perf_counter()
    found = [s.tags for s in tagger.predict([s.unlabeled() for s in sentences], legal=False)]
    return time.perf_counter() - start, found


def peer(tagger: Tagger, sentences: list[Sentence], corpus: Corpus) -> tuple[float, list[list[str]]]:
    """The same weights through the pipeline, which takes raw text and names the pieces that are not O."""
    network = tagger._network
    config = network.encoder.config
    config.num_labels, config.id2label = len(corpus.tags), dict(enumerate(corpus.tags.tags))
    model = BertForTokenClassification(config)
    model.bert.load_state_dict(network.encoder.state_dict())
    model.classifier.load_state_dict(network.classifier.state_dict())
    tag = pipeline("token-classification", model=model.eval(), tokenizer=tagger._tokenizer, batch_size=32, device=tagger.device)
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


def limit(tagger: Tagger, sentences: list[Sentence]) -> float:
    """Seconds of the encoder alone over batches that are ready and sorted by length."""
    windows = tagger._pieces.encode(s.tokens for s in sentences)
    batches = [pack([windows[i] for i in group], False) for group in by_length(windows, 512)]
    start = time.perf_counter()
    with torch.inference_mode():
        for batch in batches:
            tagger._network.encoder(input_ids=batch.ids.to(tagger.device), attention_mask=(batch.segments > 0).long().to(tagger.device))
    if tagger.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[3453])
    parser.add_argument("--data", default=None, help="a folder with CoNLL-03's train.txt and test.txt; the gazette without it")
    args = parser.parse_args()
    corpus = load(args.data)
    tagger = Tagger(settings=Settings(epochs=5)).fit(corpus.train[:200], np.random.default_rng(0), corpus.tags)
    rows = []
    for n in args.sizes:
        sentences = corpus.test[:n]
        gold = [s.tags for s in sentences]
        ours(tagger, sentences[:200])  # warm
        bare, (us, found), (them, theirs) = limit(tagger, sentences), ours(tagger, sentences), peer(tagger, sentences, corpus)
        same = np.mean([a == b for f, g in zip(found, theirs, strict=True) for a, b in zip(f, g, strict=True)])
        n = len(sentences)
        rows.append(
            [corpus.name, n, f"{n / us:.0f}/s", f"{n / them:.0f}/s", f"{them / us:.2f}×", f"{n / bare:.0f}/s", f"{bare / us:.0%}",
             f"{100 * score(gold, found).f1:.2f}", f"{100 * score(gold, theirs).f1:.2f}", f"{same:.4%}"]
        )  # fmt: skip
    show(["data", "sentences", "seqmix", "pipeline", "ratio", "bare forward", "of limit", "F1 seqmix", "F1 pipeline", "same tags"], rows)
