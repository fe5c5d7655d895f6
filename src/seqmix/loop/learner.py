"""The active learner: query, teach, and a tagger that follows. One class for simulations, scripts and people."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from seqmix.data import formats
from seqmix.data.augmented import Augmentation, Augmented
from seqmix.data.files import lines, replacing
from seqmix.data.sentence import Sentence
from seqmix.errors import RunError
from seqmix.loop.pool import Pool
from seqmix.loop.pool_view import TaggerView
from seqmix.loop.rounds import damaged, read_object
from seqmix.protocols import Augmenter, Tagger
from seqmix.query.policies import policy_spec
from seqmix.query.spec import Policy

Fit = Callable[[Sequence[Sentence], int | None, np.random.Generator, Tagger | None], Tagger]
FORMAT_VERSION = 1
_PHASES = ("seed", "query", "augment", "train", "committee", "stop")
REMEMBERED = 4  # rounds of predictions kept for policies that look back


def generator(seed: int, round: int, phase: str) -> np.random.Generator:
    """The generator of one phase of one round. subtle: none depends on another, so a run can go on from any of them."""
    return np.random.default_rng([seed, round, _PHASES.index(phase)])


@dataclass(frozen=True)
class Recipe:
    """How a learner learns: how to fit a tagger, what to ask, how to augment, and how the steps are counted."""

    fit: Fit  # (sentences, steps or None, rng, the last tagger for a warm start or None)
    policy: Policy
    augmenter: Callable[[int], Augmenter | None] = lambda round: None
    rate: Callable[[int], float] = lambda round: 0.0
    steps: Callable[[int], int | None] = lambda sentences: (
        None
    )  # optimizer steps for so many sentences; None: the settings' epochs
    match_steps: bool = True  # count the sentences augmentation should give even where there is none, so that arms take equal steps
    warm: bool = False
    members: int = 3


class ActiveLearner:
    """`ids = learner.query(n)`, label them, `learner.teach(ids, sentences)`, `learner.tagger`."""

    def __init__(self, recipe: Recipe, pool: Pool, seed: int = 0) -> None:
        self.recipe, self.pool, self.seed = recipe, pool, seed
        self.policy = policy_spec(recipe.policy)
        self.round = 0
        self.generated: list[Augmented] = []
        self.nominal = 0  # sentences augmentation was asked for so far
        self.history: dict[str, list[list[str]]] = {}
        self._tagger: Tagger | None = None

    @property
    def tagger(self) -> Tagger:
        """The tagger trained on all that is labeled; trained now if it is not yet."""
        if self._tagger is None:
            self.train()
        assert self._tagger is not None
        return self._tagger

    @tagger.setter
    def tagger(self, tagger: Tagger) -> None:
        self._tagger = tagger

    def query(self, n: int) -> list[str]:
        """Return the ids of the n sentences to label next, best first."""
        return list(self.rank(n))

    def rank(self, n: int) -> dict[str, float]:
        """Return the scores of the n sentences to label next by id, best first."""
        self.pool.check(n)
        rng = generator(self.seed, self.round + 1, "query")
        view = TaggerView(self.pool, self.tagger, self._committee, self.history, rng)
        scores = self.policy.choose(view, n, rng)
        self.pool.take(list(scores))  # refuses strangers
        return scores

    def wanted(self, labeled: int) -> int:
        """How many sentences augmentation is asked for when so many have been labeled."""
        return round(self.recipe.rate(self.round) * labeled)

    def augment(self, batch: Sequence[Sentence]) -> Augmentation:
        """New sentences from the newly labeled ones only (Algorithm 1), accumulated."""
        wanted = self.wanted(len(batch))
        augmenter = self.recipe.augmenter(self.round)
        rng = generator(self.seed, self.round, "augment")
        made = (
            augmenter.augment(batch, wanted, rng)
            if augmenter is not None and wanted > 0
            else Augmentation((), 0)
        )
        self.nominal += wanted
        self.generated += [
            replace(one, sentence=_renamed(one.sentence, self.round)) for one in made
        ]
        return made

    @property
    def steps(self) -> int | None:
        """Optimizer steps a training takes now; with matched steps the same for all arms, whatever was generated."""
        generated = self.nominal if self.recipe.match_steps else len(self.generated)
        return self.recipe.steps(len(self.pool.labeled) + generated)

    def train(self) -> Tagger:
        """Train on everything labeled and generated so far."""
        rng = generator(self.seed, self.round, "train")
        self._tagger = self.recipe.fit(
            self._sentences(), self.steps, rng, self._tagger if self.recipe.warm else None
        )
        return self._tagger

    @property
    def looks_back(self) -> bool:
        """Whether the policy needs the predictions of earlier rounds."""
        return "history" in self.policy.needs

    def remember(self) -> None:
        """Keep this round's predictions on the pool for policies that look at their history."""
        for sentence, paths in zip(
            self.pool.unlabeled.values(),
            self.tagger.best_paths(self.pool.unlabeled.values()),
            strict=True,
        ):
            self.history.setdefault(sentence.id, []).append(list(paths[0].tags))
            del self.history[sentence.id][:-REMEMBERED]

    def teach(self, ids: Sequence[str], sentences: Sequence[Sentence]) -> Tagger:
        """Take the answers, augment them, train anew."""
        self.pool = self.pool.label(ids, sentences)
        self.round += 1
        self.augment(list(sentences))
        return self.train()

    def _committee(self) -> list[Tagger]:
        """Members that really differ, each its own seed and bootstrap sample of the sentences; they take as many steps as the tagger."""
        members = []
        labeled = self._sentences()
        rng = generator(self.seed, self.round, "committee")
        for own in rng.spawn(self.recipe.members):
            drawn = [labeled[i] for i in own.integers(len(labeled), size=len(labeled))]
            members.append(self.recipe.fit(drawn, self.steps, own, None))
        return members

    def _sentences(self) -> list[Sentence]:
        """What is learned from: everything labeled and generated so far."""
        return [*self.pool.labeled.values(), *(one.sentence for one in self.generated)]

    def save(self, folder: Path | str) -> None:
        """Everything but the recipe, which is code: the pool, the labels, what was generated, the tagger."""
        state = {
            "format_version": FORMAT_VERSION,
            "round": self.round,
            "seed": self.seed,
            "nominal": self.nominal,
            "history": self.history,
        }
        with replacing(Path(folder), folder=True) as beside:
            formats.write(self.pool.unlabeled.values(), beside / "unlabeled.jsonl", "jsonl-tokens")
            formats.write(self.pool.labeled.values(), beside / "labeled.jsonl", "jsonl-tokens")
            with (beside / "generated.jsonl").open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(
                    json.dumps(one.to_record(), ensure_ascii=False) + "\n" for one in self.generated
                )
            if self._tagger is not None:
                self._tagger.save(beside / "model")
            (beside / "learner.json").write_text(
                json.dumps(state, ensure_ascii=False), encoding="utf-8"
            )

    @classmethod
    def load(
        cls, folder: Path | str, recipe: Recipe, load_tagger: Callable[[Path], Tagger]
    ) -> ActiveLearner:
        """A learner that `save` wrote, with its recipe given anew."""
        folder = Path(folder)
        if not (folder / "learner.json").is_file():
            raise RunError(f"{folder} is not a saved learner: it has no learner.json")
        state = read_object(folder / "learner.json")
        if state.get("format_version") != FORMAT_VERSION:
            raise RunError(
                f"{folder} has learner format {state.get('format_version')}; this version of seqmix reads {FORMAT_VERSION}"
            )
        state = read_object(folder / "learner.json", seed=int, round=int, nominal=int, history=dict)
        with damaged(folder / "generated.jsonl"):
            generated = [
                Augmented.from_record(json.loads(line))
                for _, line in lines(folder / "generated.jsonl")
            ]
        labeled = list(formats.read(folder / "labeled.jsonl", "jsonl-tokens"))
        pool = Pool(
            {s.id: s for s in formats.read(folder / "unlabeled.jsonl", "jsonl-tokens")},
            {s.id: s for s in labeled},
        )
        learner = cls(recipe, pool, state["seed"])
        learner.round, learner.nominal, learner.history, learner.generated = (
            state["round"],
            state["nominal"],
            state["history"],
            generated,
        )
        if (folder / "model").exists():
            learner.tagger = load_tagger(folder / "model")
        return learner


def _renamed(sentence: Sentence, round: int) -> Sentence:
    """Ids of generated sentences differ between rounds too."""
    return replace(sentence, id=f"r{round}/{sentence.id}")
