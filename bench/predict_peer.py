"""A token-classification pipeline in a process of its own.

python predict_peer.py transformers|optimum FOLDER cpu|cuda

Texts come in as lines of JSON, {"texts": […], "batch": 32}; seconds, CPU seconds and pieces go out.
Needs no seqmix, so that an environment with other versions can run it.
"""

import json
import logging
import sys
import time
import warnings

import torch
from transformers import AutoTokenizer, pipeline

logging.getLogger("transformers").setLevel(logging.ERROR)
warnings.simplefilter("ignore")


def load(library, folder, device):
    """The pipeline; that of optimum runs the folder through ONNX Runtime."""
    if library == "transformers":
        return pipeline("token-classification", model=folder, device=device)
    from optimum.onnxruntime import ORTModelForTokenClassification
    from optimum.onnxruntime import pipeline as ort_pipeline

    model = ORTModelForTokenClassification.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return ort_pipeline("token-classification", model=model, tokenizer=tokenizer)


def clocks():
    """Seconds, and CPU seconds of all threads of this process."""
    return time.perf_counter(), time.process_time()


def timed(tag, texts, batch):
    """Both clocks in all, both of each text where they come alone, and the answers."""
    start, each, answers = clocks(), [], []
    if batch > 1:
        answers = list(tag(texts, batch_size=batch))
    for text in texts if batch == 1 else ():
        before = clocks()
        answers.append(tag(text))
        each.append([b - a for a, b in zip(before, clocks(), strict=True)])
    return [b - a for a, b in zip(start, clocks(), strict=True)], each, answers


if __name__ == "__main__":
    tag = load(*sys.argv[1:4])
    print(json.dumps({"threads": torch.get_num_threads()}), flush=True)
    for line in sys.stdin:
        work = json.loads(line)
        seconds, each, answers = timed(tag, work["texts"], work["batch"])
        pieces = [[(piece["start"], piece["entity"]) for piece in answer] for answer in answers]
        answer = {"seconds": seconds, "each": each, "pieces": pieces}
        print(json.dumps(answer), flush=True)
