"""Tag sentences with an exported model, in an environment without seqmix.

python exports_alone.py hf|spacy MODEL < words.json

words.json is a list of lists of words. Printed are runs, each a name and the spans of every
sentence: [first word, one past the last, type], where those of Hugging Face's pipeline count
characters of the words joined by spaces.
"""

import json
import runpy
import sys
from pathlib import Path

sys.modules["seqmix"] = None  # importing it would fail


def hugging_face(folder, sentences):
    """The tags of decode.py, and the pipeline's spans."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer, pipeline

    decode = runpy.run_path(folder + "/decode.py")["decode"]
    model = AutoModelForTokenClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chain = json.loads(Path(folder, "transitions.json").read_text(encoding="utf-8"))
    tags = []
    for words in sentences:
        batch = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        firsts = [batch.word_ids().index(i) for i in range(len(words))]
        with torch.no_grad():
            tags.append(decode(model(**batch).logits[0, firsts].double().numpy(), chain))
    tag = pipeline(
        "token-classification", model=model, tokenizer=tokenizer, aggregation_strategy="first"
    )
    piped = tag([" ".join(words) for words in sentences], batch_size=32)
    spans = [
        [(int(entity["start"]), int(entity["end"]), entity["entity_group"]) for entity in entities]
        for entities in piped
    ]
    return {"tags": tags, "spans": spans}


def with_spacy(folder, sentences):
    """The entities of a pipeline that needs no seqmix."""
    sys.path.insert(0, folder)
    import seqmix_component  # noqa: F401
    import spacy
    from spacy.tokens import Doc

    nlp = spacy.load(folder)
    docs = nlp.pipe(Doc(nlp.vocab, words=words) for words in sentences)
    return {"spans": [[(e.start, e.end, e.label_) for e in doc.ents] for doc in docs]}


tag = {"hf": hugging_face, "spacy": with_spacy}[sys.argv[1]]
json.dump(tag(sys.argv[2], json.load(sys.stdin)), sys.stdout)
