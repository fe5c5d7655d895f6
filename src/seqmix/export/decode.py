"""Find the most probable tags of a sentence from its scores.

    decode(scores, json.load(open("transitions.json")))

scores [n_words, n_tags] are the model's logits at the first piece of each word.
This file needs numpy only and is copied beside every exported model.
"""

from typing import Any

import numpy as np


def decode(scores: Any, chain: dict[str, Any]) -> list[str]:
    """Return the tags of the highest-scoring path that the tag scheme allows (Viterbi)."""
    moves = np.array(chain["transitions"])  # [from, to]
    best, steps = np.asarray(scores[0], float) + chain["start"], []
    for row in np.asarray(scores[1:], float):
        paths = best[:, None] + moves
        steps.append(paths.argmax(axis=0))
        best = paths.max(axis=0) + row
    path = [int((best + chain["end"]).argmax())]
    for step in reversed(steps):
        path.append(int(step[path[-1]]))
    return [chain["tags"][tag] for tag in reversed(path)]
