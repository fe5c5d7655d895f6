"""How often a project asks for one template in a row, and what that costs in F1.

    python -m bench.repeats [--sentences 800] [--seeds 0 1 2] [--arms plain diverse apart both]

The text is made from templates: the real trainer works on a project of recipe lines, 24 templates,
a fifth of the lines from the most frequent. A person who knows the gold answers 14 questions after
each of four models. In each stretch of 14 questions the sentences of the template asked most are
counted; F1 is the last model's, on 400 other lines. Stages 2 and 3 are off, and a training takes 60
steps.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from statistics import mean

import numpy as np

from seqmix.app.taggers import load_tagger
from seqmix.app.trainer_process import build_parts
from seqmix.data.latest_model import newest_model
from seqmix.data.scoring import score
from seqmix.data.sentence import Sentence
from seqmix.data.spans import spans
from seqmix.serve.project import Project, create_project, open_project
from seqmix.serve.settings import ProjectSettings
from seqmix.serve.store.annotators import add_annotator
from seqmix.serve.store.answers import save_answer
from seqmix.serve.store.queue import next_sentence
from seqmix.serve.store.records import Mark
from seqmix.serve.trainer.trainer import Trainer

TAGS = ("Ingredient", "Amount", "Tool", "Duration")
ARMS: Mapping[str, str] = {
    "plain": "apart = 0",
    "diverse": "apart = 0\ndiverse = true",
    "apart": "apart = 20",
    "both": "apart = 20\ndiverse = true",
}
_STRETCH, _MODELS = 14, 4
_OFF = "[training]\nsteps = 60\n[adapt]\nepochs = 0\n[self_training]\nteachers = 0\n[query]\n"
_FILLERS = {
    "I": "flour,brown sugar,butter,olive oil,garlic,onions,red lentils,salt,black pepper,eggs,"
    "double cream,rice,cherry tomatoes,basil,chicken stock,soy sauce,ginger,spring onions,parsley,"
    "yeast,honey,oats,dark chocolate",
    "A": "{n} g,{n} ml,{n} tsp,{n} tbsp,a pinch,a handful,half a cup,{n} cups,two,three,{n} oz,"
    "a knob",
    "T": "pan,large bowl,wok,tin,baking tray,saucepan,food processor,wooden spoon,sieve,whisk,"
    "casserole,blender",
    "D": "{n} minutes,an hour,overnight,{n} to {m} minutes,two hours,{n} seconds,half an hour,"
    "a few minutes",
}  # fmt: skip
_TEMPLATES = (
    "Heat the oven to {n} F / gas mark 4 and line a {T} with paper .",
    "Add {A} of {I} and stir .",
    "Cook for {D} , then add the {I} .",
    "Mix the {I} with the {I} in a {T} .",
    "Leave to rest for {D} .",
    "{A} {I} , finely chopped",
    "{A} of {I} , plus extra to serve",
    "Meanwhile , melt the {I} in a {T} over a low heat .",
    "Season with {I} and {I} , and serve at once .",
    "Whisk {A} {I} into the {T} until it is smooth .",
    "Bring a {T} of water to the boil and cook the {I} for {D} .",
    "Tip everything into the {T} and whizz for {D} .",
    "Fry the {I} until golden , about {D} , turning them once or twice .",
    "Remove from the {T} , cover loosely and keep warm .",
    "Scatter over the {I} just before you bring it to the table .",
    "If you have no {I} , use {A} of {I} instead .",
    "My grandmother always put {A} {I} into hers , and nobody complained .",
    "It keeps in the fridge for {D} , or in the freezer for a month .",
    "Serves 4 , ready in {D}",
    "Push the {I} through a {T} with the back of a spoon .",
    "Return the {T} to the heat , pour in {A} {I} and simmer gently for {D} .",
    "Knead the dough by hand for {D} , dusting with {I} whenever it sticks .",
    "You will also need : {T} , {T} and some string .",
    "Taste , and if it seems flat , more {I} will help .",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=800)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    given = parser.parse_args()
    print("arm | seed | most of one template in each 14 questions | templates in them | F1")
    for arm in given.arms:
        rows = [measure(ARMS[arm], given.sentences, seed) for seed in given.seeds]
        for seed, (most, several, f1) in zip(given.seeds, rows, strict=True):
            print(f"{arm} | {seed} | {most} | {several} | {100 * f1:.1f}", flush=True)
        worst = max(max(most) for most, _, _ in rows)
        print(
            f"{arm} | all | worst {worst}, mean {mean(n for most, _, _ in rows for n in most):.1f}"
            f" | mean {mean(n for _, several, _ in rows for n in several):.1f}"
            f" | {100 * mean(f1 for _, _, f1 in rows):.1f}",
            flush=True,
        )


def measure(query: str, n: int, seed: int) -> tuple[list[int], list[int], float]:
    """Return, per stretch, the sentences of the template asked most and the templates; and F1."""
    lines = recipe_lines(np.random.default_rng(seed))
    gold = {sentence.id: (template, sentence) for template, sentence in islice(lines, n)}
    test = [sentence for _, sentence in islice(lines, 400)]
    with tempfile.TemporaryDirectory(prefix="seqmix-") as place:
        folder = Path(place) / "recipes"
        settings = ProjectSettings("recipes", TAGS, audit_share=0.0, seed=seed)
        create_project(folder, (s.with_tags(()) for _, s in gold.values()), settings)
        (folder / "training.toml").write_text(_OFF + query)
        with open_project(folder) as project:
            asked = list(answered(project, gold))
            tagger = load_tagger(newest_model(project.models), "cpu")
    f1 = score([s.tags for s in test], [paths[0].tags for paths in tagger.best_paths(test)]).f1
    stretches = [Counter(part) for part in np.array(asked).reshape(-1, _STRETCH).tolist()]
    return [max(part.values()) for part in stretches], [len(part) for part in stretches], f1


def answered(project: Project, gold: Mapping[str, tuple[int, Sentence]]) -> Iterator[int]:
    """Answer 10 questions before the first model and 14 after each, whose templates it yields."""
    add_annotator(project.store, "Ada")
    trainer = Trainer(project, replace(build_parts(project), quick=None))
    trainer.step()
    for _ in range(10):
        answer(project, gold)
    for _ in range(_MODELS):
        assert trainer.step()
        yield from (answer(project, gold) for _ in range(_STRETCH))


def answer(project: Project, gold: Mapping[str, tuple[int, Sentence]]) -> int:
    """Give the gold answer to the next question; return its template."""
    shown = next_sentence(project.store, 1, project.rules)
    assert shown is not None
    template, sentence = gold[shown.sentence.id]
    marks = [Mark(span.start, span.end, span.type) for span in spans(sentence.tags)]
    save_answer(project.store, sentence.id, 1, "label", marks, version=shown.version)
    return template


def recipe_lines(rng: np.random.Generator) -> Iterator[tuple[int, Sentence]]:
    """Yield labeled lines without end, none twice, each with its template."""
    shares = np.array([6.0, *(1 / (1 + at / 6) for at in range(len(_TEMPLATES) - 1))])
    seen: set[tuple[str, ...]] = set()
    for number in count():
        template = int(rng.choice(len(_TEMPLATES), p=shares / shares.sum()))
        tokens, tags = list[str](), list[str]()
        for word in _TEMPLATES[template].split():
            slot = word[1] if word.startswith("{") else ""
            options = _FILLERS.get(slot, word).split(",") if slot in _FILLERS else [word]
            low = int(rng.integers(1, 60))
            text = str(rng.choice(options)).format(n=low * 5, m=low * 5 + 5).split()
            tokens += text
            tag = next((tag for tag in TAGS if tag[0] == slot), None)
            tags += (
                ["O"] * len(text) if tag is None else [f"B-{tag}", *[f"I-{tag}"] * (len(text) - 1)]
            )
        if tuple(tokens) not in seen:
            seen.add(tuple(tokens))
            yield template, Sentence(f"recipes:{number}", tuple(tokens), tuple(tags))


if __name__ == "__main__":
    main()
