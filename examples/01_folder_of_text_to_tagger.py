"""From a folder of text to a tagger, with the Python interface alone.

    python examples/01_folder_of_text_to_tagger.py

A folder of .txt files is the pool. Sixteen sentences are drawn at random and labeled; then the
tagger asks for two batches, in which it expects the most mistakes. SeqMix mixes new sentences from
each batch. In place of a person, `ask` looks the names up in the sample corpus that the text is
taken from; put your own function there, or use the page: `seqmix init`, `seqmix annotate`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import seqmix

BATCH, ROUNDS = 16, 2
GOLD = {" ".join(sentence.tokens): sentence for sentence in seqmix.sample("gazette:train")}


def ask(sentence: seqmix.Sentence) -> seqmix.Sentence:
    """Label one sentence, as a person would. Here the person knows the sample corpus by heart."""
    text, _ = sentence.located()
    return seqmix.Sentence.from_text(text, sentence.id, GOLD[text].entities(), "expand")


def learn(folder: Path, out: Path) -> seqmix.Tagger:
    """Read the text, ask, teach, save the tagger and the labels."""
    sentences = [
        sentence for file in sorted(folder.glob("*.txt")) for sentence in seqmix.read(file)
    ]
    first = np.random.default_rng(0).permutation(len(sentences))[:BATCH]
    learner = seqmix.ActiveLearner(
        tagger=seqmix.Tagger(settings=seqmix.Settings(epochs=12, batch_size=8)),
        policy="lc_prime",  # where it expects the most mistakes
        augmenter=seqmix.SeqMix(window=3),
        rate=0.2,
        pool=seqmix.Pool.of(sentences, [ask(sentences[i]) for i in first]),
    )
    report(learner)
    for _ in range(ROUNDS):
        ids = learner.query(BATCH)
        learner.teach(ids, [ask(learner.pool.unlabeled[id]) for id in ids])
        report(learner)
    learner.tagger.save(out / "tagger")
    seqmix.write(learner.pool.labeled.values(), out / "labels.conll")
    return seqmix.Tagger.load(out / "tagger")


def report(learner: seqmix.ActiveLearner) -> None:
    """How good the tagger is on sentences it has never seen."""
    unseen = seqmix.sample("gazette:dev")
    found = learner.tagger.predict(unseen)
    f1 = seqmix.score([s.tags for s in unseen], [s.tags for s in found]).f1
    print(f"{len(learner.pool.labeled)} labeled, {len(learner.generated)} generated: F1 {f1:.2f}")


def main() -> None:
    """Make a folder of text, learn from it, tag a sentence."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "text")
        folder.mkdir()
        (folder / "news.txt").write_text(
            "\n".join([text for text in GOLD if len(text) < 110][:250]), encoding="utf-8"
        )
        tagger = learn(folder, Path(place))
    for entity in tagger("Lena Okafor left Acme for the University of Oslo."):
        print(entity.label, entity.text)


if __name__ == "__main__":
    main()
