"""Tag words between spaces, a sentence per line: python onnx_predict.py ner.onnx < notes.txt"""

import json
import sys

import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

session = InferenceSession(sys.argv[1])
held = session.get_modelmeta().custom_metadata_map
tokenizer, chain = Tokenizer.from_str(held["tokenizer"]), json.loads(held["transitions"])
for words in filter(None, map(str.split, sys.stdin)):  # as long as a window, or shorter
    pieces = tokenizer.encode(words, is_pretokenized=True)
    ids = np.array([pieces.ids])
    (logits,) = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    scores = logits[0, [pieces.word_ids.index(i) for i in range(len(words))]]
    best, paths = scores[0] + chain["start"], [[tag] for tag in chain["tags"]]
    for row in scores[1:]:
        moved = best[:, None] + chain["transitions"]  # from each tag to each, after Viterbi
        best = moved.max(0) + row
        paths = [[*paths[i], tag] for i, tag in zip(moved.argmax(0), chain["tags"], strict=True)]
    print(*map("/".join, zip(words, paths[(best + chain["end"]).argmax()], strict=True)))
